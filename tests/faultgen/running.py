"""Runs a model as the evidence says it is run: ONNX Runtime, one thread, no graph optimisation."""

from __future__ import annotations

from collections.abc import Sequence

import onnx
import onnxruntime as ort  # type: ignore[import-untyped]

from faultgen.planting import Array, Tensors

_LEVELS = {
    "none": ort.GraphOptimizationLevel.ORT_DISABLE_ALL,
    "extended": ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
}


def run(model: onnx.ModelProto, feeds: Tensors, taps: Sequence[str] = (), *, level: str = "none") -> dict[str, Array]:
    """The outputs and the tapped tensors by name."""
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.graph_optimization_level = _LEVELS[level]
    session = ort.InferenceSession(tapped(model, taps).SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, dict(feeds)), strict=True))


def tapped(model: onnx.ModelProto, taps: Sequence[str]) -> onnx.ModelProto:
    """The model with further outputs."""
    there = {output.name for output in model.graph.output}
    new = [name for name in dict.fromkeys(taps) if name not in there]
    if not new:
        return model
    made = onnx.ModelProto()
    made.CopyFrom(model)
    made.graph.output.extend(onnx.ValueInfoProto(name=name) for name in new)
    return made


def outputs_of(model: onnx.ModelProto) -> list[str]:
    """The names of the outputs, in order."""
    return [output.name for output in model.graph.output]


def layers_of(model: onnx.ModelProto) -> list[str]:
    """The tensors that the nodes make, in order; quantisers and constants left out."""
    hidden = ("QuantizeLinear", "DequantizeLinear", "Constant", "Shape")
    return [name for node in model.graph.node if node.op_type not in hidden for name in node.output if name]
