"""Faults of calibration: data that does not cover, outliers, other preprocessing, scales that are missing or other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx

from faultgen.graph import Graph
from faultgen.networks import IMAGE_TRUNKS, MEAN, STD, TRUNKS, Plan, attention, build, draw_feeds, draw_plan
from faultgen.planting import Planter, Random, Tensors, all_live, chance, chosen, floats, gap, need, save
from faultgen.quantiser import WEIGHT_FORMS, params, points, quantised, ranges, with_pairs, with_weights
from faultgen.running import layers_of, outputs_of, run

#: The smallest share of loss that counts as a fault of quantisation: a cosine of 0.995.
LOSS = 0.1


def open_plan(random: Random, trunks: tuple[str, ...] = TRUNKS, **fixed: object) -> Plan:
    """A plan whose network takes any number of samples."""
    return replace(draw_plan(random, trunks, **fixed), fixed_batch=False)


def quantised_link(
    random: Random,
    folder: Path,
    models: tuple[onnx.ModelProto, onnx.ModelProto],
    feeds: Tensors,
    thresholds: Mapping[str, float] | None,
    *,
    calib: Tensors | None = None,
    least: float = 0.02,
    most: float = float("inf"),
    layers: float = 0.6,
    documents: Mapping[str, object] | None = None,
) -> None:
    """Float against INT8, with what the tools leave: scales, calibration data and, often, tapped tensors."""
    is_layered = chance(random, layers)
    taps = [name for name in layers_of(models[0]) if name not in outputs_of(models[0])] if is_layered else []
    a, b = run(models[0], feeds, taps), run(models[1], feeds, taps)
    names = outputs_of(models[0])
    outputs = [{name: side[name] for name in names} for side in (a, b)]
    need(all_live(outputs[0]) and least <= gap(outputs[0], outputs[1]) <= most)
    told = {"quant_params": params(thresholds)} if thresholds else {}
    save(
        folder,
        tensors={
            "inputs": feeds,
            "outputs_a": outputs[0],
            "outputs_b": outputs[1],
            "calib": calib,
            "layers_a": a if is_layered else None,
            "layers_b": b if is_layered else None,
        },
        models={"model_a": models[0], "model_b": models[1]},
        documents={**told, **(documents or {})},
    )


def _form(random: Random) -> str:
    return str(chosen(random, WEIGHT_FORMS))


def _ordinary(random: Random, folder: Path) -> None:
    plan = open_plan(random)
    model, calib = build(plan), draw_feeds(random, plan, int(random.integers(12, 25)))
    other, thresholds = quantised(model, calib, form=_form(random))
    quantised_link(
        random,
        folder,
        (model, other),
        draw_feeds(random, plan),
        thresholds,
        calib=calib if chance(random, 0.7) else None,
        least=1e-4,
        most=0.03,
    )


def _dark(random: Random, folder: Path) -> None:
    """Calibrated at night, used by day: the calibration's inputs are a fraction as large."""
    plan = open_plan(random)
    model = build(plan)
    few = float(random.uniform(0.1, 0.35))
    calib = {name: floats(x * few) for name, x in draw_feeds(random, plan, int(random.integers(4, 13))).items()}
    other, thresholds = quantised(model, calib, form=_form(random))
    quantised_link(random, folder, (model, other), draw_feeds(random, plan), thresholds, calib=calib, least=LOSS)


def _pixel_calibration(random: Random, folder: Path) -> None:
    """Calibrated on 0 … 255 while the network runs on 0 … 1."""
    plan = open_plan(random, IMAGE_TRUNKS)
    model = build(plan)
    calib = {name: np.rint(x * 255) for name, x in draw_feeds(random, plan, int(random.integers(4, 13))).items()}
    other, thresholds = quantised(model, calib, form=_form(random))
    quantised_link(random, folder, (model, other), draw_feeds(random, plan), thresholds, calib=calib, least=LOSS)


def _normalised_calibration(random: Random, folder: Path) -> None:
    """Calibrated on pictures that were normalised twice, or not at all."""
    plan = open_plan(random, IMAGE_TRUNKS)
    model = build(plan)
    x, y = (draw_feeds(random, plan, count)[plan.input_name] for count in (plan.samples, int(random.integers(4, 13))))
    once = (y - MEAN) / STD
    calib = {plan.input_name: floats((once - MEAN) / STD if chance(random, 0.5) else y)}
    other, thresholds = quantised(model, calib, form=_form(random))
    feeds = {plan.input_name: floats((x - MEAN) / STD)}
    quantised_link(random, folder, (model, other), feeds, thresholds, calib=calib, least=LOSS)


def _outlier_pixels(random: Random, folder: Path) -> None:
    """A few broken values in one calibration sample."""
    plan = open_plan(random)
    model = build(plan)
    calib = draw_feeds(random, plan, int(random.integers(6, 17)))
    x = calib[plan.input_name]
    sample = x[int(random.integers(len(x)))].reshape(-1)
    size = float(random.uniform(25, 90)) * float(np.abs(x).max())
    sample[random.choice(sample.size, int(random.integers(1, 4)), replace=False)] = size
    other, thresholds = quantised(model, calib, form=_form(random))
    quantised_link(random, folder, (model, other), draw_feeds(random, plan), thresholds, calib=calib, least=LOSS)


def _mask_constant(random: Random, folder: Path) -> None:
    """Attention scores with a mask of -1e4 and more added, quantised behind the sum."""
    plan = open_plan(random, ("transformer",))
    low, length = -float(chosen(random, (1e4, 65504.0, 1e5))), int(random.integers(2, plan.height))

    def middle(g: Graph, x: str) -> str:
        mask = np.zeros((1, g.shape[x][0]))
        mask[0, length:] = low
        return g.op("Add", [x, attention(g, g.op("Mul", [x, g.constant(2.0)]), g.constant(mask))])

    model, calib = build(plan, middle=middle), draw_feeds(random, plan, 8)
    masked = next(node.output[0] for node in model.graph.node if node.op_type == "Add" and _adds(model, node, low))
    thresholds = ranges(model, calib, [*points(model), masked])
    other = with_pairs(with_weights(model, _form(random))[0], thresholds)
    quantised_link(random, folder, (model, other), draw_feeds(random, plan), thresholds, calib=calib, least=LOSS)


def _adds(model: onnx.ModelProto, node: onnx.NodeProto, low: float) -> bool:
    """Whether the node adds a constant that reaches down to `low`."""
    constant = {t.name: onnx.numpy_helper.to_array(t) for t in model.graph.initializer}
    return any(name in constant and float(constant[name].min()) <= low for name in node.input)


def _clipped_output(random: Random, folder: Path) -> None:
    """The threshold of the output is the largest value of the calibration; real values go further."""
    plan = open_plan(random, outputs=1)
    model, name = build(plan), plan.output_names[0]
    pool = draw_feeds(random, plan, 24)[plan.input_name]
    size = np.abs(run(model, {plan.input_name: pool})[name]).reshape(24, -1).max(1)
    order = np.argsort(size)
    calib, feeds = ({plan.input_name: pool[at]} for at in (order[:12], order[-plan.samples :]))
    need(np.abs(pool[order[:12]]).max() > 0.8 * np.abs(pool).max())
    thresholds = ranges(model, calib, [name])
    other = with_pairs(model, thresholds)
    quantised_link(random, folder, (model, other), feeds, thresholds, calib=calib, least=LOSS)


def _other_scale(random: Random, folder: Path) -> None:
    """The graph holds another scale than the side file, for one tensor or for two that changed places."""
    plan = open_plan(random)
    model, calib = build(plan), draw_feeds(random, plan, 8)
    _, thresholds = quantised(model, calib)
    names = list(thresholds)
    first, second = (names[int(place)] for place in random.choice(len(names), 2, replace=False))
    wrong = dict(thresholds)
    if chance(random, 0.5):
        wrong[first] *= float(chosen(random, (0.2, 0.35, 8.0, 16.0)))
    else:
        wrong[first], wrong[second] = thresholds[second], thresholds[first]
    other = with_pairs(with_weights(model, _form(random))[0], wrong)
    quantised_link(
        random,
        folder,
        (model, other),
        draw_feeds(random, plan),
        thresholds,
        calib=calib if chance(random, 0.3) else None,
        least=LOSS,
    )


def _no_scale(random: Random, folder: Path) -> None:
    """The calibration gave no scale for one tensor; the converter put 1."""
    plan = open_plan(random)
    model, calib = build(plan), draw_feeds(random, plan, 8)
    _, thresholds = quantised(model, calib)
    name = chosen(random, list(thresholds))
    other = with_pairs(with_weights(model, _form(random))[0], {**thresholds, name: 127.0})
    told: dict[str, object] = {key: value for key, value in thresholds.items() if key != name}
    if chance(random, 0.5):
        told[name] = chosen(random, (None, 0.0))
    quantised_link(
        random,
        folder,
        (model, other),
        draw_feeds(random, plan),
        None,
        least=LOSS,
        documents={"quant_params": {"bits": 8, "symmetric": True, "thresholds": told}},
    )


PLANTERS = (
    Planter("quantization-noise", "quantisation", _ordinary),
    Planter("calibration-not-representative", "quantisation", _dark),
    Planter("calibration-preprocess-mismatch", "quantisation", _pixel_calibration, variant="pixels"),
    Planter(
        "calibration-preprocess-mismatch",
        "quantisation",
        _normalised_calibration,
        ("calibration-not-representative",),
        "normalised",
    ),
    Planter("outlier-range", "quantisation", _outlier_pixels, variant="pixels"),
    Planter("outlier-range", "quantisation", _mask_constant, variant="mask"),
    Planter("saturation", "quantisation", _clipped_output, ("calibration-not-representative",)),
    Planter("quant-params-mismatch", "quantisation", _other_scale),
    Planter("quant-params-missing", "quantisation", _no_scale),
)
