"""Which causes a link can have at all, by the stage of its candidate: the vendor's rules of the job as data."""

from __future__ import annotations

from driftgate.domain.chain import CHAINS, FeedKind
from driftgate.domain.evidence import LinkNote
from driftgate.judgement.codes import CODES, Segment

#: Stages that are fed the same tensors as the stage before, with no change of the input on the way.
NO_INPUT_CHANGE = frozenset({"optimized_float", "calibrated", "ptq", "qat_export"})
INPUT_CAUSES = frozenset(
    {
        *("double-normalization", "input-channel-swap", "input-scale-255", "layout-nhwc", "missing-mean-scale"),
        *("noncontiguous-input", "resize-letterbox-mismatch", "input-mismatch", "input-offset-128"),
        *("input-permuted", "nv12-conversion-loss", "nv12-stride-padding", "nv12-uv-order", "wrong-input-kind"),
    }
)
#: Causes of later segments that a float network can have as well.
ANYWHERE = frozenset(
    {
        *("constant-output", "fp16-overflow", "precision-fallback", "threshold-crossing", "error-accumulation"),
        *("comparator-layout", "dtype-misread", "input-mismatch", "input-permuted", "reference-invalid"),
        *("output-layout-nhwc", "nv12-conversion-loss"),
    }
)
#: Segments of causes that only a later stage can have, by the candidate's segment.
LATER: dict[int, frozenset[Segment]] = {
    1: frozenset({Segment.QUANTISE, Segment.BOARD}),
    2: frozenset({Segment.QUANTISE, Segment.BOARD}),
    3: frozenset({Segment.BOARD}),
}
#: Of the board's causes those that a fixed-point model on the host can have.
FIXED_POINT = frozenset(
    {"rounding-lsb", "dequant-scale-mismatch", "double-dequantization", "tail-int32-undequantized", "input-offset-128"}
)
#: And those that come of preparing what a deployed model eats.
PREPARED = frozenset({"nv12-stride-padding", "nv12-uv-order", "wrong-input-kind"})
_RUNTIME = {stage.name for chain in CHAINS.values() for stage in chain.stages if stage.feeds is FeedKind.RUNTIME}
_SEGMENTS = {stage.name: stage.segment for chain in CHAINS.values() for stage in chain.stages}


def impossible(link: LinkNote) -> frozenset[str]:
    """The codes that cannot be the cause of this link's difference; none where it is not told what is compared."""
    segment = _SEGMENTS.get(link.candidate)
    if segment is None:
        return frozenset()
    later = {code.code for code in CODES.values() if code.segment in LATER.get(segment, frozenset())}
    allowed = ANYWHERE | FIXED_POINT if segment == max(LATER) else ANYWHERE
    allowed |= PREPARED if link.candidate in _RUNTIME else frozenset()
    return frozenset(later - allowed) | (INPUT_CAUSES if link.candidate in NO_INPUT_CHANGE else frozenset())
