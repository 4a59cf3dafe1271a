"""What the vendor asks for when a stage is inconsistent, by the stage that failed (vendor rules §5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum


class Kind(str, Enum):
    """What an entry is: a stage's model, a file of the build, or data of the sample that failed."""

    MODEL = "model"
    LOG = "log"
    QUANT_CONFIG = "quant-config"
    INPUT = "input"
    RUNTIME_INPUT = "runtime-input"
    BOARD_INPUT = "board-input"
    INFER_OUTPUT = "infer-output"
    BOARD_OUTPUT = "board-output"


@dataclass(frozen=True, slots=True)
class Keep:
    """One entry; of a model the `stages` any of which it may be, the wanted one first."""

    kind: Kind
    stages: tuple[str, ...] = ()


def _model(*stages: str) -> Keep:
    return Keep(Kind.MODEL, stages)


_LOG, _CONFIG, _INPUT = Keep(Kind.LOG), Keep(Kind.QUANT_CONFIG), Keep(Kind.INPUT)
_FIXED_POINT = (_model("ptq", "qat_bc"), _model("quantized"), _CONFIG, _LOG, _INPUT, Keep(Kind.RUNTIME_INPUT))

#: Candidate of the failing link → what to keep. Of stages that are not in it the vendor wants nothing: an export is the
#: user's own, and what calibration costs is to be tuned.
CHECKLISTS: Mapping[str, tuple[Keep, ...]] = {
    "optimized_float": (_model("original_float"), _model("optimized_float"), _LOG, _INPUT),
    "ptq": (
        _model("original_float"),
        _model("optimized_float"),
        _model("calibrated"),
        _model("ptq"),
        _LOG,
        _INPUT,
    ),
    "quantized": _FIXED_POINT,
    "nv12_quantized": (_model("qat_bc"), _model("nv12_quantized"), *_FIXED_POINT[2:]),
    "quantized_removed": (_FIXED_POINT[0], _model("quantized"), _model("quantized_removed"), *_FIXED_POINT[2:]),
    "hbm": (
        _model("quantized_removed", "quantized", "nv12_quantized"),
        _model("hbm"),
        _CONFIG,
        _LOG,
        Keep(Kind.INFER_OUTPUT),
        Keep(Kind.BOARD_OUTPUT),
        _INPUT,
        Keep(Kind.BOARD_INPUT),
    ),
}
#: Of these the loss itself is no inconsistency.
TUNING = ("calibrated", "calibration", "qat")
