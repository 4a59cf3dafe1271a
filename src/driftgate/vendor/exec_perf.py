"""`hrt_model_exec perf`: latency and frames a second of a board (toolchain facts §7.3)."""

from __future__ import annotations

import re
from pathlib import Path

from driftgate.domain.toolchain.board import BoardPerf, PerfTick
from driftgate.vendor.cells import finite, integer
from driftgate.vendor.console import whole_lines
from driftgate.vendor.files import another_file, read_text
from driftgate.vendor.runtime import chosen_strides, has_board_monitor, load_milliseconds, runtime_versions

TOOL = "hrt_model_exec perf"
_TICK = re.compile(
    r"Frame count: (\d+),\s+Thread Average: ([\d.]+) ms,\s+thread max latency: ([\d.]+) ms,"
    r"\s+thread min latency: ([\d.]+) ms,\s+FPS: ([\d.]+)$"
)
#: Field → its line in the result.
COUNTS = {
    "threads": re.compile(r"^\s*Thread number\s+is: (\d+)$"),
    "frames": re.compile(r"^\s*Frame count\s+is: (\d+)$"),
}
NUMBERS = {
    "run_ms": re.compile(r"^\s*Program run time: ([\d.]+) ms$"),
    "total_ms": re.compile(r"^\s*Frame totally latency is: ([\d.]+) ms$"),
    "average_ms": re.compile(r"^\s*Average\s+latency\s+is: ([\d.]+) ms$"),
    "fps": re.compile(r"^\s*Frame\s+rate\s+is: ([\d.]+) FPS$"),
}
_MADE_UP = re.compile(r"^\s*\[Warning\]: These operators have range limitations on input data:")
WANTED = ("Frame count: …, FPS: …", "Perf result:", "Average latency is: … ms")


def read_board_perf(path: Path) -> BoardPerf:
    """The conditions and the result of a run; ArtifactError where the text is no such run at all."""
    return parse_board_perf(read_text(path), name=str(path))


def parse_board_perf(text: str, *, name: str = "-") -> BoardPerf:
    """The same from text."""
    lines = whole_lines(text)
    told: dict[str, float | int | None] = {
        field: next((read(found[1]) for line in lines if (found := pattern.match(line))), None)
        for patterns, read in ((COUNTS, integer), (NUMBERS, finite))
        for field, pattern in patterns.items()
    }
    ticks = tuple(tick for line in lines if (found := _TICK.search(line)) and (tick := _tick(found)))
    made_up = any(_MADE_UP.match(line) for line in lines)
    strides = chosen_strides(lines)
    if not (ticks or made_up or strides or any(value is not None for value in told.values())):
        raise another_file(text, name, tool=TOOL, wanted=WANTED)
    return BoardPerf(
        versions=runtime_versions(lines),
        load_ms=load_milliseconds(lines),
        ticks=ticks,
        made_up_input=made_up,
        chosen_strides=strides,
        has_board_monitor=has_board_monitor(lines),
        **told,  # type: ignore[arg-type]
    )


def _tick(found: re.Match[str]) -> PerfTick | None:
    frames, *rest = found.groups()
    count, numbers = integer(frames), [value for text in rest if (value := finite(text)) is not None]
    return PerfTick(count, *numbers) if count is not None and len(numbers) == len(rest) else None
