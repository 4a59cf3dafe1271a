"""The table of rules about graphs."""

from __future__ import annotations

from collections.abc import Iterator

from driftgate.diagnosis.bench import FLOAT_FLOOR, Bench
from driftgate.diagnosis.graphs.batches import find_batch, find_batch_shape
from driftgate.diagnosis.graphs.computed_constants import find_computed_constants, find_one_shape_only
from driftgate.diagnosis.graphs.nodes import find_variant
from driftgate.diagnosis.graphs.other_constants import find_other_checkpoint, find_other_constants
from driftgate.diagnosis.graphs.regions import find_wrong_region
from driftgate.diagnosis.graphs.rewrites import find_rewrites, read_parting
from driftgate.diagnosis.graphs.training import find_training
from driftgate.diagnosis.residuals import worst
from driftgate.diagnosis.trials import Find, Rule
from driftgate.domain.investigations import Explanation


def _can_vary(bench: Bench) -> bool:
    there = bool(bench.outputs_a) and bool(bench.outputs_b)
    return (bench.a.runs or bench.b.runs) and there and bench.start > FLOAT_FLOOR and not _compute_alike(bench)


def _two_models(bench: Bench) -> bool:
    there = bench.a.model is not None and bench.b.runs and bool(bench.outputs_a)
    return there and bench.start > FLOAT_FLOOR and not _compute_alike(bench)


def _part(bench: Bench) -> bool:
    """Whether the graphs of both models may differ in what they compute."""
    if not _two_models(bench):
        return False
    told = read_parting(bench)
    return told is None or bool(told[1])


def _compute_alike(bench: Bench) -> bool:
    """Whether both models give the same outputs for the same feeds: then nothing in their graphs is the cause."""
    if not (bench.a.runs and bench.b.runs):
        return False
    b = bench.rerun_b if bench.same_feeds else bench.run(bench.b, bench.evidence.feeds_a)
    return bench.rerun_a is not None and b is not None and worst(bench.rerun_a, b) <= FLOAT_FLOOR


#: Each is asked only where those before it explain nothing for sure.
SEARCHES: tuple[Find, ...] = (find_rewrites, find_other_constants, find_computed_constants)


def find_in_two_models(bench: Bench) -> Iterator[Explanation]:
    """What differs in the graphs of both models, the surest experiment first."""
    for search in SEARCHES:
        found = tuple(search(bench))
        yield from found
        if any(one.confirmed for one in found):
            return


RULES = (
    Rule(
        (
            *("bn-fold-error", "constant-fold-bug", "graph-fusion-error", "norm-fusion-error", "norm-semantics"),
            *("pooling-ceil-mode", "pooling-count-include-pad", "resize-coordinate-mode", "softmax-axis"),
            *("trace-constant-baked", "train-mode-export", "weights-mismatch"),
        ),
        2,
        _two_models,
        find_in_two_models,
    ),
    Rule(("batch-shape-mismatch",), 2, lambda bench: bench.b.runs, find_batch),
    Rule(("batch-shape-mismatch",), 1, lambda bench: bench.b.model is not None, find_batch_shape),
    Rule(("train-mode-export",), 2, _can_vary, find_training),
    Rule(
        (
            "pooling-count-include-pad",
            "pooling-ceil-mode",
            "resize-coordinate-mode",
            "softmax-axis",
            "norm-semantics",
            "norm-fusion-error",
            "train-mode-export",
            "graph-fusion-error",
        ),
        3,
        _can_vary,
        find_variant,
    ),
    Rule(("weights-mismatch",), 3, _two_models, find_other_checkpoint),
    Rule(("trace-constant-baked",), 3, lambda bench: bool(bench.pairs), find_one_shape_only),
    Rule(("graph-fusion-error", "norm-fusion-error", "bn-fold-error"), 3, _part, find_wrong_region),
)
