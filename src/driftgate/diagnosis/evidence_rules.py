"""Causes in the evidence: a model that does not load, numbers that are not finite, sides that cannot be compared."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftgate.diagnosis.bench import FLOAT_FLOOR, Bench
from driftgate.diagnosis.residuals import residual, widest, worst
from driftgate.diagnosis.surgery import label, with_constants
from driftgate.diagnosis.trials import Fact, Rule, explained, fact, trial
from driftgate.domain.investigations import Explanation

Tensor = NDArray[Any]

#: Domains whose operators runtimes bring along.
_PUBLIC = frozenset({"", "ai.onnx", "ai.onnx.ml", "ai.onnx.training", "ai.onnx.preview.training", "com.microsoft"})
_NO_KERNEL = re.compile(
    r"no (registered )?kernel|not a registered|not implemented|custom op|unknown op|no op(erator)? registered"
    r"|is not supported|unsupported op",
    re.I,
)
_STRANGERS = frozenset({"onnx-unknown-domain", "onnx-vendor-operator"})
#: 3.13.5, v4.4; or whole numbers behind the word.
_VERSIONS = re.compile(r"(?<![\w.])v?(\d+\.\d+(?:\.\d+)*)(?!\w|\.\d)|version\D{0,16}?(\d+)(?![\w.])", re.I)
_NEWER = re.compile(
    r"version|newer|older|toolchain|incompatible|(built|compiled|generated) (by|with|for)|need|require|expect"
    r"|upgrade|outdated",
    re.I,
)
#: The march of a model or a platform is spoken of, and not a month.
_MARCH = re.compile(
    r"\bmarch\b\W{1,4}(is |are )?(incompatible|mismatch|differ|invalid|unsupported|not )"
    r"|(incompatible|other|wrong) march\b"
    r"|\bmarch\b.{0,40}\b(nash|bayes|bernoulli)|\b(nash|bayes|bernoulli).{0,40}\bmarch\b",
    re.I,
)
#: Words in quotes, words, and the endings of files.
_QUOTED, _WORD = re.compile(r"""(?<!\w)(["'])[^"'\n]*\1"""), re.compile(r"\S+")
_ENDING = re.compile(r"\w\.(?:hbm|bc|onnx|pth?|bin|np[yz]|json|ya?ml|txt|log|rs|cc|cpp|h|py)(?::\d+)*$", re.I)
_OPERATOR = re.compile(r"\b(op|operator|kernel|node|layer)\b", re.I)
_BATCH = re.compile(r"batch|dimension.*(mismatch|invalid|expected)|got invalid dimensions|shape mismatch", re.I)
_WHITE = 0.3  # correlation of neighbouring pixels below which an image is noise
FINITE_MASK = -1e4
SMALL = 1e-3  # of the range: what an unreal input, far outside of any that was seen, may make of float noise
DRIFTED = 1.0  # spread between machines; more is another fault


def find_refused(bench: Bench) -> Iterator[Explanation]:
    """The candidate cannot be loaded: which operator, or which version, does not fit."""
    text = bench.evidence.load_error or ""
    foreign = (
        [node for node in bench.b.model.graph.node if node.domain not in _PUBLIC] if bench.b.model is not None else []
    )
    own = {(f.domain, f.name) for f in bench.b.model.functions} if bench.b.model is not None else set()
    foreign = [node for node in foreign if (node.domain, node.op_type) not in own]
    if foreign and (text or bench.b.refused):
        subjects = tuple(f"{label(node)} ({node.domain}::{node.op_type})" for node in foreign[:8])
        yield from fact("custom-op-missing", ("nodes without a kernel", float(len(foreign)), ""), subjects=subjects)
        return
    strangers = [told for told in bench.b.refused if told.code in _STRANGERS]
    if strangers:
        named = tuple(f"{told.get('node')} ({told.get('domain')}::{told.get('operator')})" for told in strangers)
        yield from fact("custom-op-missing", ("nodes without a kernel", float(len(strangers)), ""), subjects=named)
        return
    if not text:
        return
    plain = _WORD.sub(_unless_path, _QUOTED.sub(_unless_path, text))
    versions = list(dict.fromkeys(dotted or whole for dotted, whole in _VERSIONS.findall(plain)))
    other_march = _MARCH.search(plain) is not None
    apart = len(versions) > 1 and _NEWER.search(plain) is not None and _OPERATOR.search(plain) is None
    if _NO_KERNEL.search(text) and not apart:
        yield from fact(
            "custom-op-missing", ("messages", 1.0, ""), subjects=tuple(re.findall(r"node:\s*(\S+)", text))[:4]
        )
    elif _NEWER.search(plain) or other_march:
        yield from fact(
            "toolchain-version-mismatch",
            ("versions named", float(len(versions)), ""),
            subjects=tuple(versions)[:4],
            confirmed=len(versions) > 1 or other_march,
        )
    elif _BATCH.search(text):
        yield from fact("batch-shape-mismatch", ("messages", 1.0, ""), confirmed=False)


def _unless_path(found: re.Match[str]) -> str:
    """What was found, or nothing where it names a file: the words and numbers in a path say nothing of a model."""
    name = found[0].strip("\"'()[]{},;:")
    is_path = name.startswith(("/", "\\", "./", "../", "~/")) or name[1:2] == ":" or len(re.findall(r"[/\\]", name)) > 1
    return "" if (is_path and len(name) > 1) or _ENDING.search(name) else found[0]


def find_incomplete(bench: Bench) -> Iterator[Explanation]:
    """Nothing to compare, fewer samples on one side, or empty tensors."""
    if bench.evidence.load_error or bench.b.refused:
        return
    if not bench.outputs_a or not bench.outputs_b:
        sides = [name for name, found in (("reference", bench.outputs_a), ("candidate", bench.outputs_b)) if not found]
        yield from fact("incomplete-evidence", ("sides without outputs", float(len(sides)), ""), subjects=sides)
        return
    if not bench.pairs:
        yield from fact("incomplete-evidence", ("outputs of one name", 0.0, ""), subjects=tuple(bench.outputs_b)[:8])
    for name, a, b in bench.pairs:
        if not a.size or not b.size:
            yield from fact("incomplete-evidence", ("elements", float(min(a.size, b.size)), ""), subjects=(name,))
        elif (
            a.ndim
            and a.ndim == b.ndim
            and b.shape[0] < a.shape[0]
            and a.shape[1:] == b.shape[1:]
            and _is_batch(bench, a)
        ):
            first = residual(a[: len(b)], b) <= max(bench.floor, FLOAT_FLOOR)
            yield from fact(
                "incomplete-evidence",
                ("samples of the reference", float(len(a)), ""),
                ("samples of the candidate", float(len(b)), ""),
                subjects=(name,),
                confirmed=first or bench.recorded_b,
            )


def _is_batch(bench: Bench, a: Tensor) -> bool:
    """Whether axis 0 of an output counts the samples that were fed."""
    return any(value.ndim and value.shape[0] == a.shape[0] for value in bench.evidence.feeds_a.values())


def find_bad_reference(bench: Bench) -> Iterator[Explanation]:
    """The reference itself is not finite, says nothing, or cannot be made again."""
    for name, a in bench.outputs_a.items():
        if a.dtype.kind != "f" or not a.size:
            continue
        finite = np.isfinite(a)
        if not finite.all() and np.isnan(a).any():
            yield from fact(
                "reference-invalid", ("elements not finite", float((~finite).sum()), f"of {a.size}"), subjects=(name,)
            )
            return
        b = bench.outputs_b.get(name)
        flat = a.size > 1 and float(np.ptp(a[finite])) == 0.0 if finite.any() else False
        rows = a.ndim > 1 and a.shape[0] > 1 and bool((a == a[:1]).all()) and _feeds_differ(bench)
        if (
            (flat or rows)
            and b is not None
            and b.dtype.kind == "f"
            and b.size > 1
            and float(np.ptp(b)) > 0
            and bench.before > FLOAT_FLOOR
        ):
            if rows and not flat and b.shape == a.shape and bool((b == b[:1]).all()):
                continue
            yield from fact(
                "reference-invalid",
                ("values of the reference", 1.0, ""),
                ("range of the candidate", float(np.ptp(b)), ""),
                subjects=(name,),
            )
            return
    if bench.rerun_a is not None and bench.evidence.outputs_a and not bench.replays_a:
        gap = worst(bench.outputs_a, bench.rerun_a)
        again = bench.run(bench.a, bench.evidence.feeds_a)
        unsteady = again is not None and worst(bench.rerun_a, again) > FLOAT_FLOOR
        agrees = worst(bench.rerun_a, bench.outputs_b) <= max(bench.floor, FLOAT_FLOOR)
        facts: tuple[Fact, ...] = (("recorded against made again", min(gap, 1e12), "of the range"),)
        yield from fact("reference-invalid", *facts, confirmed=unsteady or agrees)


def _feeds_differ(bench: Bench) -> bool:
    return any(
        value.ndim and value.shape[0] > 1 and not bool((value == value[:1]).all())
        for value in bench.evidence.feeds_a.values()
    )


def find_not_finite(bench: Bench) -> Iterator[Explanation]:
    """The candidate's outputs are not finite where the reference's are: the first tensor that is not."""
    bad = [
        name
        for name, a, b in bench.pairs
        if a.shape == b.shape and (np.isfinite(a.astype(np.float64)) & ~np.isfinite(b.astype(np.float64))).any()
    ]
    if not bad:
        return
    first, op = next(((name, op) for name, op in bench.order if _is_broken(bench, name)), (bad[0], ""))
    node = bench.b.model is not None and next((n for n in bench.b.model.graph.node if first in n.output), None)
    value = bench.values_b.get(first)
    count = 0.0 if value is None else float((~np.isfinite(value.astype(np.float64))).sum())
    facts: tuple[Fact, ...] = (
        ("elements not finite in the first", count, "" if value is None else f"of {value.size}"),
    )
    subjects = (label(node), first, op) if node else (first, op)
    made = _with_finite_masks(bench)
    if made is not None:
        after = bench.distance(bench.outputs_a, made)
        tried = trial("nan-output", "finite constants", math.inf, after, max(bench.floor, 1e-3), target=first)
        if tried.result.value == "confirmed":
            yield from explained(tried, subjects=subjects, facts=facts)
            return
    yield from fact("nan-output", *facts, subjects=subjects)


def _is_broken(bench: Bench, name: str) -> bool:
    """Whether a tensor of the candidate has a NaN, or an infinity that the reference has not."""
    b = bench.values_b.get(name)
    if b is None or b.dtype.kind != "f":
        return False
    a = bench.values_a.get(name)
    broken = np.isnan(b)
    if a is not None and a.shape == b.shape and not np.isinf(b).all():
        masked = _is_masked(bench, name)
        broken = broken | (np.isinf(b) & np.isfinite(a) & (not masked))
    return bool(broken.any())


def _is_masked(bench: Bench, name: str) -> bool:
    """Whether an infinity comes from a constant: a mask, not an overflow."""
    model = bench.b.model
    node = next((n for n in model.graph.node if name in n.output), None) if model is not None else None
    values = [bench.b.value(i) for i in node.input] if node is not None else []
    return any(v is not None and v.dtype.kind == "f" and np.isinf(v).any() for v in values)


def _with_finite_masks(bench: Bench) -> dict[str, Tensor] | None:
    if bench.b.model is None or bench.b.constants is None or not bench.b.runs:
        return None
    changed = {}
    for name in bench.b.constants.names():
        value = bench.b.value(name)
        if value is not None and value.dtype.kind == "f" and np.isinf(value).any():
            changed[name] = np.where(np.isinf(value), np.sign(value) * abs(FINITE_MASK), value).astype(value.dtype)
    if not changed:
        return None
    return bench.run(bench.b, bench.evidence.feeds_b or bench.evidence.feeds_a, with_constants(bench.b.model, changed))


def find_stale(bench: Bench) -> Iterator[Explanation]:
    """What was recorded of the candidate is the reference's run, not that of the candidate's model."""
    if not bench.recorded_b or bench.rerun_b is None or bench.replays_b:
        return
    gap = worst(bench.outputs_b, bench.rerun_b)
    if bench.before == 0.0 and not _same_model(bench):
        yield from fact(
            "stale-artifact",
            ("recorded against its own model", min(gap, 1e12), "of the range"),
            ("recorded against the reference", 0.0, ""),
        )


def find_drift(bench: Bench) -> Iterator[Explanation]:
    """The candidate's model gives other numbers here than were recorded. Sure where both sides are one model and the
    reference's numbers are made again here: then nothing but the machine is left."""
    if not bench.recorded_b or bench.rerun_b is None or bench.replays_b or bench.before == 0.0:
        return
    gap, apart = worst(bench.outputs_b, bench.rerun_b), widest(bench.outputs_b, bench.rerun_b)
    if not math.isfinite(gap):
        return
    facts: tuple[Fact, ...] = (
        ("recorded against made here", gap, "of the range"),
        ("spread of that", apart, "of the standard deviation"),
    )
    sure = _same_model(bench) and bench.replays_a and apart < DRIFTED
    yield from fact("environment-drift", *facts, confirmed=sure, share=1.0 if sure else 0.3)


def _same_model(bench: Bench) -> bool:
    a, b = bench.a.model, bench.b.model
    return (
        a is not None
        and b is not None
        and a.graph.SerializeToString(deterministic=True) == b.graph.SerializeToString(deterministic=True)
    )


def find_invalid_input(bench: Bench) -> Iterator[Explanation]:
    """The feeds are noise, or far from the calibration; on the calibration feeds both models agree."""
    e = bench.evidence
    if not e.calib:
        return
    far, white = [], []
    for name, fed in e.feeds_a.items():
        real = e.calib.get(name)
        if real is None or fed.dtype.kind not in "fiu" or not fed.size or not real.size:
            continue
        low, high = float(real.min()), float(real.max())
        span = high - low or 1.0
        if fed.min() < low - span or fed.max() > high + span:
            far.append(name)
        if fed.ndim >= 3 and _neighbours(fed) < _WHITE < _neighbours(real):
            white.append(name)
    if not far and not white:
        return
    a, b = bench.run(bench.a, e.calib), bench.run(bench.b, e.calib)
    if a is None or b is None:
        yield from fact(
            "invalid-test-input",
            ("inputs unlike the calibration", float(len({*far, *white})), ""),
            ("difference", min(bench.before, 1e12), "of the range"),
            subjects=tuple({*far, *white}),
            confirmed=bool(white) and bool(far) and not bench.fixed_point and bench.before <= SMALL,
        )
        return
    tried = trial("invalid-test-input", "calibration feeds", bench.start, bench.distance(a, b), bench.floor)
    if white:
        yield from explained(
            tried, subjects=tuple({*far, *white}), facts=(("inputs that are noise", float(len(white)), ""),)
        )


def implausible_feeds(bench: Bench) -> bool:
    """Whether an input is noise where its calibration is an image: nothing is learnt of calibration from it."""
    e = bench.evidence
    both = [(fed, e.calib[name]) for name, fed in e.feeds_a.items() if name in e.calib]
    return any(
        fed.ndim >= 3 and fed.size and real.size and _neighbours(fed) < _WHITE < _neighbours(real) for fed, real in both
    )


def _neighbours(value: Tensor) -> float:
    x = np.asarray(value, np.float64)
    if x.shape[-1] < 3:
        return 1.0
    with np.errstate(invalid="ignore", divide="ignore"):
        found = float(np.corrcoef(x[..., 1:].reshape(-1), x[..., :-1].reshape(-1))[0, 1])
    return found if math.isfinite(found) else 1.0


def find_hidden_sample(bench: Bench) -> Iterator[Explanation]:
    """All samples agree but one or two, which a mean does not show."""
    for name, a, b in bench.pairs:
        if a.shape != b.shape or a.ndim < 2 or a.shape[0] < 8 or a.dtype.kind != "f" or not _is_batch(bench, a):
            continue
        x, y = (np.asarray(v, np.float64).reshape(len(v), -1) for v in (a, b))
        gaps = np.sqrt(((x - y) ** 2).mean(1)) / max(float(x.std()), 1e-12)
        if not np.isfinite(gaps).all():
            continue
        usual, worst_gap = float(np.median(gaps)), float(gaps.max())
        limit = min(0.3, max(0.1, 30 * usual))
        bad = int((gaps > max(10 * usual, limit / 1.5)).sum())
        if worst_gap > limit and 0 < bad <= max(1, len(gaps) // 10) and usual <= 0.05:
            yield from fact(
                "worst-sample-hidden",
                ("sample", float(gaps.argmax()), ""),
                ("error of this sample", worst_gap, "of the standard deviation"),
                ("median of all", usual, "of the standard deviation"),
                subjects=(name,),
            )


RULES = (
    Rule(
        ("custom-op-missing", "toolchain-version-mismatch"),
        0,
        lambda bench: bool(bench.evidence.load_error) or bool(bench.b.refused),
        find_refused,
    ),
    Rule(("incomplete-evidence",), 0, lambda bench: True, find_incomplete),
    Rule(("reference-invalid",), 1, lambda bench: bool(bench.outputs_a), find_bad_reference),
    Rule(("nan-output",), 1, lambda bench: bool(bench.pairs), find_not_finite),
    Rule(("stale-artifact",), 1, lambda bench: bench.recorded_b, find_stale),
    Rule(("invalid-test-input",), 1, lambda bench: bool(bench.evidence.calib), find_invalid_input),
    Rule(("worst-sample-hidden",), 3, lambda bench: bool(bench.pairs), find_hidden_sample),
    Rule(("environment-drift",), 3, lambda bench: bench.recorded_b, find_drift),
)
