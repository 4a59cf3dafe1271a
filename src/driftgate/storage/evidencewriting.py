"""Writes an evidence folder: the files by name that `storage.evidence` reads, without the models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from driftgate.domain.bundles import Role
from driftgate.domain.evidence import Board, Evidence, QuantParams
from driftgate.storage.archive import Content, of_arrays, of_bytes
from driftgate.storage.document import encoded_json
from driftgate.storage.evidence import TENSOR_FILES

LINK = "link.json"
#: Of the files with tensors those that are not the link's own inputs and outputs.
_ROLES = {
    "layers_a.npz": Role.LAYERS,
    "layers_b.npz": Role.LAYERS,
    "calib.npz": Role.CALIBRATION,
    "weights_int8.npz": Role.MODEL,
}


def evidence_files(evidence: Evidence, *, samples: Sequence[str], subject: str) -> dict[str, tuple[Role, Content]]:
    """Every file of the folder by its name, with its role; what is empty is left out."""
    note = {**asdict(evidence.link), "subject": subject, "samples": list(samples)}
    documents: Mapping[str, Any] = {
        LINK: note,
        "topo.json": {"order": list(evidence.order), "op": dict(evidence.ops)} if evidence.order else None,
        "quant_params.json": None if evidence.quant is None else _quant(evidence.quant),
        "board.json": None if evidence.board is None else _board(evidence.board),
        "post.json": dict(evidence.post) or None,
        "ablation.json": dict(evidence.ablation) or None,
    }
    found = {name: (Role.LINK, of_bytes(encoded_json(told))) for name, told in documents.items() if told is not None}
    for name, place in TENSOR_FILES.items():
        arrays = getattr(evidence, place)
        if len(arrays):
            found[name] = (_ROLES.get(name, Role.LINK), of_arrays(arrays))
    for name, value in evidence.buffers.items():
        found[f"{name}.bin"] = (Role.LINK, of_bytes(value.tobytes()))
    if evidence.load_error is not None:
        found["load_error.txt"] = (Role.LINK, of_bytes(evidence.load_error.encode("utf-8", "backslashreplace")))
    return found


def _quant(told: QuantParams) -> dict[str, Any]:
    return {"bits": dict(told.bits_of) or told.bits, "scales": {**told.steps, **dict.fromkeys(told.unscaled)}}


def _board(told: Board) -> dict[str, Any]:
    made: dict[str, Any] = {}
    if told.input is not None:
        made["input"] = {name: value for name, value in asdict(told.input).items() if value is not None}
    if told.outputs:
        keys = {"axis": "quantize_axis", "scales": "scale", "strides": "stride"}
        made["outputs"] = [
            {keys.get(name, name): value for name, value in asdict(one).items() if value not in (None, ())}
            for one in told.outputs
        ]
    return made
