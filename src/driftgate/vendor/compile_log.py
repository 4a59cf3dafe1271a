"""hb_compile's log, from the console, the log file or an excerpt of either (toolchain facts §2.4).

The summary's calibration type is not what the search chose: that is `selected`. Error lines of ONNX Runtime during
calibration are recovered from and counted as benign; a failure is only what the tool calls one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from driftgate.domain.toolchain.build import BuildStep, CalibrationData, CompileLog, NodeKind, PerfEstimate
from driftgate.domain.toolchain.common import Entries, ToolVersions
from driftgate.vendor.blocks import MARCH, block_versions, read_blocks
from driftgate.vendor.cells import boolean, finite, integer
from driftgate.vendor.console import last_run, plain_lines, said_lines, whole_lines
from driftgate.vendor.contracts import listed, word
from driftgate.vendor.files import another_file, read_text
from driftgate.vendor.node_info import log_tables, node_table, output_cosines
from driftgate.vendor.onnx_summary import read_onnx_summary

TOOL = "hb_compile"
Said = Sequence[str]

_START = re.compile(r"^Start hb_compile\b")
_ANOTHER = re.compile(r"^Start hb_model_info\b")
_END = re.compile(r"^The hb_compile completes running\b")
#: Step → how its start and its end are told by the releases.
STEPS: Mapping[str, tuple[re.Pattern[str], re.Pattern[str]]] = {
    name: (re.compile(start), re.compile(end))
    for name, start, end in (
        ("verify", r"^Start verifying yaml", r"^End verifying yaml"),
        ("prepare", r"^Start to prepare the onnx model", r"^End to prepare the onnx model"),
        ("optimize", r"^Start to optimize the onnx model", r"^End to optimize the onnx model"),
        ("calibrate", r"^Start to calibrate the model", r"^End to calibrate the model"),
        ("quantize", r"^Start to quantize the model", r"^End to quantize the model"),
        ("export", r"^Start to export model", r"^Successful(?:ly)? export model"),
        ("convert", r"^Start to convert model", r"^Successful(?:ly)? convert model"),
        ("compile", r"^Start to compile model", r"^Successful(?:ly compile the hbm model|\s?compile hbm)"),
        ("perf", r"^Start to perf", r"^(?:Successful(?:ly)? perf (?:the )?model|HBDK hbm perf SUCCESS)"),
    )
}
_FAILURE = re.compile(r"\*{3} ERROR-OCCUR-DURING ([\w.]+) \*{3}")
_BENIGN = re.compile(r"\[E:onnxruntime:")
_WARNING = re.compile(r"^(?:\[?\d{4}-\d\d-\d\d[ T][\d:.,]+\]?\s*\[?WARN(?:ING)?\]?:?\s|warning: )(?P<said>.+)$")
_VERSION = {
    "hbdk": re.compile(r"^hbdk version\s*: (\d[\w.\-+]*)$"),
    "hmct": re.compile(r"^(?:hmct|horizon nn) version\s*: (\d[\w.\-+]*)$"),
    "tool": re.compile(r"^hb_compile version\s*: (\d[\w.\-+]*)$"),
    "builder": re.compile(r"^builder version\s*: (\d[\w.\-+]*)$"),
}
_ARCHITECTURE = re.compile(r"^The specified model compilation architecture: (nash-[\w-]+)\.?$")
_CALIBRATED_INPUT = re.compile(r"^Processing calibration set data for input\[(.+)\]$")
#: What is told about the calibration data of the input that was named last.
_CALIBRATION = {
    "first_file": re.compile(r"^First calibration picture name: (.+)$"),
    "first_md5": re.compile(r"^First calibration picture md5: ([0-9a-f]{32})$"),
    "count": re.compile(r"^Finished\. data num: (\d+)$"),
}
_SEARCH_HEAD = re.compile(r"^The (?:activation calibration|modelwise search) (?:configuration|parameters):$")
_SEARCH_ENTRY = re.compile(r"^\s{2,}(\w+):\s+(\S.*)$")
_SELECTED = re.compile(r"(?:^|it/s\])Select (\S.*?) method\.")
_SAVED = re.compile(
    r"^(?:Saving model to: (.+\.onnx)\.|Successfully compile the hbm model, .*? saved at (.+\.hbm)"
    r"|Successful compile hbm (.+\.hbm))$"
)
_REMOVED = re.compile(r"^Successfully remove node, the removed node info is:")
#: A row below it: the rule, the header, or a node and its type.
_REMOVED_ROW = re.compile(r"^(?:-+ +-+|Node Name\s+(?:Node )?Type|(\S.*?)\s+([A-Z]\w+))$")
_ESTIMATE = re.compile(r"^\s*FPS=([\d.]+), latency = ([\d.]+) us, DDR = (\d+) bytes,")
_PADDING = re.compile(r"'(input|output)_no_padding': (True|False)\b")
WANTED = ("hb_compile version", "Start to convert model", "Node | NodeType | ON", "model_parameters info")


def read_compile_log(path: Path) -> CompileLog:
    """All that the log says; ArtifactError where nothing in it is hb_compile's."""
    return parse_compile_log(read_text(path), name=str(path))


def parse_compile_log(text: str, *, name: str = "-") -> CompileLog:
    """The same from text: of several runs in one file the last."""
    runs, text = last_run(text, _START)
    said, lines = said_lines(text), whole_lines(text)
    tables = log_tables(text)
    blocks = read_blocks(lines)
    padding = {side: boolean(value) for line in lines for side, value in _PADDING.findall(line)}
    architecture = _first(_ARCHITECTURE, lines)
    log = CompileLog(
        versions=_versions(lines, block_versions(blocks)),
        march=word(blocks.entry(*MARCH) or "") or architecture,
        steps=_steps(said),
        finished=any(_END.match(line) for line in said),
        failures=tuple(dict.fromkeys(found[1] for line in said if (found := _FAILURE.search(line)))),
        onnx=read_onnx_summary(lines),
        calibration_data=_calibration_data(lines),
        calibration_folders=tuple(listed(blocks.entry("cal_data_dir"))),
        calibration_type=word(blocks.entry("calibration_type") or ""),
        search=_search(lines),
        selected=_first(_SELECTED, said),
        node_table=node_table(tables),
        outputs=output_cosines(tables),
        removed=_removed(lines),
        saved=tuple(next(filter(None, found.groups())) for line in lines if (found := _SAVED.match(line))),
        input_no_padding=padding.get("input"),
        output_no_padding=padding.get("output"),
        estimate=_estimate(lines),
        blocks=blocks,
        warnings=_warnings(text),
        benign=sum(bool(_BENIGN.search(line)) for line in said),
        runs=runs,
    )
    is_another = any(_ANOTHER.match(line) for line in said) and not log.steps
    if is_another or replace(log, warnings=(), benign=0, runs=1) == CompileLog(ToolVersions()):
        raise another_file(text, name, tool=TOOL, wanted=WANTED)
    return log


def _first(pattern: re.Pattern[str], lines: Said) -> str | None:
    return next((found[1] for line in lines if (found := pattern.search(line))), None)


def _versions(lines: Said, built: ToolVersions) -> ToolVersions:
    told = {name: _first(pattern, lines) for name, pattern in _VERSION.items()}
    return replace(built, **{name: version for name, version in told.items() if version is not None})


def _steps(lines: Said) -> tuple[BuildStep, ...]:
    """The steps of which anything is told, in the order in which they run."""
    steps = (
        BuildStep(name, *(any(pattern.match(line) for line in lines) for pattern in patterns))
        for name, patterns in STEPS.items()
    )
    return tuple(step for step in steps if step.started or step.ended)


def _calibration_data(lines: Said) -> tuple[CalibrationData, ...]:
    found: dict[str, dict[str, str]] = {}
    current: dict[str, str] = {}
    for line in lines:
        if start := _CALIBRATED_INPUT.match(line):
            current = found.setdefault(start[1], {})
        for key, pattern in _CALIBRATION.items():
            if told := pattern.match(line):
                current = {} if key in current else current  # of an input whose own line is lost
                current[key] = told[1]
    return tuple(
        CalibrationData(name, told.get("first_file"), told.get("first_md5"), integer(told.get("count", "")))
        for name, told in found.items()
    )


def _below(head: re.Pattern[str], row: re.Pattern[str], lines: Said) -> Iterator[re.Match[str]]:
    """The rows that follow a heading without a gap."""
    below = False
    for line in lines:
        match = row.match(line) if below else None
        if match:
            yield match
        below = bool(match or head.match(line))


def _search(lines: Said) -> Entries:
    return tuple((row[1], row[2].strip()) for row in _below(_SEARCH_HEAD, _SEARCH_ENTRY, lines))


def _removed(lines: Said) -> tuple[NodeKind, ...]:
    """The table under the sentence that nodes were removed; its header and rule are no nodes."""
    return tuple(NodeKind(row[1], row[2]) for row in _below(_REMOVED, _REMOVED_ROW, lines) if row[1])


def _estimate(lines: Said) -> PerfEstimate | None:
    found = next((found for line in lines if (found := _ESTIMATE.match(line))), None)
    if found is None:
        return None
    return PerfEstimate(fps=finite(found[1]), latency_us=finite(found[2][:60]), ddr_bytes=integer(found[3]))


def _warnings(text: str) -> tuple[str, ...]:
    lines = list(plain_lines(text))
    whole = lines if text.endswith(("\n", "\r")) else lines[:-1]
    return tuple(found["said"] for line in whole if (found := _WARNING.match(line)))
