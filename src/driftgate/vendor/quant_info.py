"""hb_compile's quant_info.json: thresholds by node. Its full form is not published (toolchain facts §2.2, §15)."""

from __future__ import annotations

import math
from pathlib import Path
from typing import cast

from driftgate.domain.toolchain.build import NodeThresholds, QuantInfo
from driftgate.vendor.files import form_error, json_object, read_text

TOOL = "hb_compile"
THRESHOLDS = "thresholds"
WANTED = f'an object with one entry a node, such as {{"node": {{"{THRESHOLDS}": [[1.5]]}}}}'


def read_quant_info(path: Path) -> QuantInfo:
    """The thresholds of each node; ArtifactError where the file is no such object, or no node has any."""
    return parse_quant_info(read_text(path), name=str(path))


def parse_quant_info(text: str, *, name: str = "-") -> QuantInfo:
    """The same from text."""
    entries = json_object(text, name, tool=TOOL, wanted=WANTED)
    nodes, unread = [], []
    for node, entry in entries.items():
        thresholds = _rows(entry.get(THRESHOLDS)) if isinstance(entry, dict) else None
        if thresholds is None:
            unread.append(node)
        else:
            other = tuple(sorted(key for key in cast(dict[str, object], entry) if key != THRESHOLDS))
            nodes.append(NodeThresholds(node, thresholds, other))
    if not nodes:
        raise form_error(name, tool=TOOL, key=THRESHOLDS, found=dict(entries), wanted=WANTED)
    return QuantInfo(tuple(nodes), tuple(unread))


def _rows(value: object) -> tuple[tuple[float, ...], ...] | None:
    """Rows of finite numbers; one row may stand without its outer brackets. None where it is anything else."""
    if not isinstance(value, list):
        return None
    rows = value if all(isinstance(row, list) for row in value) else [value]
    if not all(_is_number(item) for row in rows for item in row):
        return None
    return tuple(tuple(float(item) for item in row) for row in rows)


def _is_number(value: object) -> bool:
    """Whether it is a finite number that a float can hold."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    try:
        return math.isfinite(float(value))
    except OverflowError:
        return False
