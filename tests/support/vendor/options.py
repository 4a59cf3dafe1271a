"""What hb_compile is told: its YAML, or its arguments in check and fast-perf mode (toolchain facts §2.1, §2.6)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from support.vendor.graph import Graph
from support.vendor.preprocessing import InputSettings

MARCHES = ("nash-b-lite", "nash-b", "nash-b-plus", "nash-e", "nash-m", "nash-h", "nash-p", "nash-starry-p")
#: Version that is told of each tool: OE 3.9.
TOOL, HBDK, HMCT = "3.5.16", "4.11.11", "2.8.4"


class CompileError(Exception):
    """What ends a run: a sentence, with the module in which it occurred where the tool names one."""

    def __init__(self, said: str, module: str = "") -> None:
        super().__init__(said)
        self.module = module


@dataclass(frozen=True, slots=True)
class Options:
    """One run. `inputs` has an entry for each that the YAML names, `raw` the YAML's sections as they stand."""

    model: Path
    march: str
    prefix: str = "model"
    working_dir: Path = Path("model_output")
    removed_types: tuple[str, ...] = ()
    removed_names: tuple[str, ...] = ()
    inputs: tuple[InputSettings, ...] = ()
    folders: tuple[str, ...] = ()
    input_no_padding: bool = False
    output_no_padding: bool = False
    hbdk: str = HBDK
    is_debug: bool = False
    is_fast: bool = False
    raw: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def said(self, section: str, key: str, default: object = "") -> object:
        """A value of the YAML as it stands."""
        value = self.raw.get(section, {}).get(key)
        return default if value is None else value

    @property
    def calibration_type(self) -> str:
        """`skip` where there is no data."""
        return str(self.said("calibration_parameters", "calibration_type", "default")) if self.folders else "skip"


def read_options(config: Path, folder: Path, **more: Any) -> Options:
    """The options of a YAML; paths are relative to `folder`. Raises CompileError."""
    loaded = yaml.safe_load(config.read_text("utf-8")) or {}
    raw = {section: dict(keys or {}) for section, keys in loaded.items()}
    model = raw.get("model_parameters", {})
    extra = raw.get("compiler_parameters", {}).get("extra_params") or {}
    if "onnx_model" not in model or "march" not in model:
        raise CompileError("The parameters onnx_model and march are required.")
    return Options(
        model=folder / model["onnx_model"],
        march=checked_march(str(model["march"])),
        prefix=str(model.get("output_model_file_prefix", "model")),
        working_dir=folder / model.get("working_dir", "model_output"),
        removed_types=listed(model.get("remove_node_type")),
        removed_names=listed(model.get("remove_node_name")),
        inputs=_inputs(raw),
        folders=listed(raw.get("calibration_parameters", {}).get("cal_data_dir")),
        input_no_padding=extra.get("input_no_padding", False),
        output_no_padding=extra.get("output_no_padding", False),
        raw=raw,
        **more,
    )


def checked_march(march: str) -> str:
    """The march; CompileError for one that there is not."""
    if march not in MARCHES:
        raise CompileError(f"The specified march '{march}' is invalid, it should be one of {list(MARCHES)}")
    return march


def listed(value: object) -> tuple[str, ...]:
    """The items between semicolons."""
    return tuple(item.strip() for item in str(value).split(";") if item.strip()) if value is not None else ()


def _inputs(raw: Mapping[str, Mapping[str, Any]]) -> tuple[InputSettings, ...]:
    section = raw.get("input_parameters", {})
    sources = raw.get("compiler_parameters", {}).get("input_source") or {}
    names = listed(section.get("input_name"))
    runtime = listed(section.get("input_type_rt"))

    def of(key: str, at: int, default: str) -> str:
        items = listed(section.get(key))
        return items[at] if at < len(items) else default

    found = []
    for at in range(max(len(names), len(runtime))):
        name, rt = names[at] if at < len(names) else "", of("input_type_rt", at, "featuremap")
        numbers = {key: _numbers(of(f"{key}_value", at, "")) for key in ("mean", "scale", "std")}
        if rt == "featuremap" and any(numbers.values()):
            raise CompileError("mean_value, scale_value and std_value are not allowed for featuremap.")
        found.append(
            InputSettings(
                name,
                rt,
                of("input_type_train", at, "featuremap"),
                of("input_layout_train", at, "NCHW"),
                of("input_space_and_range", at, "regular"),
                source=sources.get(name, "pyramid" if rt in ("nv12", "gray") else "ddr"),
                **numbers,
            )
        )
    return tuple(found)


def _numbers(text: str) -> tuple[float, ...]:
    return tuple(float(item) for item in re.split(r"[,\s]+", text.strip("[] ")) if item and item != "None")


def completed(options: Options, graph: Graph) -> Options:
    """With an entry for every input of the model, in its order. Raises CompileError for inputs that it has not."""
    names = [value.name for value in graph.inputs]
    told = {one.name or names[0]: one for one in options.inputs}
    if unknown := sorted(set(told) - set(names)):
        raise CompileError(f"The input_name {unknown} is not in the model, it has {names}")
    inputs = [replace(told.get(name, InputSettings(name)), name=name) for name in names]
    if options.is_fast:
        inputs = [_fast(one, graph.shapes[one.name]) for one in inputs]
    for one in inputs:
        shape = graph.shapes[one.name]
        size = shape[2:4] if one.layout == "NCHW" else shape[1:3]
        if one.rt == "nv12" and any(length % 2 for length in size):
            raise CompileError(f"nv12 needs an even height and width, {one.name} has {size}")
    return replace(options, inputs=tuple(inputs))


def _fast(told: InputSettings, shape: tuple[int, ...]) -> InputSettings:
    """Fast-perf mode feeds pictures as nv12, whatever the model was trained on."""
    is_picture = len(shape) == 4 and shape[1] == 3 and not (shape[2] % 2 or shape[3] % 2)
    return replace(told, rt="nv12", train="rgb", source="pyramid") if is_picture else told
