"""Faults of the input contract: colour order, scale, offset, normalisation, layout, order of inputs."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from faultgen.cameras import letterboxed, resized
from faultgen.graph import Graph
from faultgen.networks import IMAGE_TRUNKS, MEAN, STD, Hook, Plan, build, draw_feeds, draw_plan, pictures
from faultgen.planting import Array, Planter, Random, Tensors, chance, chosen, floats, need
from faultgen.sides import two_inputs

_HALVES = np.full((1, 3, 1, 1), 0.5)
_PIXEL_MEAN = np.array([123.675, 116.28, 103.53]).reshape(1, 3, 1, 1)
_PIXEL_STD = np.array([58.395, 57.12, 57.375]).reshape(1, 3, 1, 1)
_NORMS = ((MEAN, STD), (MEAN, STD), (_HALVES, _HALVES))


def _image_plan(random: Random) -> Plan:
    return draw_plan(random, IMAGE_TRUNKS)


def _prepared(random: Random, plan: Plan) -> Array:
    """The pictures as the network eats them: in 0 … 1, or normalised."""
    pixels = draw_feeds(random, plan)[plan.input_name]
    mean, std = chosen(random, _NORMS)
    return floats((pixels - mean) / std) if chance(random, 0.5) else pixels


def _fed(random: Random, folder: Path, plan: Plan, a: Array, b: Array, *, before: Hook | None = None) -> None:
    model = build(plan, before=before)
    two_inputs(
        random, folder, plan, model, ({plan.input_name: floats(a)}, {plan.input_name: floats(b)}), calib=_calib(plan, a)
    )


def _calib(plan: Plan, a: Array) -> Tensors:
    return {plan.input_name: floats(a)}


def _channel_swap(random: Random, folder: Path) -> None:
    plan = _image_plan(random)
    x = _prepared(random, plan)
    _fed(random, folder, plan, x, x[:, ::-1])


def _scale_255(random: Random, folder: Path) -> None:
    plan = _image_plan(random)
    x = draw_feeds(random, plan)[plan.input_name]
    if chance(random, 0.6):
        _fed(random, folder, plan, x, np.rint(x * 255) if chance(random, 0.5) else x * 255)
        return
    inside = 1 / 255 if chance(random, 0.5) else 1 / 58.0
    _fed(random, folder, plan, np.rint(x * 255), x, before=_times(inside))


def _times(factor: float) -> Hook:
    return lambda g, x: g.op("Mul", [x, g.constant(factor)])


def _offset_128(random: Random, folder: Path) -> None:
    plan = _image_plan(random)
    codes = np.rint(draw_feeds(random, plan)[plan.input_name] * 255)
    signed = chance(random, 0.5)
    a, b = (codes - 128, codes) if signed else (codes, codes - 128)
    _fed(random, folder, plan, a, b, before=_times(float(chosen(random, (1 / 64, 1 / 128, 1 / 58)))))


def _missing_normalisation(random: Random, folder: Path) -> None:
    plan = _image_plan(random)
    pixels = draw_feeds(random, plan)[plan.input_name]
    if chance(random, 0.3):
        pixels = floats(np.rint(pixels * 255))
        _fed(random, folder, plan, (pixels - _PIXEL_MEAN) / _PIXEL_STD, pixels)
        return
    mean, std = chosen(random, _NORMS)
    _fed(random, folder, plan, (pixels - mean) / std, pixels)


def _swapped_normalisation(random: Random, folder: Path) -> None:
    """The two constants change places, or each stands in the order of the other colours."""
    plan = _image_plan(random)
    pixels = draw_feeds(random, plan)[plan.input_name]
    wrong = (pixels - STD) / MEAN if chance(random, 0.5) else (pixels - MEAN[:, ::-1]) / STD[:, ::-1]
    _fed(random, folder, plan, (pixels - MEAN) / STD, wrong)


def _double_inside(random: Random, folder: Path) -> None:
    """The network normalises by itself: two operators, or a convolution of one pixel a channel."""
    plan = _image_plan(random)
    pixels = draw_feeds(random, plan)[plan.input_name]
    mean, std = chosen(random, _NORMS)
    form = chosen(random, ("Sub,Div", "Mul,Add", "Conv"))

    def before(g: Graph, x: str) -> str:
        if form == "Sub,Div":
            return g.op("Div", [g.op("Sub", [x, g.constant(mean)]), g.constant(std)])
        if form == "Mul,Add":
            return g.op("Add", [g.op("Mul", [x, g.constant(1 / std)]), g.constant(-mean / std)])
        weight, bias = (1 / std).reshape(3, 1, 1, 1), (-mean / std).reshape(3)
        return g.op("Conv", [x, g.constant(weight), g.constant(bias)], group=3, kernel_shape=[1, 1])

    _fed(random, folder, plan, pixels, (pixels - mean) / std, before=before)


def _double_outside(random: Random, folder: Path) -> None:
    plan = _image_plan(random)
    pixels = draw_feeds(random, plan)[plan.input_name]
    mean, std = chosen(random, _NORMS)
    once = (pixels - mean) / std
    _fed(random, folder, plan, once, (once - mean) / std)


def _hwc(random: Random, folder: Path) -> None:
    plan = _image_plan(random)
    x = _prepared(random, plan)
    _fed(random, folder, plan, x, x.transpose(0, 2, 3, 1).reshape(x.shape))


def _noncontiguous(random: Random, folder: Path) -> None:
    plan = _image_plan(random)
    x = _prepared(random, plan)
    order = chosen(random, ((0, 1, 3, 2), (0, 1, 3, 2), (0, 3, 2, 1), (0, 2, 1, 3)))
    _fed(random, folder, plan, x, x.transpose(order).reshape(x.shape))


def _noncontiguous_tokens(random: Random, folder: Path) -> None:
    plan = draw_plan(random, ("transformer",))
    x = draw_feeds(random, plan)[plan.input_name]
    _fed(random, folder, plan, x, x.transpose(0, 2, 1).reshape(x.shape))


def _letterbox(random: Random, folder: Path) -> None:
    """One picture, clearly wider or higher than what the network eats."""
    plan = draw_plan(random, IMAGE_TRUNKS, samples=1)
    ratio = float(random.uniform(1.5, 2.5)) * plan.width / plan.height
    ratio = ratio if chance(random, 0.7) else float(random.uniform(0.4, 0.65)) * plan.width / plan.height
    height = int(random.integers(24, 48))
    raw = pictures(random, 1, height, max(8, round(height * ratio)))[0]
    fill = float(chosen(random, (114 / 255, 0.5, 0.0)))
    sides = [letterboxed(raw, plan.height, plan.width, fill)[None], resized(raw, plan.height, plan.width)[None]]
    if chance(random, 0.5):
        sides.reverse()
    two_inputs(
        random,
        folder,
        plan,
        build(plan),
        ({plan.input_name: sides[0]}, {plan.input_name: sides[1]}),
        raw={"raw": raw} if chance(random, 0.8) else None,
        calib={plan.input_name: sides[0]},
    )


def _permuted(random: Random, folder: Path) -> None:
    """Two or three inputs of one shape, such as the frames of several cameras, reach the network in another order."""
    plan = draw_plan(random, IMAGE_TRUNKS, samples=int(random.integers(1, 3)))
    count = int(random.integers(2, 4))
    names = [f"{plan.input_name}_{number}" for number in range(count)]

    def before(g: Graph, x: str) -> str:
        g.inputs.clear()
        taken = [g.take(name, plan.input_shape) for name in names]
        parts = [g.conv(name, 3, 1) for name in taken]
        return g.op("Concat", parts, (3 * count, *plan.input_shape[1:]), axis=1)

    model = build(plan, before=before)
    feeds = {name: pictures(random, plan.samples, plan.height, plan.width) for name in names}
    order = random.permutation(count)
    need(not (order == np.arange(count)).all())
    other = {name: feeds[names[place]] for name, place in zip(names, order, strict=True)}
    two_inputs(random, folder, plan, model, (feeds, other), calib=feeds)


PLANTERS = (
    Planter("input-channel-swap", "input", _channel_swap),
    Planter("input-scale-255", "input", _scale_255),
    Planter("input-offset-128", "input", _offset_128),
    Planter("missing-mean-scale", "input", _missing_normalisation),
    Planter("missing-mean-scale", "input", _swapped_normalisation, ("input-mismatch",), "swapped"),
    Planter("double-normalization", "input", _double_inside, variant="inside"),
    Planter("double-normalization", "input", _double_outside, variant="outside"),
    Planter("layout-nhwc", "input", _hwc),
    Planter("noncontiguous-input", "input", _noncontiguous),
    Planter("noncontiguous-input", "input", _noncontiguous_tokens, variant="tokens"),
    Planter("resize-letterbox-mismatch", "input", _letterbox),
    Planter("input-permuted", "input", _permuted),
)
