"""Random networks: convolutional, residual, depthwise, transformer and multi-layer perceptron, with random heads."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import onnx

from faultgen.graph import STYLES, Graph
from faultgen.planting import Array, Random, chance, chosen, floats

IMAGE_TRUNKS = ("cnn", "residual", "depthwise")
TRUNKS = (*IMAGE_TRUNKS, "transformer", "mlp")
HEADS = ("classify", "map", "detect")

#: Puts something of its own into a network: gets the graph and a tensor, gives the tensor to go on with.
Hook = Callable[[Graph, str], str]

MEAN = np.array([0.485, 0.456, 0.406]).reshape(1, 3, 1, 1)
STD = np.array([0.229, 0.224, 0.225]).reshape(1, 3, 1, 1)


@dataclass(frozen=True, slots=True)
class Plan:
    """What a network is drawn from; the same plan always gives the same network. Sizes in pixels."""

    seed: int
    trunk: str
    head: str
    samples: int
    height: int
    width: int
    wide: int
    depth: int
    opset: int
    style: str
    fixed_batch: bool
    outputs: int
    activation: str
    input_name: str
    output_names: tuple[str, ...]

    @property
    def input_shape(self) -> tuple[int, ...]:
        """Without the sample axis."""
        if self.trunk == "transformer":
            return (self.height, self.wide)
        return (self.wide,) if self.trunk == "mlp" else (3, self.height, self.width)

    @property
    def is_image(self) -> bool:
        """Whether the input is a picture."""
        return self.trunk in IMAGE_TRUNKS


_OUTPUTS = (("logits", "boxes", "mask"), ("output0", "output1", "output2"), ("y", "z", "v"), ("cls", "reg", "obj"))


def draw_plan(random: Random, trunks: Sequence[str] = TRUNKS, **fixed: Any) -> Plan:
    """A plan; `fixed` fields are not drawn."""
    trunk = chosen(random, trunks)
    even = 2 * random.integers(5, 16, 2) + 0
    plan = Plan(
        seed=int(random.integers(1 << 31)),
        trunk=trunk,
        head=chosen(random, HEADS),
        samples=int(random.integers(1, 5)),
        height=int(even[0]),
        width=int(even[1]),
        wide=int(8 * random.integers(1, 4)) if trunk in IMAGE_TRUNKS else int(16 * random.integers(1, 4)),
        depth=int(random.integers(1, 4)),
        opset=int(chosen(random, (13, 13, 14, 16, 17, 17))),
        style=chosen(random, STYLES),
        fixed_batch=chance(random, 0.5),
        outputs=int(random.integers(1, 4)),
        activation=chosen(random, ("Relu", "Relu", "LeakyRelu", "SiLU", "Clip")),
        input_name=chosen(random, ("x", "images", "input", "data")),
        output_names=chosen(random, _OUTPUTS),
    )
    return replace(plan, **fixed)


def build(
    plan: Plan, *, before: Hook | None = None, middle: Hook | None = None, after: Hook | None = None
) -> onnx.ModelProto:
    """The network of a plan. `before` stands behind the input, `middle` between trunk and heads, `after` behind
    every output; a hook that draws nothing from the graph leaves all other weights as they are."""
    g = Graph(
        np.random.default_rng(plan.seed),
        opset=plan.opset,
        style=plan.style,
        batch=plan.samples if plan.fixed_batch else "N",
    )
    x = g.take(plan.input_name, plan.input_shape)
    x = _hooked(g, x, before)
    x = _TRUNKS[plan.trunk](g, x, plan)
    x = _hooked(g, x, middle)
    outputs = []
    for number in range(plan.outputs):
        y = _head(g, x, plan, number)
        y = _hooked(g, y, after)
        outputs.append(g.rename(y, plan.output_names[number]))
    return g.model(outputs)


def _hooked(g: Graph, x: str, hook: Hook | None) -> str:
    """What a hook makes of a tensor; names before and behind it do not depend on how many nodes it takes."""
    if hook is None:
        return x
    g.jump()
    x = hook(g, x)
    g.jump()
    return x


def draw_feeds(random: Random, plan: Plan, samples: int = 0) -> dict[str, Array]:
    """Samples a network of the plan is looked at with: pictures in 0 … 1, or tokens around 0."""
    count = samples or plan.samples
    if plan.is_image:
        return {plan.input_name: pictures(random, count, plan.height, plan.width)}
    return {plan.input_name: floats(random.normal(0, 1, (count, *plan.input_shape)))}


def pictures(random: Random, count: int, height: int, width: int) -> Array:
    """Pictures (count, 3, height, width) of 256 levels in 0 … 1: waves, an edge, a tint, some noise.

    As in photographs, brightness changes fast and colour slowly.
    """
    rows, columns = np.mgrid[0:height, 0:width]
    images = np.zeros((count, 3, height, width))
    for image in images:
        image += random.uniform(0.25, 0.6, (3, 1, 1))
        for _ in range(3):
            angle, period, phase = random.uniform(0, np.pi), random.uniform(6, 40), random.uniform(0, 6.3)
            wave = np.sin((np.cos(angle) * rows + np.sin(angle) * columns) * 2 * np.pi / period + phase)
            image += (random.normal(0, 0.13) + random.normal(0, 0.06, (3, 1, 1)) * min(1.0, period / 20)) * wave
        top, left = int(random.integers(0, height // 2)), int(random.integers(0, width // 2))
        image[:, top : top + height // 3, left : left + width // 3] += random.normal(0, 0.2) + random.normal(
            0, 0.12, (3, 1, 1)
        )
    images += random.normal(0, 0.012, (count, 1, height, width)) + random.normal(0, 0.003, images.shape)
    return floats(np.rint(np.clip(images, 0, 1) * 255) / 255)


def _cnn(g: Graph, x: str, plan: Plan) -> str:
    for number in range(plan.depth + 1):
        x = g.block(x, plan.wide, plan.activation, stride=2 if number == 1 else 1)
    return x


def _residual(g: Graph, x: str, plan: Plan) -> str:
    x = g.block(x, plan.wide, plan.activation, stride=int(g.random.integers(1, 3)))
    for _ in range(plan.depth):
        y = g.norm(g.conv(g.block(x, plan.wide, plan.activation), plan.wide, bias=False))
        x = g.act(g.op("Add", [x, y]), plan.activation)
    return x


def _depthwise(g: Graph, x: str, plan: Plan) -> str:
    x = g.block(x, plan.wide, plan.activation, stride=2)
    for _ in range(plan.depth):
        y = g.block(x, 2 * plan.wide, plan.activation, kernel=1)
        y = g.block(y, 2 * plan.wide, plan.activation, groups=2 * plan.wide)
        x = g.op("Add", [x, g.norm(g.conv(y, plan.wide, 1, bias=False))])
    return x


def layer_norm(g: Graph, x: str, *, epsilon: float = 1e-5, axis: int = -1) -> str:
    """A layer norm taken apart as exporters below opset 17 write it, or the operator."""
    width = g.shape[x][axis]
    gain, shift = g.random.uniform(0.6, 1.4, width), g.random.normal(0, 0.2, width)
    if g.opset >= 17:
        return g.op("LayerNormalization", [x, g.constant(gain), g.constant(shift)], axis=axis, epsilon=epsilon)
    centred = g.op("Sub", [x, g.mean(x, axis, keep=True)])
    variance = g.mean(g.op("Mul", [centred, centred]), axis, keep=True)
    spread = g.op("Sqrt", [g.op("Add", [variance, g.constant(epsilon)])])
    scaled = g.op("Mul", [g.op("Div", [centred, spread]), g.constant(gain)])
    return g.op("Add", [scaled, g.constant(shift)])


def attention(g: Graph, x: str, mask: str = "") -> str:
    """Scaled dot products of one head, with what is added to the scores."""
    tokens, wide = g.shape[x]
    query, key, held = (g.linear(x, wide) for _ in range(3))
    scores = g.op("MatMul", [query, g.swap(key, 1, 0)], (tokens, tokens))
    scores = g.op("Div", [scores, g.constant(np.sqrt(wide))])
    scores = g.op("Add", [scores, mask]) if mask else scores
    return g.linear(g.op("MatMul", [g.op("Softmax", [scores], axis=-1), held], (tokens, wide)), wide)


def _transformer(g: Graph, x: str, plan: Plan) -> str:
    for _ in range(min(plan.depth, 2)):
        x = g.op("Add", [x, attention(g, layer_norm(g, x))])
        inner = g.act(g.linear(layer_norm(g, x), 2 * plan.wide), "Gelu")
        x = g.op("Add", [x, g.linear(inner, plan.wide)])
    return x


def _mlp(g: Graph, x: str, plan: Plan) -> str:
    for _ in range(plan.depth + 1):
        x = g.act(g.dense(x, 2 * plan.wide), "Relu" if plan.activation == "Clip" else plan.activation)
    return x


def _head(g: Graph, x: str, plan: Plan, number: int) -> str:
    out = int(g.random.integers(3, 9))
    shape = g.shape[x]
    if len(shape) == 1:
        return g.dense(x, out)
    if len(shape) == 2:
        return g.dense(g.mean(x, 1), out) if plan.head == "classify" else g.linear(x, out)
    if plan.head == "classify":
        x = g.reshape(g.op("GlobalAveragePool", [x], (shape[0], 1, 1)), (shape[0],))
        return g.dense(x, out)
    if plan.head == "map":
        return g.conv(x, out, 1)
    y = g.reshape(g.conv(x, out, 1), (out, shape[1] * shape[2]))
    return g.swap(y, 1, 0) if number == 0 else y


_TRUNKS: Mapping[str, Callable[[Graph, str, Plan], str]] = {
    "cnn": _cnn,
    "residual": _residual,
    "depthwise": _depthwise,
    "transformer": _transformer,
    "mlp": _mlp,
}
