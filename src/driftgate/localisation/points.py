"""Points: the places of a graph at which it holds a number that means something to the network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from driftgate.domain.graphs import Graph, Node, Quantizer

#: Operators whose output is their first input, for a network that is not being trained.
SAME = frozenset({"Identity", "Dropout", "Cast"})
LINEAR = frozenset({"Conv", "ConvTranspose", "Gemm", "MatMul"})
AFFINE_BINARY = frozenset({"Add", "Sub", "Mul", "Div"})
COMMUTATIVE = frozenset({"Add", "Mul", "Max", "Min", "Sum", "Mean", "And", "Or", "Equal"})
#: Names that optimisers and quantisers give to operators that compute the same.
RENAMED: Mapping[str, str] = {
    "FusedConv": "Conv",
    "NhwcFusedConv": "Conv",
    "QLinearConv": "Conv",
    "QLinearMatMul": "MatMul",
    "FusedMatMul": "MatMul",
    "FusedGemm": "Gemm",
    "QGemm": "Gemm",
    "QLinearAdd": "Add",
    "QLinearMul": "Mul",
    "QLinearConcat": "Concat",
    "QLinearSigmoid": "Sigmoid",
    "QLinearLeakyRelu": "LeakyRelu",
    "QLinearAveragePool": "AveragePool",
    "QLinearGlobalAveragePool": "GlobalAveragePool",
    "QLinearSoftmax": "Softmax",
    "QLinearReduceMean": "ReduceMean",
    "QuickGelu": "SiLU",
}
#: Operators that only arrange the numbers of their first input anew: they are no step of a route.
VIEWS = frozenset({"Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose"})
#: Operators of which only the first input is a number of the network, the others say where and how large.
FIRST_ONLY = frozenset(
    {*VIEWS, *("Resize", "Upsample", "Expand", "Slice", "Pad", "Tile", "Split", "Gather", "TopK", "ReduceMean")}
)
#: Operators that keep features along the second axis, and along the last one (with constants for a MatMul).
SECOND_AXIS = frozenset({"Conv", "ConvTranspose", "BatchNormalization", "InstanceNormalization", "GroupNormalization"})
LAST_AXIS = frozenset(
    {"MatMul", "Gemm", "LayerNormalization", "SkipLayerNormalization", "RMSNormalization", "BiasGelu"}
)
#: Operators behind which an axis is not where it was.
REARRANGING = frozenset(
    {"Reshape", "Flatten", "Squeeze", "Unsqueeze", "Gather", "Expand", "ArgMax", "MatMul", "Einsum"}
)
ZERO = ("0", "0.0")
EVERYTHING = (float("-inf"), float("inf"))
LONGEST_ROUTE = 5
MOST_ROUTES = 12


@dataclass(frozen=True, slots=True)
class Point:
    """A tensor with all names it goes by. `tensor` is the one to tap, after dequantisation where there is one.

    `quantizer` is set where the tap gives integers; `step` and `clip` where the number went through a
    quantiser: the size of one LSB and the range that it can hold. `sources` are the points it is computed
    from, in the order of the operator's inputs; `constants` its other inputs.
    """

    index: int
    tensor: str
    names: tuple[str, ...]
    op: str
    node: str
    sources: tuple[int, ...] = ()
    constants: tuple[str, ...] = ()
    attributes: tuple[tuple[str, str], ...] = ()
    activation: str = ""
    quantizer: Quantizer | None = None
    step: float | None = None
    clip: tuple[float, float] | None = None
    axis: int | None = None  # of the features, where that is known; -1 is the last
    reads: tuple[str, ...] = ()  # the tensors its operator is given, constants included
    heard: tuple[float, float] = EVERYTHING  # what all that read it tell apart

    @property
    def is_input(self) -> bool:
        """Whether it is an input of the network."""
        return self.op == "Input"


@dataclass(frozen=True, slots=True)
class Route:
    """A way to say what a point is: the operators on the last stretch, and the points the stretch begins at."""

    tokens: tuple[str, ...]
    sources: tuple[int, ...]


def read_points(graph: Graph) -> tuple[Point, ...]:
    """All points of a graph in the order in which they can be computed; constants are none."""
    points: list[Point] = [Point(n, name, (name,), "Input", name) for n, name in enumerate(graph.inputs)]
    owner = {name: n for n, name in enumerate(graph.inputs)}
    for node in graph.nodes:
        if all(name in graph.constants for name in node.outputs):
            continue
        first = owner.get(node.inputs[0]) if node.inputs else None
        if first is not None and _hands_on(node):
            points[first] = _handed_on(points[first], node, graph)
            owner.update(dict.fromkeys(node.outputs, first))
            continue
        read = node.inputs[:1] if node.op in FIRST_ONLY else node.inputs
        sources = tuple(dict.fromkeys(owner[name] for name in read if name in owner))
        constants = tuple(name for name in node.inputs if name in graph.constants)
        for name in node.outputs:
            owner[name] = len(points)
            told = graph.quantizers.get(name)
            points.append(
                Point(
                    index=len(points),
                    tensor=name,
                    names=(name,),
                    op=_canonical(node),
                    node=node.name,
                    sources=sources,
                    constants=constants,
                    attributes=node.attributes,
                    activation=_activation(dict(node.attributes)),
                    quantizer=told,
                    step=None if told is None else told.step,
                    clip=None if told is None else told.range,
                    axis=_axis(node, [points[source] for source in sources], bool(constants)),
                    reads=node.inputs,
                )
            )
    return _with_heard(points, graph)


def _with_heard(points: Sequence[Point], graph: Graph) -> tuple[Point, ...]:
    """With what of a point is heard: a Relu or Clip behind it takes the rest off again."""
    heard: list[tuple[float, float]] = [EVERYTHING] * len(points)
    for index, readers in enumerate(consumers(points)):
        intervals = [_interval(points[reader], graph) for reader in readers]
        if intervals and not {*points[index].names} & {*graph.outputs}:
            heard[index] = min(low for low, _ in intervals), max(high for _, high in intervals)
    return tuple(replace(point, heard=interval) for point, interval in zip(points, heard, strict=True))


def _interval(point: Point, graph: Graph) -> tuple[float, float]:
    """The numbers that an operator tells apart."""
    low, high = EVERYTHING
    if point.op == "Relu":
        return 0.0, high
    if point.op != "Clip":
        return low, high
    told = dict(point.attributes)
    names = (*point.reads[1:3], "", "")
    return (
        graph.scalars.get(names[0], float(told.get("min", low))),
        graph.scalars.get(names[1], float(told.get("max", high))),
    )


def read_routes(points: Sequence[Point], graph: Graph) -> tuple[tuple[Route, ...], ...]:
    """For every point its routes, the shortest first; they begin at points that are no views."""
    routes: list[tuple[Route, ...]] = []
    root = roots(points)
    for point in points:
        last = _tokens(point, graph)
        sources = tuple(dict.fromkeys(root[source] for source in point.sources))
        own = [Route(last, sources)] if last else []
        if len(point.sources) == 1:
            for before in routes[point.sources[0]]:
                tokens = _joined(before.tokens, last)
                if before.sources and len(tokens) <= LONGEST_ROUTE:
                    own.append(Route(tokens, before.sources))
        if point.clip is not None and point.clip[0] == 0.0:
            # A quantiser whose range begins at 0 is a Relu as well: quantisers leave that operator out.
            own = [r for route in own for r in (route, Route(_joined(route.tokens, ("Relu",)), route.sources))]
        routes.append(tuple(dict.fromkeys(own[:MOST_ROUTES])))
    return tuple(routes)


def roots(points: Sequence[Point]) -> tuple[int, ...]:
    """For every point the point whose numbers it has in another arrangement: itself where it is no view."""
    found: list[int] = []
    for point in points:
        view = point.op in VIEWS and point.sources
        found.append(found[point.sources[0]] if view else point.index)
    return tuple(found)


def consumers(points: Sequence[Point]) -> tuple[tuple[int, ...], ...]:
    """For every point the points computed from it, seen through views."""
    found: list[list[int]] = [[] for _ in points]
    root = roots(points)
    for point in points:
        if root[point.index] == point.index:
            for source in dict.fromkeys(root[source] for source in point.sources):
                found[source].append(point.index)
    return tuple(tuple(readers) for readers in found)


def _hands_on(node: Node) -> bool:
    if node.op in SAME:
        return node.op != "Cast" or dict(node.attributes).get("to", "") in ("1", "10", "11", "16")
    return node.op in ("QuantizeLinear", "DequantizeLinear")


def _handed_on(point: Point, node: Node, graph: Graph) -> Point:
    names = (*point.names, *node.outputs)
    if node.op == "QuantizeLinear":
        told = graph.quantizers.get(node.outputs[0])
        if told is None or point.step is not None:
            return replace(point, names=names)
        # Until something dequantises them, the integers are what the network goes on with.
        return replace(point, names=names, tensor=node.outputs[0], quantizer=told, step=told.step, clip=told.range)
    if node.op == "DequantizeLinear":
        return replace(point, names=names, tensor=node.outputs[0], quantizer=None)
    return replace(point, names=names)


def _axis(node: Node, sources: Sequence[Point], has_constants: bool) -> int | None:
    """Along which axis an operator's features lie: its own, or where they lay before."""
    op = _canonical(node)
    if op in SECOND_AXIS:
        return 1
    if op in LAST_AXIS and (has_constants or op != "MatMul"):
        return -1
    known = next((source.axis for source in sources if source.axis is not None), None)
    if known is None or op in REARRANGING or op.startswith("Reduce"):
        return None
    if op == "Transpose":
        order = [int(place) for place in dict(node.attributes).get("perm", "").strip("[]").split(",") if place.strip()]
        return order.index(known % len(order)) if len(order) > known else None
    return known


def _canonical(node: Node) -> str:
    return RENAMED.get(node.op, node.op)


def _activation(attributes: Mapping[str, str]) -> str:
    """The activation that was fused into an operator; a Clip from 0 on is a Relu."""
    name = attributes.get("activation", "").removeprefix("b'").removesuffix("'")
    low = attributes.get("activation_params", "").strip("[]").split(",")[0]
    return "Relu" if name == "Clip" and low in ZERO else name


def _tokens(point: Point, graph: Graph) -> tuple[str, ...]:
    """An operator as tokens: Linear for what has weights, Affine for what scales and shifts by constants, none
    for a view."""
    constant = bool(point.constants)
    if point.op in VIEWS:
        return ()
    if point.op in LINEAR and constant:
        return ("Linear", point.activation) if point.activation else ("Linear",)
    if point.op == "BatchNormalization" or (point.op in AFFINE_BINARY and constant and len(point.sources) == 1):
        return ("Affine",)
    if point.op == "Clip" and any(graph.scalars.get(name) == 0.0 for name in point.constants[:1]):
        return ("Relu",)
    if point.op == "Clip" and dict(point.attributes).get("min") in ZERO:
        return ("Relu",)
    return (point.op,)


def _joined(before: tuple[str, ...], last: tuple[str, ...]) -> tuple[str, ...]:
    """Tokens one after the other; an Affine vanishes in what is linear before it."""
    if last == ("Affine",) and before[-1] in ("Linear", "Affine"):
        return before
    if last == ("Relu",) and before[-1] == "Relu":
        return before
    return (*before, *last)
