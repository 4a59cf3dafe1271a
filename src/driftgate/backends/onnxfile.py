"""What an ONNX file says of itself without being run: its parts, its operators, the steps of its outputs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import onnx
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from onnx import numpy_helper

from driftgate.errors import ArtifactError, BackendError, LoadRefused
from driftgate.messages.message import Message, message

#: Operator sets that ONNX Runtime brings along.
STANDARD_DOMAINS = frozenset(
    {
        *("", "ai.onnx", "ai.onnx.ml", "ai.onnx.training", "ai.onnx.preview.training", "ai.onnx.preview"),
        *("com.microsoft", "com.microsoft.nchwc", "com.microsoft.experimental", "com.microsoft.dml"),
        *("com.ms.internal.nhwc", "org.pytorch.aten"),
    }
)
#: What marks operators that only the vendor's own runtime executes (toolchain facts §4.2).
VENDOR_DOMAIN_PARTS = ("horizon", "hmct", "hbdk")
VENDOR_OPERATOR_PREFIX = "Hz"
#: Operators that hand values on unchanged, so that the step of their input is the step of their output.
SHAPE_OPERATORS = frozenset({"Identity", "Reshape", "Flatten", "Transpose", "Squeeze", "Unsqueeze"})

_FIRST_IR_WITH_OPSETS = 3


@dataclass(frozen=True, slots=True)
class OnnxFile:
    """A parsed model without its external data; `folder` is where that lies."""

    path: Path
    model: onnx.ModelProto

    @property
    def folder(self) -> Path:
        """The folder that external data is relative to."""
        return self.path.absolute().parent

    def parts(self) -> tuple[tuple[str, Path], ...]:
        """The file itself under the name "", and each file of external data under the name the model uses.

        Raises ArtifactError, with all problems, for parts that are missing, too short or outside of the folder.
        """
        ends: dict[str, int] = {}
        for tensor in _tensors(self.model):
            if tensor.data_location == onnx.TensorProto.EXTERNAL:
                entries = {entry.key: entry.value for entry in tensor.external_data}
                location = entries.get("location", "")
                end = int(entries.get("offset", 0)) + int(entries.get("length", 0))
                ends[location] = max(ends.get(location, 0), end)
        problems = [problem for location, end in sorted(ends.items()) if (problem := self._part_problem(location, end))]
        if problems:
            raise ArtifactError(*problems)
        return (("", self.path), *((location, self.folder / location) for location in sorted(ends)))

    def _part_problem(self, location: str, end: int) -> Message | None:
        inside = PurePosixPath(location)
        if not location or inside.is_absolute() or ".." in inside.parts:
            return message("onnx-external-outside", path=str(self.path), location=location)
        part = self.folder / location
        if not part.is_file():
            return message("onnx-external-missing", path=str(self.path), location=location, folder=str(self.folder))
        size = part.stat().st_size
        if size < end:
            return message("onnx-external-short", path=str(self.path), location=location, bytes=size, wanted=end)
        return None

    def check_operators(self) -> None:
        """Raise for the first operator that neither ONNX Runtime nor the model itself defines.

        ArtifactError if only the vendor's runtime has it, LoadRefused otherwise.
        """
        own = {(function.domain, function.name) for function in self.model.functions}
        for node in _nodes(self.model):
            if node.domain in STANDARD_DOMAINS or (node.domain, node.op_type) in own:
                continue
            said = {"path": str(self.path), "node": _label(node), "operator": node.op_type, "domain": node.domain}
            vendor = any(part in node.domain.lower() for part in VENDOR_DOMAIN_PARTS)
            if vendor or node.op_type.startswith(VENDOR_OPERATOR_PREFIX):
                raise ArtifactError(message("onnx-vendor-operator", **said))
            raise LoadRefused(message("onnx-unknown-domain", **said))

    def has_foreign_operators(self) -> bool:
        """Whether an operator is neither ONNX's nor ONNX Runtime's nor a function of the model."""
        try:
            self.check_operators()
        except (ArtifactError, LoadRefused):
            return True
        return False

    def steps(self, names: Iterable[str]) -> dict[str, float]:
        """The size of one LSB of those tensors that come out of a DequantizeLinear with a constant scalar scale."""
        producers = {name: node for node in self.model.graph.node for name in node.output if name}
        constants = {tensor.name: tensor for tensor in self.model.graph.initializer}
        found = {name: self._step(name, producers, constants) for name in names}
        return {name: step for name, step in found.items() if step is not None}

    def _step(
        self, name: str, producers: Mapping[str, onnx.NodeProto], constants: Mapping[str, onnx.TensorProto]
    ) -> float | None:
        node = producers.get(name)
        while node is not None and node.op_type in SHAPE_OPERATORS and node.domain in STANDARD_DOMAINS:
            node = producers.get(node.input[0])
        if node is None or node.op_type != "DequantizeLinear" or node.domain not in STANDARD_DOMAINS:
            return None
        scale = _constant(node.input[1], producers, constants)
        if scale is None or any(length != 1 for length in scale.dims):
            return None
        step = float(numpy_helper.to_array(scale, str(self.folder)).reshape(()))
        return step if 0 < step < float("inf") else None

    def ranked(self) -> frozenset[str]:
        """The inputs and outputs whose rank the file declares, be it 0."""
        values = (*self.model.graph.input, *self.model.graph.output)
        return frozenset(value.name for value in values if value.type.tensor_type.HasField("shape"))

    def tapped(self, taps: Sequence[str]) -> bytes:
        """The model with further outputs, as bytes without its external data; no shape or type is touched.

        Raises BackendError with the names that no tensor of the main graph has.
        """
        graph = self.model.graph
        known = {name for node in graph.node for name in node.output if name}
        known.update(value.name for value in (*graph.input, *graph.initializer))
        unknown = tuple(tap for tap in dict.fromkeys(taps) if tap not in known)
        if unknown:
            raise BackendError(message("onnx-tap-unknown", path=str(self.path), taps=unknown))
        outputs = {output.name for output in graph.output}
        wanted = [onnx.ValueInfoProto(name=tap) for tap in dict.fromkeys(taps) if tap not in outputs]
        graph.output.extend(wanted)
        try:
            return bytes(self.model.SerializeToString())
        finally:
            del graph.output[len(graph.output) - len(wanted) :]


def read_onnx(path: Path) -> OnnxFile:
    """Parse a model without its external data. Raises ArtifactError for anything that is no whole ONNX file."""
    try:
        model = onnx.load(str(path), format="protobuf", load_external_data=False)
    except FileNotFoundError as error:
        raise ArtifactError(message("artifact-missing", path=str(path))) from error
    except OSError as error:
        reason = error.strerror or str(error)
        raise ArtifactError(message("artifact-unreadable", path=str(path), reason=reason)) from error
    except DecodeError as error:
        raise ArtifactError(message("onnx-damaged", path=str(path))) from error
    whole = model.ir_version > 0 and model.HasField("graph") and len(model.graph.output) > 0
    if not whole or (model.ir_version >= _FIRST_IR_WITH_OPSETS and not model.opset_import):
        raise ArtifactError(message("onnx-damaged", path=str(path)))
    return OnnxFile(path, model)


def consumers(path: Path) -> dict[str, tuple[str, ...]]:
    """Names of the main graph's nodes, each with the nodes that read what it makes. Raises ArtifactError."""
    nodes = read_onnx(path).model.graph.node
    maker = {tensor: _label(node) for node in nodes for tensor in node.output if tensor}
    found: dict[str, dict[str, None]] = {_label(node): {} for node in nodes}
    for node in nodes:
        for tensor in node.input:
            if tensor in maker:
                found[maker[tensor]][_label(node)] = None
    return {name: tuple(behind) for name, behind in found.items()}


def names_read(model: onnx.ModelProto) -> frozenset[str]:
    """The names of all tensors that a node, a sub-graph's output or an output of the model takes."""
    graphs = tuple(_graphs(model.graph))
    read = {name for graph in graphs for node in graph.node for name in node.input}
    return frozenset(read.union(output.name for graph in graphs for output in graph.output))


def _constant(
    name: str, producers: Mapping[str, onnx.NodeProto], constants: Mapping[str, onnx.TensorProto]
) -> onnx.TensorProto | None:
    if name in constants:
        return constants[name]
    node = producers.get(name)
    if node is None or node.op_type != "Constant" or not node.attribute:
        return None
    attribute = node.attribute[0]
    if attribute.name == "value_float":
        return onnx.helper.make_tensor(name, onnx.TensorProto.FLOAT, (), (attribute.f,))
    tensor: onnx.TensorProto = attribute.t
    return tensor if attribute.name == "value" else None


def _label(node: onnx.NodeProto) -> str:
    """A node's name, or that of the first tensor it makes."""
    return node.name or next((name for name in node.output if name), node.op_type)


def _graphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    yield graph
    for node in graph.node:
        yield from _subgraphs(node)


def _subgraphs(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    for attribute in node.attribute:
        for graph in (*((attribute.g,) if attribute.HasField("g") else ()), *attribute.graphs):
            yield from _graphs(graph)


def _nodes(model: onnx.ModelProto) -> Iterator[onnx.NodeProto]:
    for graph in _graphs(model.graph):
        yield from graph.node
    for function in model.functions:
        for node in function.node:
            yield node
            for graph in _subgraphs(node):
                yield from graph.node


def _tensors(model: onnx.ModelProto) -> Iterator[onnx.TensorProto]:
    graphs = [*_graphs(model.graph)]
    graphs.extend(graph for function in model.functions for node in function.node for graph in _subgraphs(node))
    for graph in graphs:
        yield from graph.initializer
        for sparse in graph.sparse_initializer:
            yield from (sparse.values, sparse.indices)
    for node in _nodes(model):
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t
            yield from attribute.tensors
