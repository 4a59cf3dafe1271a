"""What a model tells of itself: the builder's description, and the blocks of hb_compile and hb_model_info (§3)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from support.vendor.files import TensorTold
from support.vendor.graph import Graph
from support.vendor.layouts import chosen
from support.vendor.options import HMCT, TOOL, Options

WORDS = {
    "U8": "UINT8",
    "S8": "INT8",
    "S16": "INT16",
    "S32": "INT32",
    "S64": "INT64",
    "F32": "FLOAT32",
    "F64": "FLOAT64",
    "BOOL8": "BOOL",
}
#: Key of the block of an input → key of the description.
INPUT_KEYS = {
    "input_type_rt": "INPUT_TYPE_RT",
    "input_space&range": "INPUT_SPACE_AND_RANGE",
    "input_type_train": "INPUT_TYPE_TRAIN",
    "input_layout_train": "INPUT_LAYOUT_TRAIN",
    "norm_type": "NORM_TYPE",
    "input_shape": "INPUT_SHAPE",
    "mean_value": "MEAN_VALUE",
    "scale_value": "SCALE_VALUE",
    "std_value": "STD_VALUE",
}
MODEL_KEYS = {
    "onnx_model": "ONNX_MODEL",
    "BPU march": "MARCH",
    "layer_out_dump": "LAYER_OUT_DUMP",
    "working dir": "WORKING_DIR",
    "output_model_file_prefix": "MODEL_PREFIX",
    "remove_node_type": "REMOVE_NODE_TYPE",
    "remove_node_name": "REMOVE_NODE_NAME",
    "node_info": "NODE_INFO",
}
CALIBRATION_KEYS = {
    "calibration_type": "CALI_TYPE",
    "max_percentile": "MAX_PERCENTILE",
    "per_channel": "PER_CHANNEL",
    "cal_data_dir": "CAL_DATA_DIR",
    "quant_config": "QUANT_CONFIG",
}
COMPILER_KEYS = {
    "debug": "DEBUG",
    "optimize_level": "OPTIMIZE_LEVEL",
    "compile_mode": "COMPILE_MODE",
    "core_num": "CORE_NUM",
    "balance_factor": "BALANCE_FACTOR",
    "input_source": "INPUT_SOURCE",
    "cache_mode": "cache_mode",
    "max_l2m_size": "max_l2m_size",
    "extra_params": "EXTRA_PARAMS",
}
VERSION_KEYS = {"builder version": "BUILDER_VERSION", "hbdk version": "HBDK_VERSION", "hmct version": "HMCT_VERSION"}
#: Rows that are left out where there is nothing to tell.
OPTIONAL = ("remove_node_type", "remove_node_name", "quant_config", "input_layout_train", "extra_params")
NORMS = {
    (False, False): "no_preprocess",
    (True, False): "data_mean",
    (False, True): "data_scale",
    (True, True): "data_mean_and_scale",
}


def description(options: Options, graph: Graph) -> dict[str, Any]:
    """The JSON that the builder writes into a model (toolchain facts §7.3)."""
    told = options.inputs
    padding = {"input_no_padding": options.input_no_padding, "output_no_padding": options.output_no_padding}
    return {
        "BUILDER_VERSION": TOOL,
        "HBDK_VERSION": options.hbdk,
        "HBDK_RUNTIME_VERSION": None,
        "HMCT_VERSION": HMCT,
        "CAFFE_MODEL": None,
        "PROTOTXT": None,
        "ONNX_MODEL": str(options.model),
        "MARCH": options.march,
        "LAYER_OUT_DUMP": "False",
        "LOG_LEVEL": None,
        "WORKING_DIR": str(options.working_dir),
        "MODEL_PREFIX": options.prefix,
        "OUTPUT_NODES": "",
        "REMOVE_NODE_TYPE": ";".join(options.removed_types),
        "REMOVE_NODE_NAME": ";".join(options.removed_names),
        "DEBUG_MODE": "",
        "NODE_INFO": "{}",
        "INPUT_NAMES": ";".join(one.name for one in told),
        "INPUT_SPACE_AND_RANGE": ";".join(one.space for one in told),
        "INPUT_TYPE_RT": ";".join(one.rt for one in told),
        "INPUT_TYPE_TRAIN": ";".join(one.train for one in told),
        "INPUT_LAYOUT_TRAIN": ";".join(one.layout for one in told) if all(one.is_picture for one in told) else "",
        "INPUT_LAYOUT_RT": "",
        "NORM_TYPE": ";".join(NORMS[bool(one.mean), bool(one.factors)] for one in told),
        "MEAN_VALUE": ";".join(str(list(one.mean)) for one in told),
        "SCALE_VALUE": ";".join(str(list(one.scale)) for one in told),
        "STD_VALUE": ";".join(str(list(one.std)) for one in told),
        "INPUT_SHAPE": ";".join("x".join(map(str, graph.shapes[one.name])) for one in told),
        "INPUT_BATCH": "",
        "SEPARATE_BATCH": "False",
        "SEPARATE_NAME": "",
        "CALI_TYPE": options.calibration_type,
        "CAL_DATA_DIR": ";".join(options.folders),
        "PER_CHANNEL": "False",
        "MAX_PERCENTILE": "None",
        "QUANT_CONFIG": options.said("calibration_parameters", "quant_config", None),
        "ADVICE": options.said("compiler_parameters", "advice", 0.0),
        "DEBUG": "True",
        "OPTIMIZE_LEVEL": options.said("compiler_parameters", "optimize_level", "O2"),
        "COMPILE_MODE": options.said("compiler_parameters", "compile_mode", "latency"),
        "CORE_NUM": options.said("compiler_parameters", "core_num", 1),
        "MAX_TIME_PER_FC": 0,
        "BALANCE_FACTOR": 100,
        "INPUT_SOURCE": {one.name: one.source for one in told},
        "cache_mode": "disable",
        "cache_path": "",
        "max_l2m_size": 0,
        "EXTRA_PARAMS": {key: value for key, value in padding.items() if value},
    }


def blocks(desc: Mapping[str, Any]) -> Iterator[str]:
    """The blocks of parameters between banners."""
    yield banner("model deps info")
    yield from _rows(VERSION_KEYS, desc)
    yield banner("model_parameters info")
    yield from _rows(MODEL_KEYS, desc)
    yield banner("input_parameters info")
    yield "-" * 42
    for at, name in enumerate(str(desc.get("INPUT_NAMES", "")).split(";")):
        yield f"---------input info : {name} ---------"
        yield row("input_name", name)
        own = {key: items[at] for key in INPUT_KEYS.values() if at < len(items := str(desc.get(key, "")).split(";"))}
        yield from _rows(INPUT_KEYS, own)
        yield row("separate_batch", desc.get("SEPARATE_BATCH"))
        yield f"---------input info : {name} end -------"
    yield "-" * 42
    yield banner("calibration_parameters info")
    yield from _rows(CALIBRATION_KEYS, desc)
    yield banner("compiler_parameters info")
    yield from _rows(COMPILER_KEYS, desc)


def memory(inputs: Sequence[TensorTold], outputs: Sequence[TensorTold], march: str, weights: int) -> Iterator[str]:
    """The memory block of an .hbm, in bytes."""
    fed, made = (sum(chosen(one, march).aligned_bytes for one in side) for side in (inputs, outputs))
    yield banner("memory info")
    for key, size in (("input", fed), ("output", made), ("static", weights), ("dynamic", fed + made)):
        yield row(f"{key} memory", size)
    yield row("intermediate memory", 0)
    yield row("temporary memory", 0)
    yield row("min memory requirement", weights + fed + made)


def io_table(inputs: Sequence[TensorTold], outputs: Sequence[TensorTold]) -> Iterator[str]:
    """The table of inputs and outputs below its banner."""
    yield banner("Model input/output info")
    told = [(one, "input") for one in inputs] + [(one, "output") for one in outputs]
    rows = [(one.name, side, str(list(one.shape)), WORDS[one.dtype]) for one, side in told]
    yield from ruled(("NAME", "TYPE", "SHAPE", "DATA_TYPE"), rows)


def ruled(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """A table whose header stands above a rule of dashes."""
    widths = [max(map(len, cells)) for cells in zip(columns, *rows, strict=True)]
    for cells in (columns, ["-" * width for width in widths], *rows):
        yield " ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()


def barred(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """A table between bars."""
    widths = [max(map(len, cells)) for cells in zip(columns, *rows, strict=True)]
    rule = "+" + "+".join("-" * (width + 2) for width in widths) + "+"
    lines = [
        "|" + "|".join(f" {cell:<{width}} " for cell, width in zip(cells, widths, strict=True)) + "|"
        for cells in (columns, *rows)
    ]
    yield from (rule, lines[0], rule, *lines[1:], rule)


def banner(title: str) -> str:
    """The line above a block."""
    return f"############# {title} #############"


def row(key: str, value: object) -> str:
    """A line of a block."""
    return f"{key:<20}: {value}"


def _rows(keys: Mapping[str, str], told: Mapping[str, Any]) -> Iterator[str]:
    for key, name in keys.items():
        if name in told and (told[name] or key not in OPTIONAL):
            yield row(key, told[name])
