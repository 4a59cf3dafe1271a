"""The data a network was calibrated with: a folder of `.npy` for each input, as hb_compile takes them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from driftgate.errors import SampleError
from driftgate.messages.message import message
from driftgate.sessions import Tensor
from driftgate.storage.tensorfiles import sample_unknown


class CalibrationFolders:
    """Calibration samples by the names of their files; several inputs go together in the order of theirs.

    Raises SampleError where a folder cannot be read or is empty, or the folders hold different numbers of files.
    """

    def __init__(self, folders: Mapping[str, Path]) -> None:
        files = {name: _arrays(folder) for name, folder in folders.items()}
        counts = tuple(f"{name}: {len(found)}" for name, found in files.items())
        if len({len(found) for found in files.values()}) != 1:
            raise SampleError(message("calibration-counts", counts=counts or ("-",)))
        together = list(zip(*files.values(), strict=True))
        self._samples = {paths[0].stem: dict(zip(files, paths, strict=True)) for paths in together}
        self._folder = next(iter(folders.values()))

    @property
    def ids(self) -> tuple[str, ...]:
        """The samples, sorted."""
        return tuple(self._samples)

    def read(self, sample_id: str) -> dict[str, Tensor]:
        """The tensors of one sample by input. Raises SampleError for an unknown one and for files without numbers."""
        if sample_id not in self._samples:
            raise sample_unknown(self._folder, sample_id, self.ids)
        found: dict[str, Tensor] = {}
        for name, path in self._samples[sample_id].items():
            try:
                tensor: Tensor = np.load(path, allow_pickle=False)
            except (OSError, ValueError, EOFError) as error:
                raise SampleError(message("calibration-file", path=str(path), reason=str(error))) from error
            if tensor.dtype.kind not in "biuf":
                raise SampleError(message("calibration-file", path=str(path), reason=str(tensor.dtype)))
            found[name] = tensor
        return found

    def files(self, sample_id: str) -> tuple[Path, ...]:
        """The files of one sample."""
        return tuple(self._samples[sample_id].values())


def _arrays(folder: Path) -> tuple[Path, ...]:
    try:
        found = tuple(sorted(path for path in folder.iterdir() if path.suffix == ".npy" and path.is_file()))
    except OSError as error:
        reason = error.strerror or str(error)
        raise SampleError(message("tensors-unreadable", path=str(folder), reason=reason)) from error
    if not found:
        raise SampleError(message("calibration-empty", path=str(folder)))
    return found
