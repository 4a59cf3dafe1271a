"""Builds with the stand-in toolchain, and commands of its tools, for tests."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import yaml

from support.vendor.compiling import run
from support.vendor.journal import Journal
from support.vendor.options import HBDK, read_options

Array = np.ndarray[Any, Any]
BIN = Path(__file__).with_name("bin")


def build(
    folder: Path,
    model: onnx.ModelProto,
    *,
    march: str,
    rt: str = "featuremap",
    train: str | None = None,
    layout: str = "NCHW",
    space: str = "regular",
    mean: Sequence[float] = (),
    scale: Sequence[float] = (),
    remove: Sequence[str] = (),
    calibration: Mapping[str, Array] | None = None,
    prefix: str = "net",
    working_dir: str = "model_output",
    source: str = "",
    input_no_padding: bool = False,
    output_no_padding: bool = False,
    debug: bool = False,
    hbdk: str = HBDK,
) -> Path:
    """The working_dir of a build in `folder`, which also gets net.onnx, its YAML and calibration data.

    `calibration` has samples stacked along the first axis, by input, as the float network eats them. `rt`, `train`,
    `mean` and the like hold for every input. `remove`: types or names of the nodes at the edges.
    """
    inputs = [value.name for value in model.graph.input]
    train = train or ("featuremap" if rt == "featuremap" else "rgb")
    folder.mkdir(parents=True, exist_ok=True)
    onnx.save(model, str(folder / f"{prefix}.onnx"))

    def each(value: object) -> str:
        return ";".join([str(value)] * len(inputs))

    kinds = [one for one in remove if one in ("Quantize", "Dequantize")]
    normalised = {"mean_value": mean, "scale_value": scale}
    padding = {"input_no_padding": input_no_padding, "output_no_padding": output_no_padding}
    document = {
        "model_parameters": {
            "onnx_model": f"{prefix}.onnx",
            "march": march,
            "working_dir": working_dir,
            "output_model_file_prefix": prefix,
            "remove_node_type": ";".join(kinds),
            "remove_node_name": ";".join(one for one in remove if one not in kinds),
        },
        "input_parameters": {
            "input_name": ";".join(inputs),
            "input_type_rt": each(rt),
            "input_type_train": each(train),
            "input_layout_train": each(layout),
            **({"input_space_and_range": each(space)} if rt == "nv12" else {}),
            **{key: each(" ".join(map(str, values))) for key, values in normalised.items() if values},
        },
        "calibration_parameters": _calibration(folder, inputs, calibration or {}),
        "compiler_parameters": {
            "optimize_level": "O2",
            **({"input_source": dict.fromkeys(inputs, source)} if source else {}),
            **({"extra_params": padding} if any(padding.values()) else {}),
        },
    }
    config = folder / f"{prefix}.yaml"
    config.write_text(yaml.safe_dump(document, sort_keys=False, allow_unicode=True), "utf-8")
    console = io.StringIO()
    journal = Journal(folder / "hb_compile.log", console, source="hb_compile")
    code = run(lambda: read_options(config, folder, hbdk=hbdk, is_debug=debug), journal, hbdk=hbdk)
    if code:
        raise AssertionError(console.getvalue())
    return folder / working_dir


def _calibration(folder: Path, inputs: Sequence[str], calibration: Mapping[str, Array]) -> dict[str, str]:
    """The keys of the YAML, and a folder of .npy for each input."""
    places = []
    for name in filter(calibration.__contains__, inputs):
        place = folder / "calibration" / name
        place.mkdir(parents=True, exist_ok=True)
        for number, value in enumerate(calibration[name]):
            np.save(place / f"sample_{number:04}.npy", value[None])
        places.append(str(place))
    return {"cal_data_dir": ";".join(places), "calibration_type": "max"} if places else {}


def tool(name: str, fault: str = "", **environment: str) -> tuple[str, ...]:
    """The command of one of the tools; `fault` is how it misbehaves."""
    told = (f"{key}={value}" for key, value in environment.items())
    return ("env", f"STAND_IN_FAULT={fault}", *told, sys.executable, str(BIN / name))


def path_with_tools() -> str:
    """A PATH on which the tools stand in front, run by this interpreter."""
    return os.pathsep.join([str(BIN), str(Path(sys.executable).parent), os.environ.get("PATH", "")])
