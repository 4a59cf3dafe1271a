"""Errors of the board's runtime that are known, by their words (toolchain facts §13, 13a-13c)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from driftgate.domain.toolchain.board import BoardFault
from driftgate.vendor.cells import integer
from driftgate.vendor.console import said_lines, whole_lines
from driftgate.vendor.files import read_text

#: Kind → words that tell it. Groups: found and wanted march, length in bytes.
FAULTS: Mapping[str, re.Pattern[str]] = {
    "march": re.compile(
        r"Model march incompatible(?:! model march: (?P<found>nash[\w-]*), platform march: (?P<wanted>nash[\w-]*))?"
        r"|(?<!\d)-600004(?!\d)"
    ),
    "memory": re.compile(
        r"Cannot malloc bpu memory with length (?P<length>\d+) bytes|Fail to do ION_IOC_ALLOC"
        r"|HBRT4_STATUS_RESOURCE_EXHAUSTED|(?<!\d)-400001(?!\d)"
    ),
    "environment": re.compile(r"iova addr not equal for different core"),
}


def read_faults(path: Path) -> tuple[BoardFault, ...]:
    """The known errors in a log of the board; empty where there is none."""
    return parse_faults(read_text(path))


def parse_faults(text: str) -> tuple[BoardFault, ...]:
    """The same from text: one of each kind, the one that says most."""
    best: dict[str, BoardFault] = {}
    whole = len(whole_lines(text))
    for at, line in enumerate(said_lines(text)):
        for kind, pattern in FAULTS.items():
            if match := pattern.search(line):
                told = {key: value for key, value in match.groupdict().items() if value and at < whole}
                fault = BoardFault(kind, told.get("found"), told.get("wanted"), integer(told.get("length", "")))
                best[kind] = max(best.get(kind, fault), fault, key=_details)
    return tuple(best.values())


def _details(fault: BoardFault) -> int:
    return sum(value is not None for value in (fault.found, fault.wanted, fault.length_bytes))
