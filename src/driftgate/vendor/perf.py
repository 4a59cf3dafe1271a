"""The compiler's estimate as JSON, from hb_compile and hb_analyzer: not a board's numbers (toolchain facts §2.5)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from driftgate.domain.toolchain.build import PerfEstimate
from driftgate.vendor.cells import finite, integer
from driftgate.vendor.files import form_error, json_object, read_text

TOOL = "hb_compile"
SUMMARY = "summary"
WANTED = "an object with a summary of model info, performance and DDR access data"
_THOUSANDS = re.compile(r"^\d{1,3}(?:,\d{3})+(?:\.\d+)?$")


def whole(value: object) -> int | None:
    """A count or size, whether it stands as a number or as text."""
    number = amount(value)
    return int(number) if number is not None and number.is_integer() else None


def amount(value: object) -> float | None:
    """A finite number, whether it stands as a number or as text, thousands apart or not."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    text = str(value)
    exact = integer(text)
    return float(exact) if exact is not None else finite(text.replace(",", "") if _THOUSANDS.match(text) else text)


def word(value: object) -> str | None:
    """A word; None where there is none."""
    return value if isinstance(value, str) and value else None


Reader = Callable[[object], str | float | int | None]
#: Key, in lower case → field and what reads it.
KEYS: Mapping[str, tuple[str, Reader]] = {
    "bpu march": ("march", word),
    "bpu core number": ("cores", whole),
    "original conv ops": ("convolutions", amount),
    "fps": ("fps", amount),
    "latency (us)": ("latency_us", amount),
    "ddr bytes per run": ("ddr_bytes", whole),
    "l2m bytes per run": ("l2m_bytes", whole),
    "loaded bytes per run": ("loaded_bytes", whole),
    "stored bytes per run": ("stored_bytes", whole),
    "min memory requirement": ("memory_bytes", whole),
}
#: Say the same in another unit.
SAME = ("latency (ms)", "ddr megabytes per run")


def read_perf(path: Path) -> PerfEstimate:
    """FPS, latency, traffic and memory; ArtifactError where the file has no such summary."""
    return parse_perf(read_text(path), name=str(path))


def parse_perf(text: str, *, name: str = "-") -> PerfEstimate:
    """The same from text. `other`: keys of the summary that are not known, or whose value is no number."""
    top = json_object(text, name, tool=TOOL, wanted=WANTED)
    summary = top.get(SUMMARY)
    if not isinstance(summary, dict):
        raise form_error(name, tool=TOOL, key=SUMMARY, found=summary, wanted=WANTED)
    told: dict[str, str | float | int | None] = {}
    milliseconds: float | None = None
    other = []
    for key, value in _leaves(summary):
        field, reader = KEYS.get(key.lower(), ("", word))
        read = reader(value) if field else None
        if read is not None:
            told[field] = read
        elif key.lower() == SAME[0]:
            milliseconds = amount(value)
        elif key.lower() not in SAME:
            other.append(key)
    if not told and milliseconds is None:
        raise form_error(name, tool=TOOL, key=SUMMARY, found=summary, wanted=WANTED)
    if milliseconds is not None:
        told.setdefault("latency_us", milliseconds * 1000)
    return PerfEstimate(other=tuple(other), **told)  # type: ignore[arg-type]


def _leaves(value: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    """Keys and values of the summary's own objects, one level down."""
    for key, entry in value.items():
        if isinstance(entry, dict):
            yield from entry.items()
        else:
            yield key, entry
