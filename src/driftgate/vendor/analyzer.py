"""hb_analyzer's `analysis_summary.json`: key figures with their units (toolchain facts §3)."""

from __future__ import annotations

from pathlib import Path

from driftgate.domain.toolchain.build import AnalysisSummary, Indicator
from driftgate.vendor.files import form_error, json_object, read_text
from driftgate.vendor.perf import amount

TOOL = "hb_analyzer"
INDICATORS = "hbm_key_indicators"
WANTED = f'an object with "{INDICATORS}", a list of title, value and unit'


def read_analysis(path: Path) -> AnalysisSummary:
    """The key figures; ArtifactError where the file has no list of them."""
    return parse_analysis(read_text(path), name=str(path))


def parse_analysis(text: str, *, name: str = "-") -> AnalysisSummary:
    """The same from text; the list may stand in any object of the file, as the graph's name is put around it."""
    top = json_object(text, name, tool=TOOL, wanted=WANTED)
    objects = [top, *(value for value in top.values() if isinstance(value, dict))]
    found = next((value[INDICATORS] for value in objects if INDICATORS in value), None)
    if not isinstance(found, list) or not all(isinstance(item, dict) and "title" in item for item in found):
        raise form_error(name, tool=TOOL, key=INDICATORS, found=found, wanted=WANTED)
    indicators = tuple(
        Indicator(
            title=str(item["title"]),
            value=str(item.get("value", "")),
            number=amount(item.get("value")),
            unit=str(item.get("unit") or ""),
        )
        for item in found
    )
    return AnalysisSummary(indicators, tuple(key for key in top if key != INDICATORS))
