"""STAND-IN for hbm_runtime on a board, for tests only: raw outputs by model and name (toolchain facts §8).

STAND_IN_MARCH is the march of the board (the model's own where it is not set); STAND_IN_FAULT: memory (the board has
none left), few (one output too few). As the real one it prints what it does.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any

import numpy as np

sys.path.append(str(Path(__file__).resolve().parents[4]))

from support.vendor.files import TensorTold, read
from support.vendor.running import Arrays, Runner

__version__ = "3.15.8+stand-in"
Outputs = dict[str, "np.ndarray[Any, Any]"]
hbDNNDataType = IntEnum("hbDNNDataType", "S4 U4 S8 U8 F16 S16 U16 F32 S32 U32 F64 S64 U64 BOOL8", start=0)  # noqa: N816


class QuantType(IntEnum):
    """Whether a tensor has scales."""

    NONE = 0
    SCALE = 1


@dataclass(frozen=True)
class QuantParams:
    """The quantisation of a tensor; `axis` is 0 where there is none."""

    scale: np.ndarray[Any, Any]
    zero_point: np.ndarray[Any, Any]
    quant_type: QuantType
    axis: int


@dataclass
class SchedParam:
    """How tasks of a model are scheduled."""

    priority: int
    custom_id: int
    bpu_cores: list[int]
    device_id: int


class HB_HBMRuntime:  # noqa: N801 - the vendor's name
    """The networks of one or several .hbm."""

    version = __version__

    def __init__(self, path: str | Sequence[str]) -> None:
        self._fault = os.environ.get("STAND_IN_FAULT", "")
        print(f"[UCP]: UCP version = {__version__.partition('+')[0]}", flush=True)
        if self._fault == "memory":
            raise RuntimeError("Cannot malloc bpu memory with length 5703561320 bytes")
        self._paths = [path] if isinstance(path, str) else list(path)
        networks = [network for one in self._paths for network in read(Path(one))]
        board = os.environ.get("STAND_IN_MARCH", "")
        for network in networks:
            if board and network.march and board != network.march:
                said = f"Model march incompatible! model march: {network.march}, platform march: {board}"
                raise RuntimeError(said)
        self._runners = {network.name: Runner(network) for network in networks}
        self.sched_params = {name: SchedParam(0, 0, [0], 0) for name in self._runners}

    def _each(self, side: str, told: Callable[[TensorTold], Any]) -> dict[str, dict[str, Any]]:
        """model → tensor → value, tensors in alphabetical order as the real one gives them."""
        return {
            name: {tensor.name: told(tensor) for tensor in sorted(getattr(runner, side), key=lambda one: one.name)}
            for name, runner in self._runners.items()
        }

    def __getattr__(self, name: str) -> Any:
        """`input_…` and `output_…` of every kind."""
        side, _, kind = name.partition("_")
        if side not in ("input", "output"):
            raise AttributeError(name)
        if kind == "names":
            return {model: [one.name for one in getattr(runner, f"{side}s")] for model, runner in self._runners.items()}
        if kind == "counts":
            return {model: len(getattr(runner, f"{side}s")) for model, runner in self._runners.items()}
        if kind not in TOLD:
            raise AttributeError(name)
        return self._each(f"{side}s", TOLD[kind])

    @property
    def model_names(self) -> list[str]:
        """The networks that are loaded."""
        return list(self._runners)

    @property
    def model_count(self) -> int:
        """How many they are."""
        return len(self._runners)

    @property
    def model_descs(self) -> dict[str, str]:
        """What the builder wrote into each."""
        return {name: json.dumps(dict(runner.network.desc)) for name, runner in self._runners.items()}

    @property
    def hbm_descs(self) -> dict[str, str]:
        """What stands in each file beside its networks: nothing."""
        return dict.fromkeys(self._paths, "")

    @property
    def compile_bpu_core_num(self) -> dict[str, int]:
        """The cores that each was compiled for."""
        return {name: int(runner.network.desc.get("CORE_NUM", 1)) for name, runner in self._runners.items()}

    def set_scheduling_params(
        self,
        priority: Mapping[str, int] | None = None,
        bpu_cores: Mapping[str, Sequence[int]] | None = None,
        custom_id: Mapping[str, int] | None = None,
        device_id: Mapping[str, int] | None = None,
    ) -> None:
        """Change what is given."""
        for name, param in self.sched_params.items():
            param.priority = (priority or {}).get(name, param.priority)
            param.bpu_cores = list((bpu_cores or {}).get(name, param.bpu_cores))
            param.custom_id = (custom_id or {}).get(name, param.custom_id)
            param.device_id = (device_id or {}).get(name, param.device_id)

    def run(self, inputs: Any, model_name: str | None = None, **_scheduling: Any) -> dict[str, Outputs]:
        """model → output → value, for an array, inputs by name, or inputs by model and name."""
        if isinstance(inputs, Mapping) and inputs and all(isinstance(value, Mapping) for value in inputs.values()):
            return {name: self._run(name, feeds) for name, feeds in inputs.items()}
        if model_name is None and len(self._runners) > 1:
            raise ValueError(f"model_name is required, there are {self.model_names}")
        name = model_name or self.model_names[0]
        if isinstance(inputs, np.ndarray):
            names = self.input_names.get(name, [])
            if len(names) != 1:
                raise ValueError(f"model {name} has {len(names)} inputs")
            inputs = {names[0]: inputs}
        return {name: self._run(name, inputs)}

    def _run(self, name: str, feeds: Arrays) -> Outputs:
        runner = self._runners.get(name)
        if runner is None:
            raise ValueError(f"model {name} is not in {self.model_names}")
        told = {tensor.name: tensor for tensor in runner.inputs}
        if set(feeds) != set(told):
            raise ValueError(f"inputs {sorted(feeds)} do not match {sorted(told)}")
        for key, value in feeds.items():
            if value.shape != told[key].shape or value.dtype != told[key].kind:
                raise ValueError(f"input {key} is {value.dtype} {value.shape}, not {told[key].kind} {told[key].shape}")
        param = self.sched_params[name]
        print(f"run {name}: priority {param.priority}, bpu_cores {param.bpu_cores}", flush=True)
        made = runner.run({key: np.ascontiguousarray(value) for key, value in feeds.items()})
        if self._fault == "few":
            made.popitem()
        return made


#: Kind of an `input_…` or `output_…` property → what it tells of a tensor.
TOLD: Mapping[str, Callable[[TensorTold], Any]] = {
    "descs": lambda tensor: "",
    "shapes": lambda tensor: list(tensor.shape),
    "dtypes": lambda tensor: hbDNNDataType[tensor.dtype],
    "strides": lambda tensor: list(tensor.stride),
    "quants": lambda tensor: QuantParams(
        np.asarray(tensor.scales, np.float32),
        np.asarray(tensor.zero_points, np.int32),
        QuantType.SCALE if tensor.scales else QuantType.NONE,
        tensor.axis or 0,
    ),
}
