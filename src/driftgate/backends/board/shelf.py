"""Outputs that came home and that nobody has asked for yet: in memory while they fit, beyond that on disk, so that a
board never waits for other stages."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from driftgate.sessions import Tensor
from driftgate.storage.npz import write_npz
from driftgate.storage.tensorfiles import open_source

HELD_BYTES = 256 << 20
Outputs = dict[str, Tensor]


class Shelf:
    """By sample; each is taken once. What lies on disk is gone with `clear`."""

    def __init__(self, held_bytes: int = HELD_BYTES) -> None:
        self._room = held_bytes
        self._held: dict[str, Outputs] = {}
        self._stored: set[str] = set()
        self._folder: Path | None = None

    def __contains__(self, sample: str) -> bool:
        return sample in self._held or sample in self._stored

    @property
    def samples(self) -> frozenset[str]:
        """Those that are here."""
        return frozenset(self._held) | self._stored

    def put(self, sample: str, outputs: Outputs) -> None:
        """Keep a sample's outputs."""
        size = _bytes(outputs)
        if size <= self._room:
            self._room -= size
            self._held[sample] = outputs
            return
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="driftgate-board-"))
        write_npz(self._folder / f"{sample}.npz", outputs, compressed=False)
        self._stored.add(sample)

    def take(self, sample: str) -> Outputs:
        """Hand them out, for good."""
        if sample in self._held:
            found = self._held.pop(sample)
            self._room += _bytes(found)
            return found
        if self._folder is None or sample not in self._stored:
            raise KeyError(sample)
        found = dict(open_source(self._folder).read(sample))
        (self._folder / f"{sample}.npz").unlink()
        self._stored.discard(sample)
        return found

    def clear(self) -> None:
        """Nothing is left, on disk neither."""
        self._held.clear()
        self._stored.clear()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None


def _bytes(outputs: Outputs) -> int:
    return sum(value.nbytes for value in outputs.values())
