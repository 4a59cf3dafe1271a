"""The table of rules about quantisation."""

from __future__ import annotations

from collections.abc import Sequence

from driftgate.diagnosis.bench import FLOAT_FLOOR, INTEGER_FLOOR, Bench
from driftgate.diagnosis.quantisation.accumulators import find_accumulator, find_accumulator_by_hand
from driftgate.diagnosis.quantisation.calibration import find_calibration_feeds
from driftgate.diagnosis.quantisation.clipping import find_clipping, find_output_saturation
from driftgate.diagnosis.quantisation.constant_output import find_constant
from driftgate.diagnosis.quantisation.decisions import find_crossing
from driftgate.diagnosis.quantisation.fusion import find_blocked_fusion
from driftgate.diagnosis.quantisation.imbalance import find_imbalance
from driftgate.diagnosis.quantisation.lost_signals import find_mixed_ranges, find_small_signal
from driftgate.diagnosis.quantisation.noise import find_rounding_noise
from driftgate.diagnosis.quantisation.outliers import find_outliers
from driftgate.diagnosis.quantisation.overflow import find_half_overflow, find_wraparound
from driftgate.diagnosis.quantisation.pairwise import find_pairs_cut_off
from driftgate.diagnosis.quantisation.parameters import find_parameters
from driftgate.diagnosis.quantisation.sensitivity import find_layer_growth, find_sensitive
from driftgate.diagnosis.quantisation.spreads import NOISE, loss
from driftgate.diagnosis.trials import Rule
from driftgate.diagnosis.weights import paired_weights


def _lossy(bench: Bench) -> bool:
    return bench.fixed_point and bool(bench.pairs)


def _bad(bench: Bench) -> bool:
    return _lossy(bench) and (bench.start > INTEGER_FLOOR or loss(bench.outputs_a, bench.outputs_b) > NOISE)


def _has_layers_or_models(bench: Bench) -> bool:
    return bool(bench.evidence.layers_b) or bench.b.runs


def _weights_only(bench: Bench) -> bool:
    return bench.b.runs and _bad(bench) and bool(paired_weights(bench))


def _ablated(bench: Bench) -> bool:
    known = bool(bench.evidence.ablation) or bench.fixed_point
    return known and bench.before_spread > INTEGER_FLOOR / 2


RULES: Sequence[Rule] = (
    Rule(
        ("quant-params-missing", "quant-params-mismatch", "precision-fallback"),
        2,
        lambda bench: bench.evidence.quant is not None,
        find_parameters,
    ),
    Rule(("threshold-crossing",), 1, lambda bench: bool(bench.evidence.post), find_crossing),
    Rule(("int8-wraparound",), 1, lambda bench: bool(bench.pairs), find_wraparound),
    Rule(("saturation",), 1, lambda bench: bool(bench.pairs) and bench.start > INTEGER_FLOOR, find_output_saturation),
    Rule(("small-signal-lost",), 1, lambda bench: bool(bench.pairs), find_small_signal),
    Rule(("mixed-range-concat",), 2, _lossy, find_mixed_ranges),
    Rule(("fp16-overflow",), 2, _has_layers_or_models, find_half_overflow),
    Rule(
        ("calibration-preprocess-mismatch",),
        2,
        lambda bench: bool(bench.evidence.calib) and _bad(bench),
        find_calibration_feeds,
    ),
    Rule(("calibration-not-representative", "saturation"), 2, _bad, find_clipping),
    Rule(("outlier-range",), 2, _bad, find_outliers),
    Rule(("weight-range-imbalance",), 2, _weights_only, find_imbalance),
    Rule(("fusion-blocked",), 2, _bad, find_blocked_fusion),
    Rule(("accumulator-saturation",), 2, lambda bench: bench.b.runs and bench.start > FLOAT_FLOOR, find_accumulator),
    Rule(("accumulator-saturation",), 2, lambda bench: bool(bench.evidence.weights), find_accumulator_by_hand),
    Rule(("accumulator-saturation",), 2, lambda bench: bench.b.runs and bench.fixed_point, find_pairs_cut_off),
    Rule(("constant-output",), 3, lambda bench: bool(bench.pairs), find_constant),
    Rule(("sensitive-nodes", "error-accumulation"), 3, _ablated, find_sensitive),
    Rule(("error-accumulation",), 3, lambda bench: bool(bench.evidence.layers_b), find_layer_growth),
    Rule(("quantization-noise",), 3, _lossy, find_rounding_noise),
)
