"""The table of rules about graphs."""

from __future__ import annotations

from driftgate.diagnosis.bench import FLOAT_FLOOR, Bench
from driftgate.diagnosis.graphs.batches import find_batch, find_batch_shape
from driftgate.diagnosis.graphs.computed_constants import find_computed_constants, find_one_shape_only
from driftgate.diagnosis.graphs.folds import find_wrong_fold
from driftgate.diagnosis.graphs.nodes import find_variant
from driftgate.diagnosis.graphs.other_constants import find_other_constants
from driftgate.diagnosis.graphs.regions import find_wrong_region
from driftgate.diagnosis.graphs.training import find_training
from driftgate.diagnosis.trials import Rule


def _can_vary(bench: Bench) -> bool:
    return (
        (bench.a.runs or bench.b.runs) and bool(bench.outputs_a) and bool(bench.outputs_b) and bench.start > FLOAT_FLOOR
    )


def _two_models(bench: Bench) -> bool:
    return bench.a.model is not None and bench.b.runs and bool(bench.outputs_a) and bench.start > FLOAT_FLOOR


RULES = (
    Rule(("trace-constant-baked", "constant-fold-bug"), 2, _two_models, find_computed_constants),
    Rule(("weights-mismatch", "constant-fold-bug", "trace-constant-baked"), 2, _two_models, find_other_constants),
    Rule(("bn-fold-error",), 2, _two_models, find_wrong_fold),
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
    Rule(("trace-constant-baked",), 3, lambda bench: bool(bench.pairs), find_one_shape_only),
    Rule(("graph-fusion-error", "norm-fusion-error", "bn-fold-error"), 3, _two_models, find_wrong_region),
)
