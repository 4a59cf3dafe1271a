"""Errors of the board's runtime that are known, by their words (toolchain facts §13, 13a-13c)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from driftgate.domain.toolchain.board import BoardFault
from driftgate.vendor.cells import integer
from driftgate.vendor.console import said_lines, whole_lines
from driftgate.vendor.files import read_text

_RELEASE = r"v?\d+\.\d+(?:\.\w+)*"
#: Kind → words that tell it. Groups: found and wanted march or release, length in bytes. How the runtime words that a
#: model is of another release is not known: both sides must be named with their numbers, the model's first.
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
    "version": re.compile(
        rf"\b(?:hbm|model|hbdk|toolchain|toolkit|compiler)\b\D{{0,40}}?(?<![\w.])(?P<found>{_RELEASE})"
        rf".{{0,200}}\b(?:(?:lib)?hbrt|runtime|library)\b\D{{0,40}}?(?<![\w.])(?P<wanted>{_RELEASE})",
        re.I,
    ),
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


def telling_lines(text: str) -> tuple[str, ...]:
    """The lines by which the known errors are known, each once."""
    lines = (line.strip() for line in said_lines(text))
    return tuple(dict.fromkeys(line for line in lines if any(pattern.search(line) for pattern in FAULTS.values())))


def _details(fault: BoardFault) -> int:
    return sum(value is not None for value in (fault.found, fault.wanted, fault.length_bytes))
