"""The first region that computes something else, whatever it is."""

from __future__ import annotations

from collections.abc import Iterator

import onnx

from driftgate.diagnosis.bench import FLOAT_FLOOR, Bench
from driftgate.diagnosis.residuals import residual
from driftgate.diagnosis.surgery import forced, label
from driftgate.diagnosis.trials import explained, trial
from driftgate.domain.investigations import Explanation
from driftgate.localisation.points import LINEAR


def first_difference(bench: Bench) -> str | None:
    """The first tensor of one name on both sides that differs, in the candidate's order."""
    a, b = bench.values_a, bench.values_b
    for name, _ in bench.order:
        if name in a and name in b and residual(a[name], b[name]) > max(FLOAT_FLOOR, bench.floor):
            return name
    return None


def find_wrong_region(bench: Bench) -> Iterator[Explanation]:
    """The first tensor that differs given the reference's value: does the rest agree?"""
    a, b = bench.values_a, bench.values_b
    if bench.fixed_point or not bench.same_feeds:
        return
    makers = bench.b.makers
    for name, op in bench.order:
        if name not in a or name not in b or name not in makers:
            continue
        before = residual(a[name], b[name])
        if before <= FLOAT_FLOOR:
            continue
        outputs = {output.name for output in bench.b.whole_model.graph.output}
        made = bench.run(bench.b, bench.evidence.feeds_a, forced(bench.b.whole_model, {name: a[name]}))
        if made is None:
            return
        code = _region_code(bench, makers[name], name)
        after = bench.distance(bench.outputs_a, {key: made[key] for key in bench.outputs_a if key in made})
        tried = trial(code, "value of the reference", bench.start, after, bench.floor, target=name)
        facts = (("difference at the node", before, "of the range"),)
        found = explained(tried, subjects=(label(makers[name]), op), facts=facts)
        # At an output this only repeats that the output differs: what is established is where, not why.
        for one in found:
            yield Explanation(
                one.code,
                one.confirmed and (name not in outputs or _differs(bench, name)),
                one.evidence,
                one.share,
                one.subjects,
                one.trials,
            )
        return


def _differs(bench: Bench, name: str) -> bool:
    """Whether the two models make a tensor by other operators."""
    ops = [
        next((node.op_type for node in side.whole_model.graph.node if name in node.output), "")
        for side in (bench.a, bench.b)
    ]
    return ops[0] != ops[1]


def _region_code(bench: Bench, node: onnx.NodeProto, name: str) -> str:
    theirs = next((other for other in bench.a.whole_model.graph.node if name in other.output), None)
    if "Normalization" in node.op_type:
        return "norm-fusion-error" if theirs is None or theirs.op_type != node.op_type else "norm-semantics"
    if theirs is not None and theirs.op_type == "BatchNormalization" and node.op_type in LINEAR:
        return "bn-fold-error"
    return "graph-fusion-error"
