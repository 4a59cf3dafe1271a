"""What to do first, who acts and what not to touch, by where the chain breaks first (vendor's rules as tables)."""

from __future__ import annotations

from collections.abc import Sequence

from driftgate.domain.chain import Link
from driftgate.domain.judgement import Divergence
from driftgate.messages.message import Message, message

#: Few nodes: so many that mixed precision or QAT on them alone is worth most.
FEW = 3

#: candidate stage of the first failing link → (what to do first, may QAT help)
FIRST_ACTS: dict[str, tuple[str, bool]] = {
    "onnx": ("advice-export", False),
    "original_float": ("advice-optimisation", False),
    "optimized_float": ("advice-optimisation", False),
    "calibrated": ("advice-calibration", True),
    "ptq": ("advice-lut", False),
    "quantized": ("advice-fixed-point", False),
    "quantized_removed": ("advice-removed", False),
    "hbm": ("advice-board", False),
    "calibration": ("advice-qat-training", False),
    "qat": ("advice-qat-training", False),
    "qat_export": ("advice-qat-export", False),
    "qat_bc": ("advice-qat-export", False),
    "nv12_quantized": ("advice-nv12", False),
}


def advise(
    broken: Link | None, divergences: Sequence[Divergence], *, lossy_passed: bool, calibration_tuned: bool
) -> tuple[Message, ...]:
    """Advice for the first failing link; where nothing fails and INT8 was judged, that QAT is not needed."""
    if broken is None:
        return (message("advice-no-qat-needed"),) if lossy_passed else ()
    code, may = FIRST_ACTS.get(broken.candidate, ("", False))
    first = (message(code),) if code else ()
    if broken.candidate not in FIRST_ACTS or code.startswith("advice-qat"):
        return first
    if not may:
        return (*first, message("advice-no-qat"))
    few = 0 < len([d for d in divergences if d.link == broken.name and d.cause != "vendor"]) <= FEW
    qat = "advice-qat-few-nodes" if few else "advice-qat-tuned" if calibration_tuned else "advice-qat-may"
    return (*first, message(qat))
