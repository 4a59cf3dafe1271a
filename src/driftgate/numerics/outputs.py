"""Which output of the candidate belongs to which output of the reference, and which feed to which input."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NamedTensor:
    """What pairing looks at: name, kind of number (f, i, b …) and shape of one sample."""

    name: str
    kind: str
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class OutputPair:
    """`a` and `b` mean the same output, known as `name`; `how` is name, map or signature."""

    name: str
    a: str
    b: str
    how: str


@dataclass(frozen=True, slots=True)
class Pairing:
    """Pairs in the reference's order and what was left over on each side."""

    pairs: tuple[OutputPair, ...]
    left_a: tuple[str, ...]
    left_b: tuple[str, ...]


def common_names(names: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """The common name by each name that stages give an output or an input, the common one among them."""
    return {alias: name for name, aliases in names.items() for alias in (*aliases, name)}


def pair_outputs(
    a: Sequence[NamedTensor],
    b: Sequence[NamedTensor],
    *,
    names: Mapping[str, Sequence[str]],
    ignored: Sequence[str] = (),
) -> Pairing:
    """Pair by the user's map, then by name, then by a signature that is unique on both sides.

    `names` maps an output's common name to its names in other stages; `ignored` are common names left out
    on purpose. Leftovers are listed, never guessed.
    """
    common = common_names(names)
    rest_a = [t for t in a if common.get(t.name, t.name) not in ignored]
    rest_b = [t for t in b if common.get(t.name, t.name) not in ignored]
    by_common = {common.get(t.name, t.name): t for t in rest_b}
    found: dict[str, OutputPair] = {}
    for tensor in rest_a:
        name = common.get(tensor.name, tensor.name)
        partner = by_common.get(name)
        if partner is not None:
            how = "name" if partner.name == tensor.name else "map"
            found[tensor.name] = OutputPair(name, tensor.name, partner.name, how)
    taken = {pair.b for pair in found.values()}
    open_a = [t for t in rest_a if t.name not in found]
    open_b = [t for t in rest_b if t.name not in taken]
    for tensor in open_a:
        alike_a = [t for t in open_a if _signature(t) == _signature(tensor)]
        alike_b = [t for t in open_b if _signature(t) == _signature(tensor)]
        if len(alike_a) == len(alike_b) == 1:
            found[tensor.name] = OutputPair(tensor.name, tensor.name, alike_b[0].name, "signature")
    taken = {pair.b for pair in found.values()}
    return Pairing(
        pairs=tuple(found[t.name] for t in rest_a if t.name in found),
        left_a=tuple(t.name for t in rest_a if t.name not in found),
        left_b=tuple(t.name for t in rest_b if t.name not in taken),
    )


def _signature(tensor: NamedTensor) -> tuple[str, tuple[int, ...]]:
    return tensor.kind, tuple(size for size in tensor.shape if size != 1)


@dataclass(frozen=True, slots=True)
class FeedPlan:
    """Which feed goes into which input of one stage; `unused` feeds are ones this stage does not take."""

    inputs: tuple[tuple[str, str], ...]  # (input, feed)
    missing: tuple[str, ...]
    unused: tuple[str, ...]


def plan_feeds(
    inputs: Sequence[str], feeds: Sequence[str], *, names: Mapping[str, Sequence[str]], optional: Sequence[str] = ()
) -> FeedPlan:
    """Match a stage's inputs with the feeds there are: by name, by the user's map, and where exactly one
    input and one feed remain, with each other. `optional` inputs are fed where there is a feed of theirs."""
    common = common_names(names)
    chosen: dict[str, str] = {}
    for name in (*inputs, *optional):
        feed = next((f for f in (name, common.get(name, name)) if f in feeds), None)
        if feed is not None:
            chosen[name] = feed
    open_inputs = [name for name in inputs if name not in chosen]
    open_feeds = [feed for feed in feeds if feed not in chosen.values()]
    if len(open_inputs) == len(open_feeds) == 1:
        chosen[open_inputs[0]] = open_feeds[0]
        open_inputs, open_feeds = [], []
    return FeedPlan(tuple(chosen.items()), tuple(open_inputs), tuple(open_feeds))
