"""The table of finding codes: what a code means for the verdict, who acts, and how specific it is."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from driftgate.messages.message import Message, message


class Segment(str, Enum):
    """Where on the way from PyTorch to the board a cause lies; EVIDENCE: in what was collected or compared."""

    EXPORT = "pytorch-onnx"
    OPTIMISE = "onnx-optimized"
    QUANTISE = "float-int8"
    BOARD = "quantized-board"
    EVIDENCE = "evidence"


class Verdict(str, Enum):
    """PASS: a difference that is no fault. ERROR: nothing can be concluded."""

    PASS = "PASS"  # noqa: S105
    FAIL = "FAIL"
    ERROR = "ERROR"


class Who(str, Enum):
    """Who acts."""

    USER = "user"
    VENDOR = "vendor"
    BOTH = "user-vendor"
    NOBODY = "nobody"


@dataclass(frozen=True, slots=True)
class Code:
    """One cause. `generality` -1 is a contradiction between documents, to be mended before anything is tuned; 0 names
    a cause, 1 a kind of cause, 2 a symptom; of two explanations the one with the smaller number comes first. Its
    sentences are `cause-<code>` and `next-<code>`."""

    code: str
    segment: Segment
    verdict: Verdict
    who: Who
    generality: int = 0

    @property
    def cause(self) -> Message:
        """What it is."""
        return message(f"cause-{self.code}")

    @property
    def next(self) -> Message:
        """What to do first."""
        return message(f"next-{self.code}")

    @property
    def actor(self) -> Message:
        """Who does it."""
        return message(f"who-{self.who.value}")

    @property
    def untouched(self) -> Message | None:
        """What to leave alone; None where nothing is said."""
        return message(f"untouched-{self.segment.value}") if self.segment in _UNTOUCHED else None


_UNTOUCHED = frozenset({Segment.EXPORT, Segment.OPTIMISE, Segment.BOARD})
_E, _O, _Q, _B, _V = Segment.EXPORT, Segment.OPTIMISE, Segment.QUANTISE, Segment.BOARD, Segment.EVIDENCE
_PASS, _FAIL, _ERROR = Verdict.PASS, Verdict.FAIL, Verdict.ERROR
_U, _X, _UX, _N = Who.USER, Who.VENDOR, Who.BOTH, Who.NOBODY

CODES: dict[str, Code] = {
    code.code: code
    for code in (
        Code("batch-shape-mismatch", _E, _FAIL, _U),
        Code("custom-op-missing", _E, _FAIL, _UX),
        Code("double-normalization", _E, _FAIL, _U),
        Code("input-channel-swap", _E, _FAIL, _U),
        Code("input-scale-255", _E, _FAIL, _U),
        Code("layout-nhwc", _E, _FAIL, _U),
        Code("missing-decode", _E, _FAIL, _U),
        Code("missing-mean-scale", _E, _FAIL, _U),
        Code("missing-sigmoid", _E, _FAIL, _U),
        Code("nan-output", _E, _FAIL, _U, 1),
        Code("nms-topk-cap", _E, _FAIL, _U),
        Code("noncontiguous-input", _E, _FAIL, _U),
        Code("norm-semantics", _E, _FAIL, _U),
        Code("numeric-noise", _E, _PASS, _N),
        Code("output-transposed", _E, _FAIL, _U),
        Code("pooling-ceil-mode", _E, _FAIL, _U),
        Code("pooling-count-include-pad", _E, _FAIL, _U),
        Code("resize-coordinate-mode", _E, _FAIL, _U),
        Code("resize-letterbox-mismatch", _E, _FAIL, _U),
        Code("softmax-axis", _E, _FAIL, _U),
        Code("topk-order", _E, _PASS, _N),
        Code("trace-constant-baked", _E, _FAIL, _U),
        Code("train-mode-export", _E, _FAIL, _U),
        Code("weights-mismatch", _E, _FAIL, _U, 1),
        Code("bn-fold-error", _O, _FAIL, _X),
        Code("constant-fold-bug", _O, _FAIL, _X),
        Code("graph-fusion-error", _O, _FAIL, _X, 1),
        Code("norm-fusion-error", _O, _FAIL, _X),
        Code("output-permuted", _O, _FAIL, _U),
        Code("accumulator-saturation", _Q, _FAIL, _UX),
        Code("calibration-not-representative", _Q, _FAIL, _U),
        Code("calibration-preprocess-mismatch", _Q, _FAIL, _U),
        Code("constant-output", _Q, _FAIL, _U, 1),
        Code("error-accumulation", _Q, _FAIL, _UX, 2),
        Code("fp16-overflow", _Q, _FAIL, _U),
        Code("fusion-blocked", _Q, _FAIL, _U),
        Code("int8-wraparound", _Q, _FAIL, _X),
        Code("mixed-range-concat", _Q, _FAIL, _U),
        Code("outlier-range", _Q, _FAIL, _U),
        Code("precision-fallback", _Q, _FAIL, _UX),
        Code("quant-params-mismatch", _Q, _FAIL, _UX, -1),
        Code("quant-params-missing", _Q, _FAIL, _U, -1),
        Code("quantization-noise", _Q, _PASS, _N, 1),
        Code("saturation", _Q, _FAIL, _U),
        Code("sensitive-nodes", _Q, _FAIL, _UX, 1),
        Code("small-signal-lost", _Q, _FAIL, _U),
        Code("threshold-crossing", _Q, _PASS, _N),
        Code("weight-range-imbalance", _Q, _FAIL, _U),
        Code("comparator-layout", _B, _PASS, _N),
        Code("dequant-scale-mismatch", _B, _FAIL, _U),
        Code("device-op-error", _B, _FAIL, _X, 1),
        Code("double-dequantization", _B, _FAIL, _U),
        Code("dtype-misread", _B, _FAIL, _U),
        Code("input-mismatch", _B, _FAIL, _U, 2),
        Code("input-offset-128", _B, _FAIL, _U),
        Code("input-permuted", _B, _FAIL, _U),
        Code("march-mismatch", _B, _FAIL, _U),
        Code("nv12-conversion-loss", _B, _PASS, _N),
        Code("nv12-stride-padding", _B, _FAIL, _U),
        Code("nv12-uv-order", _B, _FAIL, _U),
        Code("output-layout-nhwc", _B, _FAIL, _U),
        Code("output-stride-padding", _B, _FAIL, _U),
        Code("reference-invalid", _B, _ERROR, _U, 1),
        Code("rounding-lsb", _B, _PASS, _N),
        Code("tail-int32-undequantized", _B, _FAIL, _U),
        Code("wrong-input-kind", _B, _FAIL, _U),
        Code("environment-drift", _V, _FAIL, _U, 1),
        Code("incomplete-evidence", _V, _ERROR, _U, 1),
        Code("invalid-test-input", _V, _PASS, _U),
        Code("regression-vs-baseline", _V, _FAIL, _UX, 1),
        Code("stale-artifact", _V, _FAIL, _U),
        Code("toolchain-version-mismatch", _V, _FAIL, _U),
        Code("worst-sample-hidden", _V, _FAIL, _U),
    )
}
