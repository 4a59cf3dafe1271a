"""Faults of integer arithmetic: sums that saturate too early, values that wrap around."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from faultgen.calibrations import LOSS, open_plan
from faultgen.networks import build, draw_feeds
from faultgen.planting import Array, Planter, Random, all_live, chance, floats, gap, need, save
from faultgen.quantiser import params, points, ranges, rounded_weight, step_of, with_pairs
from faultgen.running import run


def _saturating_sums(random: Random, folder: Path) -> None:
    """Pairs of uint8 × int8 products saturate at 16 bits; the Q/DQ file itself computes right."""
    come, hidden, out = (int(value) for value in random.integers((16, 16, 3), (49, 49, 9)))
    samples = int(random.integers(1, 9))
    come, hidden = 2 * (come // 2), 2 * (hidden // 2)
    weights = [random.normal(0.15, 0.3, shape) for shape in ((come, hidden), (hidden, out))]
    biases = [random.normal(0, 0.3, size) for size in (hidden, out)]
    x = random.uniform(0, 1, (samples, come)).astype(np.float32)
    x[random.random(x.shape) < 0.5] = 1.0
    inner = np.maximum(x @ weights[0] + biases[0], 0)
    steps = [1 / 255, float(inner.max()) / 255]
    levels = [rounded_weight(w.astype(np.float32), None) for w in weights]
    model, other = _two_layers(weights, biases, None), _two_layers(weights, biases, (steps, levels))

    def saturated(values: Array, number: int) -> Array:
        codes = np.clip(np.rint(values / np.float32(steps[number])), 0, 255)
        products = codes[:, :, None] * levels[number][0][None]
        pairs = np.clip(products[:, 0::2] + products[:, 1::2], -32768, 32767).sum(1)
        made: Array = pairs * steps[number] * float(levels[number][1].reshape(-1)[0]) + biases[number]
        return made

    feeds: dict[str, Array] = {"x": x}
    a, healthy = run(model, feeds), run(other, feeds)
    b = {"y": floats(saturated(np.maximum(saturated(x, 0), 0), 1))}
    need(all_live(a) and gap(a, healthy) < 0.05 and gap(a, b) > LOSS)
    integers = {f"w{number}": level[0].astype(np.int8) for number, level in enumerate(levels)}
    save(
        folder,
        tensors={
            "inputs": feeds,
            "outputs_a": a,
            "outputs_b": b,
            "weights_int8": integers if chance(random, 0.6) else None,
        },
        models={"model_a": model, "model_b": other},
    )


def _two_layers(
    weights: list[Array], biases: list[Array], form: tuple[list[float], list[tuple[Array, Array]]] | None
) -> onnx.ModelProto:
    """x → relu(x w0 + b0) w1 + b1; with uint8 activations and int8 weights in Q/DQ form where `form` gives them."""
    nodes: list[onnx.NodeProto] = []
    tensors = [numpy_helper.from_array(b.astype(np.float32), f"b{n}") for n, b in enumerate(biases)]
    for number, source in enumerate(("x", "r")):
        read = source
        if form is None:
            tensors.append(numpy_helper.from_array(weights[number].astype(np.float32), f"w{number}"))
        else:
            steps, levels = form
            scale = np.float32(levels[number][1].reshape(-1)[0])
            for name, value in (
                (f"{source}_s", np.float32(steps[number])),
                (f"{source}_z", np.uint8(0)),
                (f"w{number}_q", levels[number][0].astype(np.int8)),
                (f"w{number}_s", scale),
            ):
                tensors.append(numpy_helper.from_array(np.asarray(value), name))
            pair = [f"{source}_s", f"{source}_z"]
            nodes.append(helper.make_node("QuantizeLinear", [source, *pair], [f"{source}_q"], name=f"q{number}"))
            nodes.append(
                helper.make_node("DequantizeLinear", [f"{source}_q", *pair], [f"{source}_dq"], name=f"dq{number}")
            )
            nodes.append(
                helper.make_node(
                    "DequantizeLinear", [f"w{number}_q", f"w{number}_s"], [f"w{number}"], name=f"wdq{number}"
                )
            )
            read = f"{source}_dq"
        nodes.append(helper.make_node("MatMul", [read, f"w{number}"], [f"m{number}"], name=f"matmul{number}"))
        nodes.append(
            helper.make_node("Add", [f"m{number}", f"b{number}"], ["h" if number == 0 else "y"], name=f"add{number}")
        )
        if number == 0:
            nodes.append(helper.make_node("Relu", ["h"], ["r"], name="relu"))
    ends = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", size])
        for name, size in (("x", len(weights[0])), ("y", weights[1].shape[1]))
    ]
    graph = helper.make_graph(nodes, "net", ends[:1], ends[1:], tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


def _wrapped(random: Random, folder: Path) -> None:
    """The board's integers wrap around where they should stop at 127."""
    plan = open_plan(random, outputs=1)
    model, name = build(plan), plan.output_names[0]
    calib, feeds = draw_feeds(random, plan, 8), draw_feeds(random, plan)
    thresholds = ranges(model, calib, points(model))
    thresholds[name] *= float(random.uniform(0.5, 0.8))
    other = with_pairs(model, thresholds)
    step = step_of(thresholds[name])
    before = run(with_pairs(model, {key: value for key, value in thresholds.items() if key != name}), feeds)[name]
    a = run(other, feeds)
    b = {name: floats(np.rint(before / step).astype(np.int32).astype(np.int8) * np.float32(step))}
    need(all_live(a) and gap(a, b) > 0.05)
    board = {"outputs": [{"name": name, "dtype": "int8", "quanti_type": "SCALE", "scale": step}]}
    save(
        folder,
        tensors={"inputs": feeds, "outputs_a": a, "outputs_b": b},
        models={"model_a": other},
        documents={"board": board, "quant_params": params(thresholds)},
    )


PLANTERS = (
    Planter("accumulator-saturation", "quantisation", _saturating_sums),
    Planter("int8-wraparound", "quantisation", _wrapped),
)
