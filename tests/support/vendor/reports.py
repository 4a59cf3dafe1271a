"""The reports beside the models: nodes with thresholds and cosines, quantisation, advice, estimated speed (§2)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx

from support.vendor.engine import Stages
from support.vendor.graph import LINEAR, Array
from support.vendor.integers import INTEGER_TAILS, Integers
from support.vendor.quantising import TABLES, tapped
from support.vendor.running import session, standard

COLUMNS = ("Node", "NodeType", "ON", "Threshold", "Calibrated Cosine", "Quantized Cosine", "Output Data Type")
WITHOUT_CALIBRATION = ("Node", "NodeType", "ON", "Output Data Type")
OUTPUT_COLUMNS = ("TensorName", "Calibrated Cosine", "Quantized Cosine")
#: Operators that the accelerator has no unit for.
ON_CPU = ("NonMaxSuppression", "TopK", "NonZero")
ANSWER_TYPES = {"S8": "si8", "U8": "ui8", "S32": "si32"}
#: Of the estimate: operations a microsecond, and microseconds to begin with.
SPEED, START = 1e6, 50.0


@dataclass(frozen=True, slots=True)
class NodeTables:
    """The rows of both tables; outputs have none without calibration."""

    columns: tuple[str, ...]
    nodes: tuple[tuple[str, ...], ...]
    outputs: tuple[tuple[str, ...], ...]

    @property
    def csv(self) -> str:
        """node_info.csv; a pair of types stands there without quotes."""
        return "".join(",".join(row) + "\n" for row in (self.columns, *self.nodes))


def node_tables(stages: Stages, march: str, sample: Mapping[str, Array]) -> NodeTables:
    """The node table, its cosines from running three stages on one sample."""
    plan = stages.plan
    if not plan.calibrated:
        told = tuple((name, kind, on, dtype) for name, kind, on, _, dtype in _nodes(stages, march))
        return NodeTables(WITHOUT_CALIBRATION, told, ())
    tensors = [node.output[0] for node in plan.graph.nodes]
    float_ = _run(stages.optimized_float, sample, tensors)
    fake = _run(stages.calibrated, sample, tensors)
    whole = _run_integers(stages, sample, tensors)
    rows = []
    for (name, kind, on, threshold, dtype), tensor in zip(_nodes(stages, march), tensors, strict=True):
        linear = plan.members.get(name)
        result = linear.result if linear is not None else tensor
        calibrated, quantized = cosine(float_[tensor], fake[tensor]), cosine(float_[result], whole[result])
        rows.append((name, kind, on, threshold, f"{calibrated:.6f}", f"{quantized:.6f}", dtype))
    outputs = tuple(
        (name, f"{cosine(float_[name], fake[name]):.6f}", f"{cosine(float_[name], whole[name]):.6f}")
        for name in plan.graph.outputs
    )
    return NodeTables(COLUMNS, tuple(rows), outputs)


def _nodes(stages: Stages, march: str) -> Iterator[tuple[str, str, str, str, str]]:
    """(name, type, unit, threshold of the input, type of the output)."""
    plan = stages.plan
    for node in plan.graph.nodes:
        linear = plan.members.get(node.name)
        point = plan.point(node.input[0]) if node.input else None
        fused = linear is not None and node.name != linear.node.name
        threshold = "fused" if fused else "--" if point is None else f"{plan.thresholds[point]:.7g}"
        held = stages.probe.whole.get(linear.result if linear is not None else node.output[0])
        dtype = "f32" if held is None else ANSWER_TYPES[held.dtype]
        if linear is not None and plan.is_tail(linear):
            dtype = "si32" if march in INTEGER_TAILS else "f32"
        yield node.name, node.op_type, "CPU" if node.op_type in ON_CPU else "BPU", threshold, dtype


def cosine(a: Array, b: Array) -> float:
    """The cosine of two tensors; 1 where both are zero."""
    left, right = (np.asarray(side, np.float64).reshape(-1) for side in (a, b))
    length = float(np.linalg.norm(left) * np.linalg.norm(right))
    return float(left @ right) / length if length else float(np.array_equal(left, right))


def _run(model: onnx.ModelProto, sample: Mapping[str, Array], tensors: Sequence[str]) -> dict[str, Array]:
    body = standard(tapped(model, tensors).SerializeToString())
    return dict(zip(tensors, session(body).run(list(tensors), dict(sample)), strict=True))


def _run_integers(stages: Stages, sample: Mapping[str, Array], tensors: Sequence[str]) -> dict[str, Array]:
    """The tensors of the integer network as the numbers they stand for."""
    probe = stages.probe
    outputs = {tensor.name for tensor in probe.outputs}
    names = {tensor: _place(probe.whole.get(tensor), probe.real.get(tensor), tensor) for tensor in tensors}
    taken = {tensor: name for tensor, name in names.items() if name}
    taken |= {tensor: tensor for tensor in tensors if tensor in outputs}
    made = _run(probe.model, sample, list(dict.fromkeys(taken.values())))
    found = {}
    for tensor, name in taken.items():
        held = probe.whole.get(tensor)
        found[tensor] = made[name] if held is None or name != held.name else _numbers(held, made[name])
    return found


def _place(held: Integers | None, real: str | None, tensor: str) -> str | None:
    return held.name if held is not None else real


def _numbers(held: Integers, value: Array) -> Array:
    form = [1] * value.ndim
    if held.axis is not None:
        form[held.axis] = held.scales.size
    numbers: Array = value * held.scales.reshape(form)
    return numbers


def quant_info(stages: Stages) -> str:
    """Thresholds by node. The real form is not published (toolchain facts §2.2)."""
    plan, told = stages.plan, {}
    for node in plan.graph.nodes:
        points = [point for name in plan.graph.active(node) if (point := plan.point(name))]
        if points:
            linear = plan.linears.get(node.name)
            weights = {} if linear is None else {"weight_scales": [float(step) for step in linear.step]}
            thresholds = [[float(plan.thresholds[point])] for point in points]
            told[node.name] = {"thresholds": thresholds, "qtype": "int8", "calibration_type": "max", **weights}
    return json.dumps(told, indent=2)


def advice(stages: Stages) -> str:
    """Remarks on operators whose channels or types cost time. The real form is not published."""
    remarks = []
    for node in stages.plan.graph.nodes:
        linear = stages.plan.linears.get(node.name)
        if linear is not None and linear.step.size % 8:
            said = f"{linear.step.size} output channels are padded to {-(-linear.step.size // 8) * 8}"
            remarks.append({"node": node.name, "op": node.op_type, "advice": said})
        if node.op_type in TABLES:
            remarks.append({"node": node.name, "op": node.op_type, "advice": "runs as a look-up table"})
    return json.dumps(remarks, indent=2)


def estimate(stages: Stages, march: str, cores: int, weights: int) -> dict[str, Any]:
    """The compiler's perf JSON (toolchain facts §2.5): an estimate, computed from the number of operations."""
    operations = 0
    for node in stages.plan.graph.nodes:
        linear = stages.plan.linears.get(node.name)
        if linear is not None and node.op_type in LINEAR:
            places = int(np.prod(stages.plan.graph.shapes[node.output[0]])) // linear.step.size
            operations += 2 * linear.weight.size * max(1, places)
    latency = START + operations / SPEED
    traffic = weights + sum(tensor.valid_bytes for tensor in (*stages.quantized.inputs, *stages.quantized.outputs))
    return {
        "summary": {
            "model info": {"BPU march": march, "BPU core number": cores, "original conv ops": operations},
            "performance": {"FPS": round(1e6 / latency, 2), "latency (us)": latency, "latency (ms)": latency / 1000},
            "DDR access data": {
                "DDR bytes per run": traffic,
                "DDR megabytes per run": traffic / 1e6,
                "L2M bytes per run": 0,
                "loaded bytes per run": traffic,
                "stored bytes per run": 0,
                "min memory requirement": traffic,
            },
        },
        "layer details": [],
        "interval info": [],
    }
