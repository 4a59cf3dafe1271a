"""What the board's runtime said of a model's tensors, as layouts and signatures: hrt_model_exec model_info,
hbm_runtime's query, or hbm_infer's answer, written down as text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from driftgate.domain.tensors import Quantization
from driftgate.domain.toolchain.board import BoardModel, BoardModels, BoardTensor
from driftgate.errors import ArtifactError
from driftgate.messages.message import Message, message
from driftgate.transforms.strided import Layout
from driftgate.vendor.exec_info import read_model_tensors
from driftgate.vendor.runtime_query import read_input_info, read_runtime_query

#: The board's word for a type → numpy's; types of half a byte have none.
TYPES: Mapping[str, str] = {
    "S8": "int8",
    "U8": "uint8",
    "S16": "int16",
    "U16": "uint16",
    "S32": "int32",
    "U32": "uint32",
    "S64": "int64",
    "U64": "uint64",
    "F16": "float16",
    "F32": "float32",
    "F64": "float64",
    "BOOL8": "bool",
}


def _outputs_of_infer(path: Path) -> BoardModels:
    return read_input_info(path, direction="output")


READERS: Sequence[Callable[[Path], BoardModels]] = (read_model_tensors, read_runtime_query, _outputs_of_infer)


def read_board_model(path: Path, model: str | None = None) -> BoardModel:
    """The model of that name, or the only one. Raises ArtifactError where the text describes none, or several."""
    problems: list[Message] = []
    for read in READERS:
        try:
            found = read(path)
        except ArtifactError as error:
            problems.extend(error.problems)
            continue
        names = tuple(one.name or "-" for one in found.models)
        chosen = [one for one in found.models if model is None or one.name == model]
        if len(chosen) != 1:
            raise ArtifactError(message("board-model", path=str(path), names=names, model=model or "-"))
        return chosen[0]
    raise ArtifactError(problems[0])


def tensors_of(model: BoardModel, direction: str, *, path: Path) -> tuple[BoardTensor, ...]:
    """The inputs or outputs in the model's order. Raises ArtifactError where one is not wholly told."""
    found = [tensor for tensor in model.tensors if tensor.direction == direction]
    odd = tuple(tensor.name or "?" for tensor in found if not tensor.is_whole or tensor.dtype not in TYPES)
    if odd or not found:
        raise ArtifactError(message("board-tensors", path=str(path), direction=direction, tensors=odd or ("-",)))
    return tuple(sorted(found, key=lambda tensor: -1 if tensor.index is None else tensor.index))


def layout_of(tensor: BoardTensor) -> Layout:
    """How it lies in memory; a tensor whose shape is dynamic has none, and is a ValueError."""
    shape = tuple(n for n in tensor.shape or () if n is not None)
    stride = tuple(n for n in tensor.stride or () if n is not None)
    if len(shape) != len(tensor.shape or ()) or len(stride) not in (0, len(shape)):
        raise ValueError(tensor.name)
    return Layout(TYPES[tensor.dtype or ""], shape, stride)


def quantization_of(tensor: BoardTensor) -> Quantization | None:
    """How its integers stand for numbers; None for floats, and for integers that are what they are."""
    if tensor.quantisation != "SCALE" or not tensor.scales or TYPES[tensor.dtype or ""].startswith("float"):
        return None
    axis = tensor.axis if len(tensor.scales) > 1 else None
    return Quantization(tensor.scales, tensor.zero_points or (0,), axis)
