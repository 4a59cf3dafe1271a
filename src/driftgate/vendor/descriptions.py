"""A model's description, the JSON that its builder wrote into it (toolchain facts §7.3, §12)."""

from __future__ import annotations

from driftgate.domain.toolchain.board import BoardModel, BoardTensor
from driftgate.domain.toolchain.common import ToolVersions
from driftgate.errors import ArtifactError
from driftgate.vendor.contracts import contracts_of_description, listed
from driftgate.vendor.files import compact, json_value

VERSIONS = {
    "builder": ("BUILDER_VERSION",),
    "hbdk": ("HBDK_VERSION",),
    "hmct": ("HMCT_VERSION", "HORIZON_NN_VERSION"),
}


def described_model(name: str | None, tensors: tuple[BoardTensor, ...], description: str) -> BoardModel:
    """A model with what its description says; one that is no JSON, as cut off in an excerpt, says nothing."""
    try:
        value = json_value(description or "{}", name or "-", tool="")
    except ArtifactError:
        value = {}
    told = value if isinstance(value, dict) else {}
    return BoardModel(
        name=name,
        tensors=tensors,
        inputs=contracts_of_description(told),
        versions=ToolVersions(
            **{
                field: next((value for key in keys if isinstance(value := told.get(key), str) and value), None)
                for field, keys in VERSIONS.items()
            }
        ),
        march=_word(told.get("MARCH")),
        calibration_type=_word(told.get("CALI_TYPE")),
        calibration_folders=tuple(listed(told.get("CAL_DATA_DIR"))),
        description=tuple((key, value if isinstance(value, str) else compact(value)) for key, value in told.items()),
    )


def _word(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
