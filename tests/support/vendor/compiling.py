"""STAND-IN for hb_compile: its arguments, files, log and failures after toolchain facts §2, over a real int8 engine."""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from support.vendor import describing, reports
from support.vendor.engine import Stages, stages
from support.vendor.files import TensorTold
from support.vendor.graph import Array, Graph, graph_of, original
from support.vendor.integers import FixedPoint
from support.vendor.journal import Journal
from support.vendor.layouts import laid_out, plane
from support.vendor.models import write
from support.vendor.options import HBDK, HMCT, TOOL, CompileError, Options, checked_march, completed, read_options

LOG = "hb_compile.log"
BUILD = "hmct.api.build_model"
HELD = "*******************************************"


def main(arguments: Sequence[str] | None = None) -> int:
    """One call of the tool in the current folder; 255 where it fails, as -1 does to a shell."""
    parser = argparse.ArgumentParser(prog="hb_compile")
    parser.add_argument("-c", "--config", type=Path)
    parser.add_argument("-m", "--model", type=Path)
    parser.add_argument("--march", default="")
    parser.add_argument("--fast-perf", action="store_true")
    parser.add_argument("--version", action="version", version=f"hb_compile, version {TOOL}")
    asked = parser.parse_args(arguments)
    folder = Path.cwd()
    journal = Journal(folder / LOG, sys.stdout, source="hb_compile")
    hbdk = os.environ.get("STAND_IN_HBDK", HBDK)

    def options() -> Options:
        more: dict[str, Any] = {"hbdk": hbdk, "is_debug": os.environ.get("HORIZON_TC_UI_DEBUG") == "1"}
        if asked.config is not None:
            return read_options(asked.config, folder, **more)
        if asked.model is None:
            raise CompileError("Either the config or the model is required.")
        made = folder / ("model_output" if asked.fast_perf else ".hb_compile")
        march = checked_march(asked.march)
        return Options(asked.model, march, asked.model.stem, made, is_fast=asked.fast_perf, **more)

    return run(options, journal, hbdk=hbdk)


def run(options: Callable[[], Options], journal: Journal, *, hbdk: str = HBDK) -> int:
    """Build what `options` gives, and write down what happens; 255 where that fails."""
    journal.say(f"The log will be stored in {journal.log}")
    journal.say("Start hb_compile...")
    for name, version in (("hbdk", hbdk), ("hmct", HMCT), ("hb_compile", TOOL)):
        journal.say(f"{name} version: {version}", at=277)
    journal.say("Start verifying yaml", at=33)
    try:
        told = options()
        compiled(told, journal)
    except CompileError as error:
        if error.module:
            journal.say(f"*** ERROR-OCCUR-DURING {error.module} ***", "ERROR")
        journal.say(str(error), "ERROR")
        journal.written()
        return 255
    shutil.copyfile(journal.written(), told.working_dir / LOG)
    return 0


def compiled(options: Options, journal: Journal) -> Stages:
    """All files of one build in its working_dir. Raises CompileError."""
    try:
        model = onnx.load(str(options.model))
    except OSError as error:
        raise CompileError(f"The onnx model file {options.model} does not exist.") from error
    graph = graph_of(original(model))
    options = completed(options, graph)
    journal.say(f"Using the onnx model file: {options.model}")
    journal.say(f"Model has {len(graph.inputs)} inputs according to model file", at=181)
    options.working_dir.mkdir(parents=True, exist_ok=True)
    journal.say("End verifying yaml", at=36)
    samples = list(_samples(options, graph, journal))
    journal.say("Start to Horizon NN Model Convert.", at=34)
    journal.say(f"The specified model compilation architecture: {options.march}.", at=209)
    made = stages(model, options, samples)
    _said_onnx(model, graph, journal)
    _write_onnx(made, options, journal)
    journal.say("End to Horizon NN Model Convert.", at=37)
    _write_compiled(made, options, graph, samples, journal)
    return made


def _samples(options: Options, graph: Graph, journal: Journal) -> Iterator[dict[str, Array]]:
    """The calibration data, one folder of .npy an input."""
    if not options.folders:
        return
    if len(options.folders) != len(options.inputs):
        raise CompileError(f"cal_data_dir has {len(options.folders)} folders for {len(options.inputs)} inputs")
    found: dict[str, list[Array]] = {}
    for told, folder in zip(options.inputs, options.folders, strict=True):
        journal.say(f"Processing calibration set data for input[{told.name}]", at=113)
        files = sorted(Path(folder).glob("*.npy"))
        if not files:
            raise CompileError(f"There is no calibration data in {folder}", BUILD)
        for line in (
            HELD,
            f"First calibration picture name: {files[0]}",
            f"First calibration picture md5: {hashlib.md5(files[0].read_bytes(), usedforsecurity=False).hexdigest()}",
            HELD,
            f"Finished. data num: {len(files)}",
        ):
            journal.say(line, at=214)
        shape = graph.shapes[told.name]
        found[told.name] = [_sample(path, shape) for path in files]
    if len({len(values) for values in found.values()}) > 1:
        raise CompileError("The inputs have different numbers of calibration data", BUILD)
    yield from (dict(zip(found, values, strict=True)) for values in zip(*found.values(), strict=True))


def _sample(path: Path, shape: tuple[int, ...]) -> Array:
    value = np.load(path)
    if value.dtype not in (np.float32, np.uint8) or value.size != np.prod(shape, dtype=np.int64):
        raise CompileError(f"{path} is {value.dtype} {value.shape}, the input is {shape}", BUILD)
    held: Array = value.astype(np.float32).reshape(shape)
    return held


def _said_onnx(model: onnx.ModelProto, graph: Graph, journal: Journal) -> None:
    def side(values: Sequence[onnx.ValueInfoProto]) -> str:
        return "\n".join(f"    {one.name:<20}: shape={list(graph.shapes[one.name])}, dtype=FLOAT32" for one in values)

    opsets = [f"{one.domain or 'ai.onnx'} v{one.version}" for one in model.opset_import]
    producer = f"{model.producer_name} v{model.producer_version}" if model.producer_name else "None"
    journal.say("Start to prepare the onnx model.")
    journal.say(
        "Input ONNX Model Information:\n"
        f"IR Version:               {model.ir_version}\n"
        f"Opset Version:            {opsets}\n"
        f"Model Producer:           {producer}\n"
        "Model Domain:             None\n"
        "Model Version:            None\n"
        f"Graph Input:\n{side(graph.inputs)}\nGraph Output:\n{side(model.graph.output)}",
        at=116,
    )
    journal.say("End to prepare the onnx model.", at=37)


def _write_onnx(made: Stages, options: Options, journal: Journal) -> None:
    """The four ONNX stages, each behind its step of the log."""

    def save(stage: str, model: onnx.ModelProto) -> None:
        path = options.working_dir / f"{options.prefix}_{stage}_model.onnx"
        onnx.save(model, str(path))
        journal.say(f"Saving model to: {path}.", at=268)

    save("original_float", made.original_float)
    journal.say("Start to optimize the onnx model.", at=34)
    journal.say("End to optimize the onnx model.", at=37)
    save("optimized_float", made.optimized_float)
    if made.plan.calibrated:
        journal.say(
            "The activation calibration configuration:\n"
            "    calibration_type:     ['max']\n"
            "    per_channel:          [False]\n"
            "    asymmetric:           [False]",
            at=322,
        )
    journal.say("Start to calibrate the model.", at=34)
    if made.plan.calibrated:
        journal.say("Run calibration model with modelwise search method.", at=87)
        journal.say("Select max method.", at=77)
    journal.say("End to calibrate the model.", at=37)
    save("calibrated", made.calibrated)
    journal.say("Start to quantize the model.", at=34)
    journal.say("End to quantize the model.", at=37)
    save("ptq", made.ptq)


def _write_compiled(
    made: Stages, options: Options, graph: Graph, samples: Sequence[Mapping[str, Array]], journal: Journal
) -> None:
    """The fixed-point stages, the reports, and the blocks at the end of the log."""
    desc = describing.description(options, graph)
    common: dict[str, Any] = {"name": options.prefix, "version": options.hbdk, "desc": desc}
    place = options.working_dir / options.prefix
    journal.say("Start to export model.", at=270)
    if options.is_debug:
        write(Path(f"{place}_ptq_model.bc"), made.ptq, **common, march=None, phase="float", fake_quant=True)
    journal.say("Successfully export model.", at=274)
    journal.say("Start to convert model.", at=284)
    fixed = {**common, "march": options.march, "phase": "fixed-point"}
    write(Path(f"{place}_quantized_model.bc"), made.quantized.model, **fixed, **_told(made.quantized))
    journal.say("Successfully convert model.", at=291)
    tables = reports.node_tables(made, options.march, samples[0] if samples else {})
    Path(f"{place}_node_info.csv").write_text(tables.csv, "utf-8")
    for columns, rows in ((tables.columns, tables.nodes), (reports.OUTPUT_COLUMNS, tables.outputs)):
        for line in describing.barred(columns, rows) if rows else ():
            journal.say(line, at=565)
    if made.quantized_removed is not None:
        journal.say("Successfully remove node, the removed node info is:", at=143)
        for line in describing.ruled(("Node Name", "Type"), made.removed):
            journal.say(line, at=528)
        removed = made.quantized_removed
        fixed["removed"] = made.removed
        write(Path(f"{place}_quantized_removed_model.bc"), removed.model, **fixed, **_told(removed))
    padding = {"input_no_padding": options.input_no_padding, "output_no_padding": options.output_no_padding}
    journal.say(f"Compile params: { ({'jobs': 1, 'balance': 100, 'opt': 2, 'debug': True, **padding}) }", at=64)
    journal.say("Start to compile model.", at=304)
    hbm = options.working_dir / f"{options.prefix}.hbm"
    compiled = made.compiled
    inputs, outputs = _placed(compiled, options)
    edges = {"inputs": [asdict(one) for one in inputs], "outputs": [asdict(one) for one in outputs]}
    write(hbm, compiled.model, **fixed, **edges)
    journal.say(f"Successfully compile the hbm model, generated hbm model is saved at {hbm}", at=308)
    weights = compiled.model.ByteSize()
    perf = reports.estimate(made, options.march, desc["CORE_NUM"], weights)
    _write_reports(made, perf, place, journal)
    journal.say(f"{'*' * 25} {options.prefix} {'*' * 25}")
    for line in (
        *describing.blocks(desc),
        *describing.memory(inputs, outputs, options.march, weights),
        *describing.io_table(inputs, outputs),
        "The hb_compile completes running.",
    ):
        journal.say(line, at=400)
    journal.raw("HBDK hbm perf SUCCESS")


def _write_reports(made: Stages, perf: Mapping[str, Any], place: Path, journal: Journal) -> None:
    Path(f"{place}_quant_info.json").write_text(reports.quant_info(made), "utf-8")
    Path(f"{place}_advice.json").write_text(reports.advice(made), "utf-8")
    Path(f"{place}.json").write_text(json.dumps(perf, indent=2), "utf-8")
    Path(f"{place}.html").write_text(f"<!DOCTYPE html><pre>{json.dumps(perf['summary'], indent=2)}</pre>\n", "utf-8")
    speed, traffic = perf["summary"]["performance"], perf["summary"]["DDR access data"]
    journal.raw(
        f"  FPS={speed['FPS']}, latency = {speed['latency (us)']} us, DDR = {traffic['DDR bytes per run']} bytes, "
        f'Compiling HBDK version = "{HBDK}"   (see {place}.html)'
    )
    journal.say(f"Successfully perf the model, generated result is saved at {place.parent}")


def _told(made: FixedPoint) -> dict[str, Any]:
    """What a .bc tells of its tensors and of the nodes at its edges that can be removed."""
    sides = {"inputs": made.inputs, "outputs": made.outputs}
    tensors = {side: [asdict(tensor) for tensor in found] for side, found in sides.items()}
    return {**tensors, "removable": [[node, kind] for node, kind, _ in made.removable]}


def _placed(made: FixedPoint, options: Options) -> tuple[tuple[TensorTold, ...], tuple[TensorTold, ...]]:
    """The inputs and outputs of the .hbm as they lie in memory."""
    sources = {f"{one.name}{part}": one for one in options.inputs if one.rt == "nv12" for part in ("_y", "_uv")}

    def fed(tensor: TensorTold) -> TensorTold:
        told = sources.get(tensor.name)
        if told is not None:
            return plane(tensor, options.march, dynamic=told.source != "ddr")
        return laid_out(tensor, options.march, padded=not options.input_no_padding)

    outputs = (laid_out(tensor, options.march, padded=not options.output_no_padding) for tensor in made.outputs)
    return tuple(map(fed, made.inputs)), tuple(outputs)
