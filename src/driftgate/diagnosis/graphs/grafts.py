"""The candidate's model with parts of the reference's in the place of its own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import onnx
from numpy.typing import NDArray
from onnx import helper

from driftgate.diagnosis.graphs.differences import Altered, Difference, Rewritten, Site, has_graphs, region, since
from driftgate.diagnosis.graphs.twins import Twins, output_names
from driftgate.diagnosis.surgery import OURS, added_constant, copied, sort_nodes

Tensor = NDArray[Any]


def grafted(twins: Twins, differences: Iterable[Difference]) -> onnx.ModelProto | None:
    """The candidate computing as the reference does at these places; None where that cannot be written.

    Where the two models are written in versions in which an operator means something else, the reference's values
    are put in; that is possible for one run only.
    """
    graft = _Graft(twins)
    return graft.model if all(graft.undo(difference) for difference in differences) and graft.finish() else None


def piece(twins: Twins, name: str, anchors: frozenset[str]) -> tuple[onnx.ModelProto, str] | None:
    """The candidate with a tensor of the reference computed of the candidate's own `anchors`, tensors that have one
    name on both sides; and what it is called there."""
    graft = _Graft(twins, anchors)
    made = graft.grown(name)
    return (graft.model, made) if made and graft.finish() else None


class _Graft:
    def __init__(self, twins: Twins, anchors: frozenset[str] = frozenset()) -> None:
        self._twins = twins
        self._anchors = anchors
        self.model = copied(twins.b.model)
        self._names: dict[str, str] = {}
        self._new: list[onnx.NodeProto] = []

    def undo(self, difference: Difference) -> bool:
        """Take one difference away."""
        if isinstance(difference, Rewritten):
            return self._put(difference.site, difference)
        theirs = self.model.graph.node[difference.place_b]
        if self._means_the_same(difference.place_a):
            return self._copied(difference, theirs)
        value = self._valued(self._twins.a.node(difference.place_a).output[0])
        if value is not None:
            self._new.append(helper.make_node("Identity", [value], [theirs.output[0]]))
            theirs.output[0] = f"{OURS}unread.{theirs.output[0]}"
        return value is not None

    def finish(self) -> bool:
        """Put everything into an order in which it can run."""
        self.model.graph.node.extend(self._new)
        held = {entry.domain for entry in self.model.opset_import}
        self.model.opset_import.extend(entry for entry in self._twins.a.model.opset_import if entry.domain not in held)
        return sort_nodes(self.model)

    def _means_the_same(self, place: int) -> bool:
        node = self._twins.a.node(place)
        held = {entry.domain for entry in self._twins.b.model.opset_import}
        return node.domain not in held or since(self._twins.a.model, node) == since(self._twins.b.model, node)

    def _copied(self, difference: Altered, theirs: onnx.NodeProto) -> bool:
        ours = self._twins.a.node(difference.place_a)
        if difference.attributes:
            del theirs.attribute[:]
            theirs.attribute.extend(ours.attribute)
        changed = list(difference.constants)
        if "axes" in difference.attributes and len(ours.input) > 1:
            changed.append((1, 1))
        for number_a, number_b in changed:
            value = self._twins.a.constant(ours.input[number_a])
            if value is None or number_b >= len(theirs.input):
                return False
            theirs.input[number_b] = added_constant(self.model, self._typed(value, theirs.input[number_b]))
        return True

    def _typed(self, value: Tensor, like: str) -> Tensor:
        """A value of the reference in the floats of a tensor of the candidate."""
        other = self._twins.b.value(like)
        return value if other is None or {value.dtype.kind, other.dtype.kind} != {"f"} else value.astype(other.dtype)

    def _put(self, site: Site, difference: Rewritten) -> bool:
        if all(self._means_the_same(place) for place in difference.nodes_a):
            name = self.grown(difference.a)
        else:
            name = self._valued(difference.a)
        if not name:
            return False
        outputs = output_names(self._twins.b.model)
        read = self._twins.b.node(site.place).input[site.number] if site.place >= 0 else outputs[site.number]
        name = self._cast(name, self._twins.a.value(difference.a), self._twins.b.value(read))
        if site.place >= 0:
            self.model.graph.node[site.place].input[site.number] = name
            return True
        for node in self.model.graph.node:
            for names in (node.input, node.output):
                for number, one in enumerate(names):
                    if one == read:
                        names[number] = f"{OURS}unread.{read}"
        name = f"{OURS}unread.{read}" if name == read else name
        self._new.append(helper.make_node("Identity", [name], [read]))
        return True

    def _valued(self, name: str) -> str | None:
        value = self._twins.a.value(name) if self._twins.runs == 1 else None
        return None if value is None else added_constant(self.model, value)

    def _cast(self, name: str, now: Tensor | None, wanted: Tensor | None) -> str:
        """A tensor in the floats in which it is read."""
        if now is None or wanted is None or now.dtype == wanted.dtype or {now.dtype.kind, wanted.dtype.kind} != {"f"}:
            return name
        made = f"{OURS}cast.{len(self._new)}"
        to = helper.np_dtype_to_tensor_dtype(wanted.dtype)
        self._new.append(helper.make_node("Cast", [name], [made], to=to))
        return made

    def grown(self, name: str) -> str | None:
        """A tensor of the reference in the candidate's model: its own where it has it, else computed anew."""
        twins = self._twins
        for place in region(twins.a, name, lambda one: one in self._anchors or twins.partner_in_b(one) is not None):
            node = twins.a.node(place)
            if has_graphs(node):
                return None
            if any(self._names.get(output) for output in node.output if output):
                continue
            inputs = [self._source(one) for one in node.input]
            if any(one is None for one in inputs):
                return None
            self._names |= {output: f"{OURS}graft.{output}" for output in node.output if output}
            new = onnx.NodeProto()
            new.CopyFrom(node)
            new.name = f"{OURS}graft.{node.name or place}"
            new.input[:] = [one or "" for one in inputs]
            new.output[:] = [self._names.get(output, "") for output in node.output]
            self._new.append(new)
        return self._source(name)

    def _source(self, name: str) -> str | None:
        """The name in the candidate's model of a tensor of the reference; None where it is not there."""
        if not name or name in self._names:
            return self._names.get(name, "")
        value = self._twins.a.constant(name)
        if value is not None:
            self._names[name] = added_constant(self.model, value)
            return self._names[name]
        partner = name if name in self._anchors else self._twins.partner_in_b(name)
        if partner is None:
            return None
        self._names[name] = self._cast(partner, self._twins.b.value(partner), self._twins.a.value(name))
        return self._names[name]
