"""The table of rules about how outputs are read."""

from __future__ import annotations

import numpy as np

from driftgate.diagnosis.bench import Bench
from driftgate.diagnosis.outputs.activation import find_missing_activation
from driftgate.diagnosis.outputs.axes import find_axis_order, find_layer_layout
from driftgate.diagnosis.outputs.decoding import find_missing_decode
from driftgate.diagnosis.outputs.missing_outputs import find_missing_outputs
from driftgate.diagnosis.outputs.number_types import find_type
from driftgate.diagnosis.outputs.order import find_output_order
from driftgate.diagnosis.outputs.padding import find_padding
from driftgate.diagnosis.outputs.rows import find_row_cap, find_row_order
from driftgate.diagnosis.outputs.scales import find_scale
from driftgate.diagnosis.outputs.tails import find_cut_tail
from driftgate.diagnosis.trials import Rule


def _has_pairs(bench: Bench) -> bool:
    return bool(bench.pairs) and bench.start > 0


def _finite(bench: Bench) -> bool:
    """Whether there are outputs that differ and that are numbers."""
    return _has_pairs(bench) and all(np.isfinite(b).all() for _, _, b in bench.pairs if b.dtype.kind == "f")


def _is_read(bench: Bench) -> bool:
    """Whether somebody read outputs that differ: numbers that the candidate's model gives here were not misread."""
    return _has_pairs(bench) and not bench.replays_b


RULES = (
    Rule(("incomplete-evidence",), 0, lambda bench: bool(bench.outputs_a), find_missing_outputs),
    Rule(("output-permuted",), 1, lambda bench: len(bench.outputs_a) > 1 and _finite(bench), find_output_order),
    Rule(("output-layout-nhwc", "output-transposed", "comparator-layout"), 1, _finite, find_axis_order),
    Rule(("comparator-layout",), 1, lambda bench: bool(bench.evidence.layers_b), find_layer_layout),
    Rule(("output-stride-padding",), 1, lambda bench: _finite(bench) and _is_read(bench), find_padding),
    Rule(("dtype-misread",), 1, _is_read, find_type),
    Rule(("tail-int32-undequantized", "double-dequantization", "dequant-scale-mismatch"), 1, _finite, find_scale),
    Rule(("missing-sigmoid",), 1, _finite, find_missing_activation),
    Rule(("missing-decode",), 1, _finite, find_missing_decode),
    Rule(("missing-sigmoid", "missing-decode"), 2, _finite, find_cut_tail),
    Rule(("topk-order",), 1, _finite, find_row_order),
    Rule(("nms-topk-cap",), 1, _finite, find_row_cap),
)
