"""Faults of tracing and exporting: constants that were values, training mode, fixed batches, missing operators, NaN."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from faultgen.graph import Graph
from faultgen.networks import IMAGE_TRUNKS, TRUNKS, Hook, attention, build, draw_feeds, draw_plan, layer_norm, pictures
from faultgen.planting import Array, Planter, Random, all_live, chance, chosen, floats, gap, need, save
from faultgen.running import layers_of, run
from faultgen.sides import two_models


def _area(g: Graph, x: str, baked: float) -> str:
    """Height times width of a tensor as a number: computed, or the constant that tracing left."""
    if baked:
        return g.constant(baked)
    shape = g.op("Shape", [x], ())
    sides = g.op("Gather", [shape, g.constant([2, 3], np.int64)], ())
    return g.op("Cast", [g.op("ReduceProd", [sides], (), keepdims=0)], (), to=onnx.TensorProto.FLOAT)


def _baked_size(random: Random, folder: Path) -> None:
    """A sum divided by the number of places; feeds of the traced and of another size, told apart by a suffix."""
    wide, opset, style = int(random.integers(4, 12)), 13, chosen(random, ("short", "torch", "number"))
    sizes = [(int(a), int(b)) for a, b in 2 * random.integers(4, 12, (2, 2))]
    need(sizes[0][0] * sizes[0][1] != sizes[1][0] * sizes[1][1])
    seed = int(random.integers(1 << 31))
    models = [_summing(seed, wide, (opset, style), baked) for baked in (0.0, float(sizes[0][0] * sizes[0][1]))]
    suffixes = chosen(random, (("_dummy", "_other"), ("_export", "_real"), ("_0", "_1")))
    inputs: dict[str, Array] = {}
    sides: tuple[dict[str, Array], dict[str, Array]] = ({}, {})
    for suffix, size in zip(suffixes, sizes, strict=True):
        x = pictures(random, 1, *size)
        inputs[f"x{suffix}"] = x
        for side, model in zip(sides, models, strict=True):
            side[f"y{suffix}"] = run(model, {"x": x})["y"]
    need(gap(*sides) >= 0.02)
    save(
        folder,
        tensors={"inputs": inputs, "outputs_a": sides[0], "outputs_b": sides[1]},
        models={"model_a": models[0], "model_b": models[1]},
    )


def _summing(seed: int, wide: int, form: tuple[int, str], baked: float) -> onnx.ModelProto:
    g = Graph(np.random.default_rng(seed), opset=form[0], style=form[1], batch=1)
    x = g.take("x", (3, 8, 8))
    y = g.act(g.conv(x, wide), "Relu")
    total = g.op("ReduceSum", [y, g.constant([2, 3], np.int64)], (wide,), keepdims=0)
    g.rename(g.dense(g.op("Div", [total, _area(g, y, baked)], (wide,)), int(g.random.integers(3, 8))), "y")
    model = g.model(["y"], inferred=False)
    shape = model.graph.input[0].type.tensor_type.shape
    shape.dim[2].dim_param, shape.dim[3].dim_param = "H", "W"
    return model


def _baked_value(random: Random, folder: Path) -> None:
    """A factor that depends on the sample, recorded from the first one: later samples get the first one's."""
    plan = replace(draw_plan(random, TRUNKS), samples=int(random.integers(2, 5)), fixed_batch=False)
    feeds = draw_feeds(random, plan)
    kind = chosen(random, ("ReduceMax", "ReduceL2", "ReduceMean" if plan.is_image else "ReduceMax"))
    x = feeds[plan.input_name] * random.uniform(0.3, 1.5, (plan.samples, *(1,) * len(plan.input_shape)))
    feeds = {plan.input_name: floats(x)}
    value = _level(kind, feeds[plan.input_name][:1])

    def before(g: Graph, x: str, *, is_baked: bool) -> str:
        axes = list(range(1, len(plan.input_shape) + 1))
        level = g.constant(value) if is_baked else _reduced(g, kind, x, axes)
        return g.op("Div", [x, level])

    models = [build(plan, before=partial(before, is_baked=told)) for told in (False, True)]
    need(
        gap(
            run(models[0], {plan.input_name: x[:1].astype(np.float32)}),
            run(models[1], {plan.input_name: x[:1].astype(np.float32)}),
        )
        < 1e-4
    )
    two_models(random, folder, (models[0], models[1]), feeds)


def _reduced(g: Graph, kind: str, x: str, axes: list[int]) -> str:
    return g.op(kind, [x], (1,) * len(axes), axes=axes, keepdims=1)


def _level(kind: str, x: Array) -> float:
    made: dict[str, Callable[[Array], Any]] = {"ReduceMax": np.max, "ReduceMean": np.mean, "ReduceL2": np.linalg.norm}
    return float(made[kind](x.astype(np.float64)))


def _batch_statistics(random: Random, folder: Path) -> None:
    """The reference's batch norms took the statistics of the batch."""
    plan = replace(draw_plan(random, IMAGE_TRUNKS), samples=int(random.integers(2, 5)), fixed_batch=False)

    def middle(g: Graph, x: str, *, is_training: bool) -> str:
        count = g.shape[x][0]
        gain, shift, mean, variance = (
            g.random.uniform(0.6, 1.4, count),
            g.random.normal(0, 0.3, count),
            g.random.normal(0, 0.3, count),
            g.random.uniform(0.4, 2.0, count),
        )
        y = g.conv(x, count, bias=False)
        if not is_training:
            return g.op(
                "BatchNormalization", [y, *(g.constant(v) for v in (gain, shift, mean, variance))], epsilon=1e-5
            )
        centred = g.op("Sub", [y, g.op("ReduceMean", [y], axes=[0, 2, 3], keepdims=1)])
        spread = g.op("ReduceMean", [g.op("Mul", [centred, centred])], axes=[0, 2, 3], keepdims=1)
        spread = g.op("Sqrt", [g.op("Add", [spread, g.constant(1e-5)])])
        y = g.op("Mul", [g.op("Div", [centred, spread]), g.constant(gain.reshape(1, -1, 1, 1))])
        return g.op("Add", [y, g.constant(shift.reshape(1, -1, 1, 1))])

    models = [build(plan, middle=partial(middle, is_training=told)) for told in (True, False)]
    two_models(random, folder, (models[0], models[1]), draw_feeds(random, plan))


def _dropout(random: Random, folder: Path) -> None:
    """The reference dropped activations; its file says so, its outputs came from one such run."""
    plan = draw_plan(random, TRUNKS)
    seed, ratio = int(random.integers(1000)), float(chosen(random, (0.1, 0.3, 0.5)))

    def middle(g: Graph, x: str, *, is_training: bool) -> str:
        switch = g.constant(is_training, np.bool_)
        return g.op("Dropout", [x, g.constant(ratio), switch], seed=seed)

    models = [build(plan, middle=partial(middle, is_training=told)) for told in (True, False)]
    two_models(random, folder, (models[0], models[1]), draw_feeds(random, plan))


def _mixed_batch(random: Random, folder: Path) -> None:
    """The batch size of the export (1) is baked into a reshape: the tokens of all samples attend to one another."""
    plan = replace(draw_plan(random, ("transformer",)), samples=int(random.integers(2, 5)), fixed_batch=False)

    def middle(g: Graph, x: str, *, is_mixed: bool) -> str:
        y = layer_norm(g, x)
        if not is_mixed:
            return g.op("Add", [x, attention(g, y)])
        one = g.op("Reshape", [y, g.constant([1, -1, plan.wide], np.int64)])
        back = g.op("Reshape", [attention(g, one), g.constant([-1, *g.shape[x]], np.int64)])
        return g.op("Add", [x, back])

    models = [build(plan, middle=partial(middle, is_mixed=told)) for told in (False, True)]
    two_models(random, folder, (models[0], models[1]), draw_feeds(random, plan))


def _one_only(random: Random, folder: Path) -> None:
    """B was exported for one sample and is given several; what the runtime said lies there."""
    plan = replace(draw_plan(random, TRUNKS), samples=int(random.integers(2, 5)), fixed_batch=False)
    feeds = draw_feeds(random, plan)
    model, other = build(plan), build(replace(plan, fixed_batch=True, samples=1))
    told = (
        "InvalidArgument: [ONNXRuntimeError] : 2 : INVALID_ARGUMENT : Got invalid dimensions for input: "
        f"{plan.input_name} for the following indices\n index: 0 Got: {plan.samples} Expected: 1\n"
        " Please fix either the inputs/outputs or the model.\n"
    )
    outputs = run(model, feeds)
    need(all_live(outputs))
    save(
        folder,
        tensors={"inputs": feeds, "outputs_a": outputs},
        models={"model_a": model, "model_b": other},
        buffers={"load_error.txt": told.encode()},
    )


_CUSTOM = (
    ("mmdeploy", "MMCVModulatedDeformConv2d"),
    ("horizon.custom", "GridSampleExt"),
    ("com.acme", "FusedBias"),
    ("mmcv", "RoIAlignRotated"),
    ("torch_scatter", "ScatterMax"),
)
_SAYINGS = (
    "[ONNXRuntimeError] : 1 : FAIL : Load model failed: Fatal error: {0}:{1}(-1) is not a registered function/op\n",
    "stage: onnx load\nmessage: operator {0}:{1} has no registered kernel\n",
    "[ONNXRuntimeError] : 9 : NOT_IMPLEMENTED : Could not find an implementation for {1}(1) node with name '{2}'\n",
    "ERROR hb_compile: unsupported op type {1} in domain {0}, node {2}\n",
)


def _custom(random: Random, folder: Path) -> None:
    plan = draw_plan(random, TRUNKS)
    feeds = draw_feeds(random, plan)
    domain, kind = chosen(random, _CUSTOM)

    def middle(g: Graph, x: str) -> str:
        return g.op(kind, [x, g.constant(1.0)], domain=domain)

    model, other = build(plan), build(plan, middle=middle)
    node = next(node.name for node in other.graph.node if node.op_type == kind)
    outputs = run(model, feeds)
    need(all_live(outputs))
    save(
        folder,
        tensors={"inputs": feeds, "outputs_a": outputs},
        models={"model_a": model, "model_b": other},
        buffers={"load_error.txt": chosen(random, _SAYINGS).format(domain, kind, node).encode()},
    )


def _masked(random: Random) -> tuple[tuple[Hook, Hook], str]:
    """Attention with a mask whose blocked row is -inf on B's side and large on A's."""
    row = int(random.integers(8))
    low = float(chosen(random, (-1e4, -100.0)))

    def hook(value: float) -> Hook:
        def middle(g: Graph, x: str) -> str:
            tokens = g.shape[x][0]
            mask = np.zeros((tokens, tokens))
            mask[row % tokens] = value
            return attention(g, x, g.constant(mask))

        return middle

    return (hook(low), hook(-np.inf)), "transformer"


def _guarded(random: Random) -> tuple[tuple[Hook, Hook], str]:
    """A division, root or logarithm whose guard got lost at export."""
    kind = chosen(random, ("Div", "Log", "Sqrt"))
    trunk = chosen(random, (*IMAGE_TRUNKS, "mlp"))

    def hook(small: float) -> Hook:
        def middle(g: Graph, x: str) -> str:
            y = g.op("Relu", [x])
            guarded = g.op("Add", [y, g.constant(small)]) if small else y
            if kind == "Div":
                return g.op("Div", [y, guarded])
            if kind == "Log":
                return g.op("Log", [guarded])
            return g.op("Sqrt", [guarded if small else g.op("Sub", [x, g.constant(0.1)])])

        return middle

    return (hook(float(chosen(random, (1e-3, 1e-2)))), hook(0.0)), trunk


def _not_finite(random: Random, folder: Path) -> None:
    hooks, trunk = chosen(random, (_masked, _guarded))(random)
    plan = draw_plan(random, (trunk,))
    models = [build(plan, middle=hook) for hook in hooks]
    feeds = draw_feeds(random, plan)
    layers = chance(random, 0.5)
    a, b = (run(model, feeds, layers_of(model) if layers else ()) for model in models)
    names = [output.name for output in models[0].graph.output]
    outputs = [{name: side[name] for name in names} for side in (a, b)]
    need(all_live(outputs[0]) and not all(np.isfinite(array).all() for array in outputs[1].values()))
    save(
        folder,
        tensors={
            "inputs": feeds,
            "outputs_a": outputs[0],
            "outputs_b": outputs[1],
            "layers_a": a if layers else None,
            "layers_b": b if layers else None,
        },
        models={"model_a": models[0], "model_b": models[1]},
    )


PLANTERS = (
    Planter("trace-constant-baked", "graph", _baked_size, variant="size"),
    Planter("trace-constant-baked", "graph", _baked_value, variant="value"),
    Planter("train-mode-export", "graph", _batch_statistics, variant="statistics"),
    Planter("train-mode-export", "graph", _dropout, variant="dropout"),
    Planter("batch-shape-mismatch", "graph", _mixed_batch, variant="mixed"),
    Planter("batch-shape-mismatch", "graph", _one_only, variant="refused"),
    Planter("custom-op-missing", "graph", _custom),
    Planter("nan-output", "graph", _not_finite),
)
