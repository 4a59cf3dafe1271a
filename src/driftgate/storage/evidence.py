"""Reads an evidence folder: every file of its form, tensors lazily and never more bytes than a limit."""

from __future__ import annotations

import json
import math
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from driftgate.domain.evidence import Board, BoardInput, BoardOutput, Evidence, LinkNote, QuantParams
from driftgate.errors import StorageError
from driftgate.messages.message import Message, message
from driftgate.sessions import Tensor
from driftgate.storage.npz import DAMAGES, NUMBERS, member_header, read_member

LIMIT_BYTES = 2 << 30
TEXT_BYTES = 16 << 20
#: The files that make a folder one of evidence; the others only help.
TENSOR_FILES = {
    "inputs.npz": "feeds_a",
    "inputs_b.npz": "feeds_b",
    "outputs_a.npz": "outputs_a",
    "outputs_b.npz": "outputs_b",
    "layers_a.npz": "layers_a",
    "layers_b.npz": "layers_b",
    "weights_int8.npz": "weights",
    "calib.npz": "calib",
    "raw.npz": "raw",
}


def read_evidence(folder: Path, *, limit_bytes: int = LIMIT_BYTES) -> Evidence:
    """What lies in a folder. Of tensors only names and headers are read here; what cannot be used is a problem.

    Raises StorageError if there is no folder.
    """
    if not folder.is_dir():
        raise StorageError(message("evidence-no-folder", path=str(folder)))
    reader = _Reader(folder, limit_bytes)
    tensors: dict[str, Any] = {}
    for name, place in TENSOR_FILES.items():
        tensors[place] = reader.tensors(name)
    model_a, model_b = (
        path if (path := folder / f"{side}.onnx").is_file() else None for side in ("model_a", "model_b")
    )
    error = reader.text("load_error.txt")
    found = (*tensors.values(), model_a, model_b, error)
    if not any(found) and not reader.problems:
        reader.problems.append(message("evidence-empty", path=str(folder), wanted=(*TENSOR_FILES, "model_a.onnx")))
    topo = reader.document("topo.json")
    order, ops = _topo(topo)
    return Evidence(
        folder=folder,
        **tensors,
        model_a=model_a,
        model_b=model_b,
        load_error=error,
        order=order,
        ops=ops,
        quant=_quant(reader.document("quant_params.json")),
        board=_board(reader.document("board.json")),
        buffers=reader.buffers(),
        post=_numbers(reader.document("post.json") or {}),
        ablation=_numbers(reader.document("ablation.json") or {}),
        link=_link(reader.document("link.json")),
        problems=tuple(reader.problems),
    )


@dataclass(frozen=True, slots=True)
class _Entry:
    """One array of an archive, or the bytes of a whole file."""

    path: Path
    member: str
    size_bytes: int


class LazyTensors(Mapping[str, Tensor]):
    """Arrays by name, each read at its first use and kept."""

    def __init__(self, entries: Mapping[str, _Entry], read: Callable[[_Entry], Tensor]) -> None:
        self._entries = dict(entries)
        self._read = read
        self._kept: dict[str, Tensor] = {}

    def __getitem__(self, name: str) -> Tensor:
        if name not in self._kept:
            self._kept[name] = self._read(self._entries[name])
        return self._kept[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


class _Reader:
    """One folder, and what is wrong in it."""

    def __init__(self, folder: Path, limit_bytes: int) -> None:
        self._folder = folder
        self._left = limit_bytes
        self._limit = limit_bytes
        self.problems: list[Message] = []

    def tensors(self, name: str) -> LazyTensors:
        """The arrays of an archive whose headers are good and that fit the limit."""
        path = self._folder / name
        if not path.is_file():
            return LazyTensors({}, _array)
        entries: dict[str, _Entry] = {}
        try:
            with zipfile.ZipFile(path) as archive:
                for member in archive.infolist():
                    self._enter(path, archive, member, entries)
        except (*DAMAGES, OSError) as error:
            self.problems.append(message("evidence-unreadable", path=name, reason=str(error)))
        return LazyTensors(entries, _array)

    def _enter(self, path: Path, archive: zipfile.ZipFile, member: zipfile.ZipInfo, entries: dict[str, _Entry]) -> None:
        tensor = member.filename.removesuffix(".npy")
        try:
            with archive.open(member) as stream:
                shape, _, dtype = member_header(stream)
        except DAMAGES as error:
            self.problems.append(message("evidence-tensor-damaged", path=path.name, tensor=tensor, reason=str(error)))
            return
        size = math.prod(shape) * dtype.itemsize
        if dtype.hasobject or dtype.kind not in NUMBERS:
            self.problems.append(message("evidence-no-numbers", path=path.name, tensor=tensor, dtype=str(dtype)))
        elif tensor in entries:
            self.problems.append(message("evidence-twice", path=path.name, tensor=tensor))
        elif self._fits(size, path.name, tensor):
            entries[tensor] = _Entry(path, member.filename, size)

    def _fits(self, size: int, path: str, tensor: str) -> bool:
        if size <= self._left:
            self._left -= size
            return True
        self.problems.append(
            message("evidence-too-large", path=path, tensor=tensor, bytes=size, limit_bytes=self._limit)
        )
        return False

    def buffers(self) -> LazyTensors:
        """`y.bin`, `uv.bin` and `raw_<output>.bin` as arrays of uint8."""
        entries = {}
        for path in sorted(self._folder.glob("*.bin")):
            if path.is_file() and (path.stem in ("y", "uv") or path.stem.startswith("raw_")):
                size = path.stat().st_size
                if self._fits(size, path.name, path.stem):
                    entries[path.stem] = _Entry(path, "", size)
        return LazyTensors(entries, _bytes)

    def text(self, name: str) -> str | None:
        """A text file; None where there is none."""
        path = self._folder / name
        if not path.is_file():
            return None
        try:
            with path.open("rb") as stream:
                return stream.read(TEXT_BYTES).decode("utf-8", "replace")
        except OSError as error:
            self.problems.append(message("evidence-unreadable", path=name, reason=error.strerror or str(error)))
            return None

    def document(self, name: str) -> dict[str, Any] | None:
        """A JSON object; None where there is none."""
        content = self.text(name)
        if content is None:
            return None
        try:
            found = json.loads(content)
        except (ValueError, RecursionError) as error:
            self.problems.append(message("evidence-unreadable", path=name, reason=str(error)))
            return None
        if not isinstance(found, dict):
            self.problems.append(message("evidence-no-object", path=name))
            return None
        return found


def _array(entry: _Entry) -> Tensor:
    try:
        with zipfile.ZipFile(entry.path) as archive:
            return read_member(archive, archive.getinfo(entry.member))
    except (*DAMAGES, OSError) as error:
        raise StorageError(
            message(
                "evidence-tensor-damaged",
                path=entry.path.name,
                tensor=entry.member.removesuffix(".npy"),
                reason=str(error),
            )
        ) from error


def _bytes(entry: _Entry) -> Tensor:
    try:
        return np.fromfile(entry.path, np.uint8, entry.size_bytes)
    except OSError as error:
        raise StorageError(
            message("evidence-unreadable", path=entry.path.name, reason=error.strerror or str(error))
        ) from error


def _number(value: object) -> float | None:
    """A finite number, else None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        found = float(value)
    except OverflowError:
        return None
    return found if math.isfinite(found) else None


def _integer(value: object) -> int | None:
    found = _number(value)
    return int(found) if found is not None and found == int(found) else None


def _integers(value: object) -> tuple[int, ...]:
    items = value if isinstance(value, list) else []
    found = tuple(_integer(item) for item in items)
    return () if None in found else tuple(item for item in found if item is not None)


def _floats(value: object) -> tuple[float, ...]:
    items = value if isinstance(value, list) else [value]
    found = tuple(_number(item) for item in items)
    return () if None in found else tuple(item for item in found if item is not None)


def _numbers(document: Mapping[str, Any]) -> dict[str, float]:
    """All numbers of an object by name, those of objects in it included."""
    found: dict[str, float] = {}
    for name, value in document.items():
        number = _number(value)
        if isinstance(value, dict):
            found.update({key: told for key, item in value.items() if (told := _number(item)) is not None})
        elif number is not None:
            found[name] = number
    return found


def _topo(document: Mapping[str, Any] | None) -> tuple[tuple[str, ...], dict[str, str]]:
    told = document or {}
    order = told.get("order")
    ops = told.get("op")
    names = tuple(name for name in order if isinstance(name, str)) if isinstance(order, list) else ()
    by_name = {key: op for key, op in ops.items() if isinstance(op, str)} if isinstance(ops, dict) else {}
    return names, by_name


def _quant(document: Mapping[str, Any] | None) -> QuantParams | None:
    if document is None:
        return None
    told_bits = document.get("bits")
    bits = _integer(told_bits) or 8
    bits = bits if 2 <= bits <= 32 else 8
    bits_of = (
        {name: told for name, value in told_bits.items() if (told := _integer(value)) and 2 <= told <= 32}
        if isinstance(told_bits, dict)
        else {}
    )
    steps: dict[str, float] = {}
    unscaled: list[str] = []
    for key in ("thresholds", "scales"):
        table = document.get(key)
        for name, value in table.items() if isinstance(table, dict) else ():
            numbers = _floats(value)
            if not numbers or min(numbers) <= 0:
                unscaled.append(name)
                continue
            levels = 2 ** (bits_of.get(name, bits) - 1) - 1
            steps[name] = max(numbers) / levels if key == "thresholds" else max(numbers)
    return QuantParams(bits, bits_of, steps, tuple(name for name in unscaled if name not in steps))


def _board(document: Mapping[str, Any] | None) -> Board | None:
    if document is None:
        return None
    told = document.get("input")
    told = told[0] if isinstance(told, list) and told else told
    given = None
    if isinstance(told, dict):
        given = BoardInput(
            type=str(told.get("type", "")),
            height=_integer(told.get("height")),
            width=_integer(told.get("width")),
            stride=_integer(told.get("stride")),
        )
    outputs = document.get("outputs")
    if isinstance(outputs, dict):
        outputs = [{"name": name, **entry} for name, entry in outputs.items() if isinstance(entry, dict)]
    entries = [entry for entry in outputs if isinstance(entry, dict)] if isinstance(outputs, list) else []
    return Board(given, tuple(_output(entry) for entry in entries))


def _output(entry: Mapping[str, Any]) -> BoardOutput:
    return BoardOutput(
        name=str(entry.get("name", "")),
        dtype=str(entry.get("dtype", "")),
        scales=_floats(entry["scale"]) if "scale" in entry else (),
        step=_number(entry.get("step")),
        axis=_integer(entry.get("quantize_axis")),
        valid_shape=_integers(entry.get("valid_shape")),
        aligned_shape=_integers(entry.get("aligned_shape")),
        strides=_integers(entry.get("stride")),
    )


def _link(document: Mapping[str, Any] | None) -> LinkNote:
    told = document or {}
    return LinkNote(
        **{key: str(told.get(key) or "") for key in ("reference", "candidate", "kind", "platform", "policy")}
    )
