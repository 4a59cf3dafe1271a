"""What the files of a build say, as facts: versions, march, calibration, operators in float or on the CPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import driftgate.vendor.derived as derived
from driftgate.backends.onnxfile import consumers
from driftgate.domain.facts import ToolFacts
from driftgate.domain.toolchain.build import CompiledFiles
from driftgate.errors import DriftgateError
from driftgate.messages.message import Param
from driftgate.vendor.compile_log import read_compile_log
from driftgate.vendor.node_info import read_node_info
from driftgate.vendor.perf import read_perf
from driftgate.vendor.quant_info import read_quant_info

Values = dict[str, Param | None]
UNREAD = "unread"
#: Models whose graph tells which node follows which, the first that is there.
GRAPHS = ("optimized_float", "original_float")


def build_facts(files: CompiledFiles, target: str) -> tuple[ToolFacts, ...]:
    """The facts of all reports that are there; one that cannot be read says why, as its only value."""
    reports = dict(files.reports)
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


def _log(path: Path, files: CompiledFiles, target: str) -> Values:
    log = read_compile_log(path)
    return {
        "finished": log.finished,
        "march": log.march,
        "march-fits": derived.march_fits(log.march, target),
        "failures": log.failures or None,
        "calibration-type": log.calibration_type,
        "selected": log.selected,
        "calibration-samples": max((data.count or 0 for data in log.calibration_data), default=None),
        **{f"version-{name}": value for name, value in _versions(log.versions)},
    }


def _versions(versions: object) -> Iterator[tuple[str, str | None]]:
    for name in ("tool", "builder", "hbdk", "hmct", "ucp", "hbrt"):
        yield name, getattr(versions, name)


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
        "estimated-fps": estimate.fps,
        "estimated-latency-us": estimate.latency_us,
        "ddr-bytes": estimate.ddr_bytes,
        "memory-bytes": estimate.memory_bytes,
    }


READERS: Mapping[str, Callable[[Path, CompiledFiles, str], Values]] = {
    "log": _log,
    "node_info": _nodes,
    "quant_info": _quant,
    "perf": _perf,
}
