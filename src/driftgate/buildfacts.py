"""What the files of a build say, as facts: versions, march, calibration, operators in float or on the CPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import driftgate.vendor.derived as derived
from driftgate.backends.onnxfile import consumers
from driftgate.domain.facts import ToolFacts
from driftgate.domain.toolchain.build import CompiledFiles, CompileLog, NodeKind
from driftgate.domain.toolchain.common import InputContract, ToolVersions
from driftgate.domain.toolchain.comparisons import NodeSensitivity
from driftgate.errors import DriftgateError
from driftgate.messages.message import Param
from driftgate.messages.text import number
from driftgate.vendor.advice import read_advice
from driftgate.vendor.analyzer import read_analysis
from driftgate.vendor.compile_log import read_compile_log
from driftgate.vendor.model_info import read_model_info
from driftgate.vendor.node_info import read_node_info
from driftgate.vendor.perf import read_perf
from driftgate.vendor.quant_info import read_quant_info
from driftgate.vendor.sensitivity import read_sensitivity

Values = dict[str, Param | None]
UNREAD = "unread"
#: Models whose graph tells which node follows which, the first that is there.
GRAPHS = ("optimized_float", "original_float")
#: What other tools of the vendor leave where they were started: kind → path in the folder (toolchain facts §3, §4.4).
BESIDE: Mapping[str, str] = {
    "analysis": ".hb_analyzer/analysis_summary.json",
    "sensitivity": "debug_result/node_sensitivity/node_sensitivity.log",
    "model_info": "hb_model_info.log",
}
PREFIX = "output_model_file_prefix"
FIGURES = 6  # of hb_analyzer, the first ones
SENSITIVE = 5  # nodes, the most sensitive ones


def build_facts(files: CompiledFiles, target: str) -> tuple[ToolFacts, ...]:
    """The facts of all reports that are there; one that cannot be read says why, as its only value."""
    beside = {kind: files.folder / path for kind, path in BESIDE.items() if _is_there(files.folder / path)}
    reports = {**dict(files.reports), **beside}
    found = []
    for kind, read in READERS.items():
        path = reports.get(kind)
        if path is None:
            continue
        try:
            values = read(path, files, target)
        except DriftgateError as error:
            values = {UNREAD: str(error).splitlines()[0]}
        told = tuple((name, value) for name, value in values.items() if value is not None)
        found.append(ToolFacts(path.name, kind, told))
    return tuple(found)


def _is_there(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:
        return True  # its reader says why it cannot be read


def _log(path: Path, files: CompiledFiles, target: str) -> Values:
    log = read_compile_log(path)
    if other := other_prefix(log, files.prefix):
        return {"other-prefix": other}
    return {
        "finished": log.finished,
        "march": log.march,
        "march-fits": derived.march_fits(log.march, target),
        "failures": log.failures or None,
        "calibration-type": log.calibration_type,
        "selected": log.selected,
        "calibration-samples": max((data.count or 0 for data in log.calibration_data), default=None),
        "calibration-folders": log.calibration_folders or None,
        "inputs": tuple(map(contract_text, log.blocks.inputs)) or None,
        "removed": _nodes_and_kinds(log.removed) or None,
        "input-no-padding": log.input_no_padding,
        "output-no-padding": log.output_no_padding,
        "warnings": len(log.warnings),
        "benign": log.benign,
        "saved": len(log.saved),
        **dict(_versions(log.versions)),
    }


def other_prefix(log: CompileLog, prefix: str) -> str | None:
    """The prefix that a log tells where it is of another model: of several built into one folder the last logs."""
    told = log.blocks.entry(PREFIX)
    return None if told == prefix else told


def contract_text(contract: InputContract) -> str:
    """An input's contract in one line: `data: nv12 from bgr, NCHW, 1x3x64x96, mean 103.5 116.25 123.75`."""
    kinds = " from ".join(kind for kind in (contract.type_rt, contract.type_train) if kind) or "-"
    numbers = {"mean": contract.mean, "scale": contract.scale, "std": contract.std}
    parts = (
        kinds,
        contract.layout_train,
        contract.space_and_range,
        "x".join(map(str, contract.shape or ())),
        *(f"{name} {' '.join(map(number, values))}" for name, values in numbers.items() if values),
    )
    return f"{contract.name}: {', '.join(part for part in parts if part)}"


def _versions(versions: ToolVersions) -> Iterator[tuple[str, str | None]]:
    for name in ("tool", "builder", "hbdk", "hmct", "ucp", "hbrt"):
        yield f"version-{name}", getattr(versions, name)


def _nodes_and_kinds(nodes: Sequence[NodeKind]) -> tuple[str, ...]:
    return tuple(f"{node.node} ({node.op})" for node in nodes)


def _as_in_log(march: str | None, files: CompiledFiles) -> bool | None:
    """Whether the log tells the same march; None where it or this file tells none."""
    path = files.get("log")
    if path is None or march is None:
        return None
    try:
        log = read_compile_log(path)
    except DriftgateError:
        return None
    return None if log.march is None or other_prefix(log, files.prefix) else log.march == march


def _nodes(path: Path, files: CompiledFiles, target: str) -> Values:
    table = read_node_info(path)
    models = dict(files.models)
    graph = next((models[stage] for stage in GRAPHS if stage in models), None)
    edges: Mapping[str, tuple[str, ...]] | None = consumers(graph) if graph is not None else None
    floats = derived.float_operators(table.nodes, edges)
    return {
        "nodes": len(table.nodes),
        "unread-rows": table.unread,
        "float-inside": floats.inside,
        "float-tail": floats.tail,
        "float-undecided": floats.undecided,
        "cpu": tuple(node.node for node in derived.cpu_operators(table.nodes)),
        "unknown-units": tuple(node.node for node in derived.unknown_units(table.nodes)),
        "never-calibrated": derived.node_thresholds(table.nodes).never_calibrated,
    }


def _quant(path: Path, files: CompiledFiles, target: str) -> Values:
    told = derived.quant_info_thresholds(read_quant_info(path))
    return {"thresholds": told.count, "ones": told.ones, "never-calibrated": told.never_calibrated}


def _perf(path: Path, files: CompiledFiles, target: str) -> Values:
    estimate = read_perf(path)
    return {
        "march": estimate.march,
        "march-as-in-log": _as_in_log(estimate.march, files),
        "estimated-fps": estimate.fps,
        "estimated-latency-us": estimate.latency_us,
        "ddr-bytes": estimate.ddr_bytes,
        "memory-bytes": estimate.memory_bytes,
    }


def _advice(path: Path, files: CompiledFiles, target: str) -> Values:
    return {"remarks": len(read_advice(path).remarks)}


def _analysis(path: Path, files: CompiledFiles, target: str) -> Values:
    indicators = read_analysis(path).indicators
    figures = tuple(f"{one.title}: {one.value} {one.unit}".rstrip() for one in indicators[:FIGURES])
    return {"indicators": len(indicators), "figures": figures}


def _sensitivity(path: Path, files: CompiledFiles, target: str) -> Values:
    """The tool's order: the most sensitive node comes first."""
    tables = read_sensitivity(path)
    table = next((table for table in tables if table.kind == "node"), tables[0])
    return {
        "nodes": len(table.nodes),
        "unread-rows": table.unread,
        "most-sensitive": tuple(map(_sensitive, table.nodes[:SENSITIVE])),
    }


def _sensitive(node: NodeSensitivity) -> str:
    return f"{node.node} ({', '.join(f'{metric} {number(value)}' for metric, value in node.metrics)})"


def _model_info(path: Path, files: CompiledFiles, target: str) -> Values:
    info = read_model_info(path)
    return {
        "march": info.march,
        "march-as-in-log": _as_in_log(info.march, files),
        "removable": _nodes_and_kinds(info.blocks.removable),
        **dict(_versions(info.versions)),
    }


READERS: Mapping[str, Callable[[Path, CompiledFiles, str], Values]] = {
    "log": _log,
    "node_info": _nodes,
    "quant_info": _quant,
    "perf": _perf,
    "advice": _advice,
    "advice_csv": _advice,
    "analysis": _analysis,
    "sensitivity": _sensitivity,
    "model_info": _model_info,
}
