"""Folders of what hrt_model_exec dumped, one folder a sample: raw buffers, read by type, shape and stride."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from driftgate.errors import SampleError
from driftgate.messages.message import Message, message
from driftgate.sessions import Tensor
from driftgate.storage.tensorfiles import sample_unknown
from driftgate.transforms.strided import Layout, StrideError, tensor_of

#: `model_infer_output_0_name.bin` (toolchain facts §7.2). What stands behind the number is not used: the tool changes
#: characters of some names.
_DUMP = re.compile(r"^model_infer_output_(\d+)_.*\.bin$")


class DumpFolder:
    """Outputs of many samples; `layouts` are theirs in the model's order."""

    def __init__(self, folder: Path, layouts: Mapping[str, Layout]) -> None:
        self._folder = folder
        self._layouts = dict(layouts)
        self._ids = tuple(sorted(path.name for path in folder.iterdir() if path.is_dir() and _dumps(path)))
        if not self._ids:
            raise SampleError(message("dumps-none", path=str(folder)))

    @property
    def ids(self) -> tuple[str, ...]:
        """The folders that hold dumps."""
        return self._ids

    def read(self, sample_id: str) -> dict[str, Tensor]:
        """The outputs of one sample by name. Raises SampleError for dumps that are missing, or not as described."""
        if sample_id not in self._ids:
            raise sample_unknown(self._folder, sample_id, self._ids)
        files = _dumps(self._folder / sample_id)
        found: dict[str, Tensor] = {}
        problems: list[Message] = []
        for number, (name, layout) in enumerate(self._layouts.items()):
            path = files.get(number)
            if path is None:
                problems.append(message("dump-missing", path=str(self._folder / sample_id), number=number, output=name))
                continue
            try:
                found[name] = tensor_of(path.read_bytes(), layout)
            except (OSError, StrideError) as error:
                problems.append(message("dump-otherwise", path=str(path), output=name, reason=str(error)))
        if problems:
            raise SampleError(*problems)
        return found

    def files(self, sample_id: str) -> tuple[Path, ...]:
        """The dumps of a sample."""
        return tuple(_dumps(self._folder / sample_id).values())


def _dumps(folder: Path) -> dict[int, Path]:
    """The dumps by the number of their output."""
    found = {}
    for path in sorted(folder.iterdir()):
        if match := _DUMP.match(path.name):
            found[int(match[1])] = path
    return found
