"""Operators at the end that the candidate lacks, seen from the reference's model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from driftgate.diagnosis.bench import FLOAT_FLOOR, Bench
from driftgate.diagnosis.outputs.undoing import told, undone_trial
from driftgate.diagnosis.residuals import residual
from driftgate.domain.investigations import Explanation


def find_cut_tail(bench: Bench) -> Iterator[Explanation]:
    """The candidate's output is a tensor within the reference's model: what comes behind it is missing."""
    model = bench.a.model
    if model is None or not bench.a.runs or not bench.replays_a:
        return
    makers = bench.a.makers
    values = bench.values_a
    for name, a, b in bench.pairs:
        if residual(a, b) <= max(bench.floor, FLOAT_FLOOR) or name not in makers:
            continue
        for tensor, value in values.items():
            if tensor == name or tensor not in makers or value.size != b.size or value.dtype.kind != "f":
                continue
            tail = _between(makers, name, tensor)
            code = _tail_code(tail)
            if code is None:
                continue
            held, floor = value.reshape(b.shape), max(bench.floor, FLOAT_FLOOR)
            made = undone_trial(code, "cut", (a, b), held, floor, target=name, wanted=b)
            if made.result.value == "confirmed":
                missing = (("missing operators", float(len(tail)), ""),)
                yield from told(made, subjects=(tensor, *tail), facts=missing)
                break


def _between(makers: Mapping[str, Any], end: str, start: str) -> tuple[str, ...]:
    """Operators that make `end`, back to `start`."""
    found: list[str] = []
    waiting, seen = [end], {start}
    while waiting:
        name = waiting.pop()
        if name in seen or name not in makers:
            continue
        seen.add(name)
        found.append(makers[name].op_type)
        waiting.extend(makers[name].input)
    return tuple(found)


_MOVING = frozenset({"Reshape", "Transpose", "Flatten", "Squeeze", "Unsqueeze", "Identity", "Cast"})


def _tail_code(tail: Sequence[str]) -> str | None:
    working = [op for op in tail if op not in _MOVING]
    if not working:
        return None
    if set(working) <= {"Sigmoid", "Softmax", "HardSigmoid", "LogSoftmax", "Tanh"}:
        return "missing-sigmoid"
    return (
        "missing-decode"
        if set(working) & {"Mul", "Add", "Exp", "Concat", "Sub", "Pow", "Div", "Split", "Slice"}
        else None
    )
