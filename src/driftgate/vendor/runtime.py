"""Lines that all programs on the board's runtime print: versions, load time, monitor (toolchain facts §7.3)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from driftgate.domain.toolchain.common import Shape, ToolVersions
from driftgate.vendor.cells import finite, integer, shape

_UCP = re.compile(r"\[UCP\]: UCP version = (\d[\w.\-+]*)$")
_HBRT = re.compile(r"\[DNN\]: (\d[\w.]*?)_\((\S+) HBRT\)$")
_LOAD = re.compile(r"^Load model to DDR cost ([\d.]+) ?ms\.?$")
_MONITOR = re.compile(r"^\[BPU\]\[\[BPU_MONITOR\]\]")
_PREFIX = re.compile(r"^\[[A-Z]\](?:\[[^\]]*\])+ ?")
_STRIDE = re.compile(r"^Input\[(\d+)\] stride is dynamic, but you did not specify the stride, set as (\([^)]*\))$")


def runtime_versions(lines: Sequence[str]) -> ToolVersions:
    """The versions of UCP and HBRT, as far as they are printed."""
    ucp = next((found[1] for line in lines if (found := _UCP.search(line))), None)
    dnn = next((found for line in lines if (found := _HBRT.search(line))), None)
    return ToolVersions(ucp=ucp or (dnn[1] if dnn else None), hbrt=dnn[2] if dnn else None)


def load_milliseconds(lines: Sequence[str]) -> float | None:
    """The time it took to load the model."""
    return next((finite(found[1]) for line in lines if (found := _LOAD.match(line))), None)


def has_board_monitor(lines: Sequence[str]) -> bool:
    """Whether the monitor of a board's BPU printed its line."""
    return any(_MONITOR.match(line) for line in lines)


def without_source(line: str) -> str:
    """A line without level, thread, time and place in the source."""
    return _PREFIX.sub("", line, count=1)


def chosen_strides(lines: Sequence[str]) -> tuple[tuple[int, Shape], ...]:
    """(input, stride) that the tool chose for dynamic inputs whose stride was not given."""
    found = (_STRIDE.match(without_source(line)) for line in lines)
    read = ((integer(match[1]), shape(match[2])) for match in found if match)
    return tuple((index, stride) for index, stride in read if index is not None and stride is not None)
