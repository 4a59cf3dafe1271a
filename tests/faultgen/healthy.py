"""Pairs without a fault: float noise, ordinary INT8, dumps in another layout, boards read rightly."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx

from faultgen import calibrations, nv12, outputs, rewrites
from faultgen.calibrations import open_plan, quantised_link
from faultgen.networks import IMAGE_TRUNKS, TRUNKS, build, draw_feeds, draw_plan
from faultgen.planting import Planter, Random, all_live, chance, chosen, floats, gap, need, planted, save
from faultgen.quantiser import WEIGHT_FORMS, quantised
from faultgen.running import run


def _optimised(random: Random, folder: Path) -> None:
    """The same file, run with the runtime's own rewrites on B's side."""
    plan = draw_plan(random, TRUNKS)
    model, feeds = build(plan), draw_feeds(random, plan)
    a, b = run(model, feeds), run(model, feeds, level="extended")
    need(all_live(a) and gap(a, b) < 1e-5)
    save(folder, tensors={"inputs": feeds, "outputs_a": a, "outputs_b": b}, models={"model_a": model, "model_b": model})


def _other_order(random: Random, folder: Path) -> None:
    """What another summation order leaves: a few units in the last places of the largest values."""
    plan = draw_plan(random, TRUNKS)
    model, feeds = build(plan), draw_feeds(random, plan)
    a = run(model, feeds)
    need(all_live(a))
    b = {
        name: floats(
            array + random.normal(0, 1, array.shape) * np.abs(array).max() * float(10 ** random.uniform(-7.5, -6.5))
        )
        for name, array in a.items()
    }
    save(
        folder,
        tensors={"inputs": feeds, "outputs_a": a, "outputs_b": b},
        models={"model_a": model, "model_b": model if chance(random, 0.5) else None},
    )


def _shuffled_channels(random: Random, folder: Path) -> None:
    """The features of a hidden layer stand in another order, in the weights before and behind it alike."""
    plan = draw_plan(random, ("mlp",))
    model, feeds = build(plan), draw_feeds(random, plan)
    gemms = [node for node in model.graph.node if node.op_type == "Gemm"]
    order = random.permutation(2 * plan.wide)
    other = onnx.ModelProto()
    other.CopyFrom(model)
    tensors = {tensor.name: tensor for tensor in other.graph.initializer}
    for name, axis in ((gemms[0].input[1], 0), (gemms[0].input[2], 0), (gemms[1].input[1], 1)):
        array = onnx.numpy_helper.to_array(tensors[name])
        tensors[name].CopyFrom(onnx.numpy_helper.from_array(np.ascontiguousarray(array.take(order, axis)), name))
    a, b = run(model, feeds), run(other, feeds)
    need(all_live(a) and gap(a, b) < 1e-5)
    save(folder, tensors={"inputs": feeds, "outputs_a": a, "outputs_b": b}, models={"model_a": model, "model_b": other})


def _ordinary_int8(random: Random, folder: Path) -> None:
    """Calibrated on data like the inputs; no calibration file, sometimes no scales."""
    plan = open_plan(random)
    model = build(plan)
    other, thresholds = quantised(model, draw_feeds(random, plan, 16), form=chosen(random, WEIGHT_FORMS))
    told = thresholds if chance(random, 0.5) else None
    quantised_link(random, folder, (model, other), draw_feeds(random, plan), told, least=0.0, most=0.03)


def _right_integers(random: Random, folder: Path) -> None:
    """An integer tail whose consumer multiplied by the right scale of each channel."""
    plan = draw_plan(random, IMAGE_TRUNKS, head="map")
    model, feeds = build(plan), draw_feeds(random, plan)
    a, b, entries = run(model, feeds), {}, []
    for name, array in a.items():
        scales = (np.abs(array).max((0, 2, 3)) + 1e-3) / 2.0 ** random.uniform(15, 22, array.shape[1])
        side = scales.reshape(1, -1, 1, 1)
        b[name] = floats(np.rint(array / side) * side)
        told = [float(scale) for scale in scales]
        entries.append({"name": name, "dtype": "int32", "quanti_type": "SCALE", "quantize_axis": 1, "scale": told})
    need(all_live(a) and gap(a, b) < 1e-4)
    save(
        folder,
        tensors={"inputs": feeds, "outputs_a": a, "outputs_b": b},
        models={"model_a": model},
        documents={"board": {"outputs": entries}},
    )


def _right_padding(random: Random, folder: Path) -> None:
    """Aligned rows that were read with their stride; the raw buffer lies there."""
    plan = draw_plan(random, IMAGE_TRUNKS, head="map", samples=1, outputs=1)
    model, feeds = build(plan), draw_feeds(random, plan)
    name = plan.output_names[0]
    a = run(model, feeds)
    _, channels, height, width = a[name].shape
    aligned = (1, channels, height, -(-width // 16) * 16)
    raw = floats(np.pad(a[name], ((0, 0), (0, 0), (0, 0), (0, aligned[3] - width))))
    need(all_live(a) and aligned[3] != width)
    strides = [int(np.prod(aligned[axis + 1 :])) * 4 for axis in range(4)]
    board = {
        "outputs": [
            {
                "name": name,
                "dtype": "float32",
                "valid_shape": list(a[name].shape),
                "aligned_shape": list(aligned),
                "stride": strides,
            }
        ]
    }
    save(
        folder,
        tensors={"inputs": feeds, "outputs_a": a, "outputs_b": a},
        models={"model_a": model},
        documents={"board": board},
        buffers={f"raw_{name}.bin": raw.tobytes()},
    )


def _planter(planters: Sequence[Planter], code: str) -> Callable[[Random, Path], None]:
    return next(planter.plant for planter in planters if planter.code == code)


#: Those that explain a difference that is no fault are healthy pairs too.
KINDS: Mapping[str, Callable[[Random, Path], None]] = {
    "optimised": _optimised,
    "other-order": _other_order,
    "shuffled-channels": _shuffled_channels,
    "right-fold": _planter(rewrites.PLANTERS, "numeric-noise"),
    "int8": _ordinary_int8,
    "int8-calibrated": _planter(calibrations.PLANTERS, "quantization-noise"),
    "layout": _planter(outputs.PLANTERS, "comparator-layout"),
    "nv12": _planter(nv12.PLANTERS, "nv12-conversion-loss"),
    "right-integers": _right_integers,
    "right-padding": _right_padding,
}


@dataclass(frozen=True, slots=True)
class Pair:
    """One healthy pair: its kind, and the text its random numbers come from."""

    kind: str
    seed: str
    number: int

    @property
    def name(self) -> str:
        """Unique, and enough to make it again."""
        return f"healthy.{self.kind}:{self.seed}:{self.number}"

    def plant(self, folder: Path) -> None:
        """Write the evidence folder."""
        planted(self.name, KINDS[self.kind], folder)


def pairs(seeds: Sequence[str], count: int) -> Iterator[Pair]:
    """`count` pairs of every kind for every seed."""
    for number, seed, kind in itertools.product(range(count), seeds, KINDS):
        yield Pair(kind, seed, number)
