"""Faults of the device: operators computed wrong, versions, environments, other data, old files; and rounding."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx

from faultgen.calibrations import open_plan
from faultgen.networks import TRUNKS, build, draw_feeds, draw_plan
from faultgen.planting import Array, Planter, Random, all_live, chance, chosen, floats, gap, need, save
from faultgen.quantiser import WEIGHT_FORMS, constants_of, copied, points, quantised, ranges, step_of, with_pairs
from faultgen.running import layers_of, outputs_of, run

_DAMAGED = (
    "Conv",
    "Gemm",
    "MatMul",
    "Resize",
    "Add",
    "Mul",
    "Sigmoid",
    "GlobalAveragePool",
    "Relu",
    "LeakyRelu",
    "Softmax",
)


def _broken(random: Random, array: Array) -> Array:
    """What a wrong kernel makes of a result (samples, channels, …): of all of it or of some channels."""
    channels = array.shape[1]
    hit = np.arange(channels) if chance(random, 0.5) else random.choice(channels, max(1, channels // 4), replace=False)
    made = array.astype(np.float64).copy()
    part = made[:, hit]
    way = chosen(random, ("shift", "gain", "stuck", "flip", "noise", "clip"))
    if way == "shift":
        part = np.roll(part, 1, axis=-1) if part.shape[-1] > 1 else part * 1.5
    elif way == "gain":
        part = part * random.uniform(0.3, 2.5, (1, len(hit), *(1,) * (array.ndim - 2)))
    elif way == "stuck":
        part = np.zeros_like(part)
    elif way == "flip":
        part = part[..., ::-1] if part.shape[-1] > 1 else -part
    elif way == "noise":
        part = part + random.normal(0, 0.5 * array.std() + 1e-3, part.shape)
    else:
        part = np.clip(part, -0.4 * np.abs(part).max(), 0.4 * np.abs(part).max())
    made[:, hit] = part
    return floats(made)


def _wrong_operator(random: Random, folder: Path) -> None:
    """One operator's result is wrong on the board; all that follows is computed from it. Both sides were tapped."""
    plan = draw_plan(random, TRUNKS)
    model, feeds = build(plan), draw_feeds(random, plan)
    layers = layers_of(model)
    a = run(model, feeds, layers)
    node = chosen(
        random,
        [
            n
            for n in model.graph.node
            if n.op_type in _DAMAGED and a[n.output[0]].ndim > 1 and a[n.output[0]].shape[0] == plan.samples
        ],
    )
    name = node.output[0]
    wrong = _broken(random, a[name])
    need(gap({name: a[name]}, {name: wrong}) > 0.05)
    b = {**a, **_from(model, {**feeds, **a}, name, wrong, layers)}
    names = outputs_of(model)
    sides = [{key: side[key] for key in names} for side in (a, b)]
    need(all_live(sides[0]) and gap(sides[0], sides[1]) >= 0.02)
    topo = {"order": layers, "op": {out: n.op_type for n in model.graph.node for out in n.output}}
    save(
        folder,
        tensors={"inputs": feeds, "outputs_a": sides[0], "outputs_b": sides[1], "layers_a": a, "layers_b": b},
        models={"model_a": model if chance(random, 0.7) else None},
        documents={"topo": topo},
    )


def _from(
    model: onnx.ModelProto, known: dict[str, Array], name: str, value: Array, layers: list[str]
) -> dict[str, Array]:
    """All tensors behind one whose value is given; the others as known."""
    part = copied(model)
    after: set[str] = {name}
    kept = []
    for node in part.graph.node:
        if node.output[0] != name and after.intersection(node.input):
            after.update(node.output)
            kept.append(copied_node(node))
    made = {out for node in kept for out in node.output}
    constant = constants_of(model)
    read = {key for node in kept for key in node.input if key and key not in made and key not in constant}
    del part.graph.node[:]
    part.graph.node.extend(kept)
    del part.graph.input[:]
    del part.graph.output[:]
    del part.graph.value_info[:]
    fed = {key: value if key == name else known[key] for key in read}
    part.graph.input.extend(value_info(key, array) for key, array in fed.items())
    wanted = [key for key in layers if key in made]
    if not wanted:
        return {name: value}
    return {name: value, **run(part, fed, wanted)}


def value_info(name: str, array: Array) -> onnx.ValueInfoProto:
    """A float input of an array's shape."""
    return onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, array.shape)


def copied_node(node: onnx.NodeProto) -> onnx.NodeProto:
    """A node that belongs to no graph yet."""
    made = onnx.NodeProto()
    made.CopyFrom(node)
    return made


_VERSIONS = (
    "[HBRT] model built by hbdk {0} needs runtime >= {0}, found runtime {1}\n",
    "E hbDNN: load model failed, model version {0} is newer than library version {1}. Please upgrade the runtime.\n",
    "hrt_model_exec: HBM file version mismatch: compiled with HBDK {0}, libhbrt is {1}; error code -6000002\n",
    "[BPU_PLAT] incompatible: toolchain {0} / BSP runtime {1}, model cannot be loaded\n",
)


def _newer_toolchain(random: Random, folder: Path) -> None:
    plan = draw_plan(random, TRUNKS)
    model, feeds = build(plan), draw_feeds(random, plan)
    outputs = run(model, feeds)
    need(all_live(outputs))
    old = [int(value) for value in random.integers((3, 0, 0), (5, 10, 30))]
    new = [old[0], old[1] + int(random.integers(1, 6)), int(random.integers(0, 30))]
    told = [".".join(str(part) for part in version) for version in (new, old)]
    save(
        folder,
        tensors={"inputs": feeds, "outputs_a": outputs},
        models={"model_a": model},
        buffers={"load_error.txt": chosen(random, _VERSIONS).format(*told).encode()},
    )


def _other_environment(random: Random, folder: Path) -> None:
    """The very same file gives other numbers on another machine: its arithmetic keeps fewer bits of every product."""
    plan = draw_plan(random, TRUNKS)
    model, feeds = build(plan), draw_feeds(random, plan)
    a = run(model, feeds)
    drop = int(random.integers(17, 20))
    weak = copied(model)
    for tensor in weak.graph.initializer:
        array = onnx.numpy_helper.to_array(tensor)
        if array.dtype == np.float32 and array.ndim > 1:
            tensor.CopyFrom(onnx.numpy_helper.from_array(_shortened(array, drop), tensor.name))
    b = run(weak, {name: _shortened(array, drop) for name, array in feeds.items()})
    need(all_live(a) and gap(a, b) >= 0.02)
    save(folder, tensors={"inputs": feeds, "outputs_a": a, "outputs_b": b}, models={"model_a": model, "model_b": model})


def _shortened(array: Array, bits: int) -> Array:
    """float32 with the last bits of the mantissa cut off."""
    kept = np.uint32((0xFFFFFFFF << bits) & 0xFFFFFFFF)
    made: Array = (np.ascontiguousarray(array, np.float32).view(np.uint32) & kept).view(np.float32)
    return made


def _one_step(random: Random, folder: Path) -> None:
    """A few elements differ by exactly one step of the output's scale."""
    plan = open_plan(random)
    model, feeds = build(plan), draw_feeds(random, plan)
    names = outputs_of(model)
    thresholds = ranges(model, draw_feeds(random, plan, 8), names if chance(random, 0.5) else points(model))
    model_q = with_pairs(model, thresholds)
    a, b = run(model_q, feeds), {}
    share = float(random.uniform(0.005, 0.06))
    for name in names:
        moved = random.choice([-1, 0, 1], a[name].shape, p=(share / 2, 1 - share, share / 2))
        b[name] = floats(a[name] + moved * np.float32(step_of(thresholds[name])))
    need(all_live(a) and any((a[name] != b[name]).any() for name in names))
    entries = [{"name": name, "step": step_of(thresholds[name])} for name in names]
    save(
        folder,
        tensors={"inputs": feeds, "outputs_a": a, "outputs_b": b},
        models={"model_a": model_q},
        documents={"board": {"outputs": entries}},
    )


def _other_data(random: Random, folder: Path) -> None:
    """The candidate got other samples: of another folder, or the same ones in another order."""
    plan = draw_plan(random, TRUNKS)
    model, feeds = build(plan), draw_feeds(random, plan)
    if chance(random, 0.5) and plan.samples > 1:
        other = {name: np.roll(x, 1, axis=0) for name, x in feeds.items()}
    else:
        other = draw_feeds(random, plan)
    a, b = run(model, feeds), run(model, other)
    need(all_live(a) and gap(a, b) >= 0.02)
    save(
        folder,
        tensors={"inputs": feeds, "inputs_b": other, "outputs_a": a, "outputs_b": b},
        models={"model_a": model, "model_b": model if chance(random, 0.7) else None},
    )


def _stale(random: Random, folder: Path) -> None:
    """What is said to come from the INT8 file is, bit for bit, what the float file gives."""
    plan = open_plan(random)
    model, feeds = build(plan), draw_feeds(random, plan)
    other, thresholds = quantised(model, draw_feeds(random, plan, 8), form=chosen(random, WEIGHT_FORMS))
    a = run(model, feeds)
    need(all_live(a) and gap(a, run(other, feeds)) > 1e-3)
    link = {"reference": "optimized_float", "candidate": chosen(random, ("calibrated", "ptq")), "kind": "lossy"}
    params = {"method": "max", "bits": 8, "symmetric": True, "thresholds": thresholds}
    save(
        folder,
        tensors={"inputs": feeds, "outputs_a": a, "outputs_b": a},
        models={"model_a": model, "model_b": other},
        documents={
            "link": link if chance(random, 0.6) else None,
            "quant_params": params if chance(random, 0.5) else None,
        },
    )


PLANTERS = (
    Planter("device-op-error", "device", _wrong_operator),
    Planter("toolchain-version-mismatch", "device", _newer_toolchain),
    Planter("environment-drift", "device", _other_environment),
    Planter("rounding-lsb", "device", _one_step),
    Planter("input-mismatch", "device", _other_data),
    Planter("stale-artifact", "device", _stale),
)
