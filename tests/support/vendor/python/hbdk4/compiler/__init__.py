"""STAND-IN for hbdk4.compiler, for tests only: loads and feeds .bc and .hbm of the stand-in toolchain (facts §5)."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

sys.path.append(str(Path(__file__).resolve().parents[5]))

from support.vendor.files import Network, TensorTold, read
from support.vendor.running import Runner, accepted

__version__ = "4.11.11+stand-in"
Arrays = dict[str, "np.ndarray[Any, Any]"]
F = TypeVar("F", bound="Function")


@dataclass(frozen=True)
class QuantInfo:
    """The quantisation of a tensor of integers."""

    scales: list[float]
    zero_points: list[int]
    axis: int | None


@dataclass(frozen=True)
class TensorType:
    """Shape and type of a value."""

    shape: tuple[int, ...]
    np_dtype: Any


@dataclass(frozen=True)
class Value:
    """An input or output."""

    name: str
    type: TensorType
    quant_info: QuantInfo | None


class Function:
    """A network that can be fed. Result buffers are the same at every call, so they must be copied."""

    def __init__(self, network: Network) -> None:
        self.name = network.name
        self._runner = Runner(network)
        self._buffers: Arrays = {}
        self.flatten_inputs = [_value(tensor) for tensor in self._runner.inputs]
        self.flatten_outputs = [_value(tensor) for tensor in self._runner.outputs]
        self.inputs, self.outputs = self.flatten_inputs, self.flatten_outputs

    def feed(self, feeds: Mapping[str, np.ndarray[Any, Any]]) -> Arrays:
        """The outputs by name."""
        told = {tensor.name: tensor for tensor in self._runner.inputs}
        if set(feeds) != set(told):
            raise ValueError(f"inputs {sorted(feeds)} do not match {sorted(told)}")
        given = {name: accepted(told[name], np.asarray(value)) for name, value in feeds.items()}
        for name, value in self._runner.run(given).items():
            self._buffers.setdefault(name, np.empty_like(value))[...] = value
        return dict(self._buffers)


class Module:
    """A .bc; `march` is None before convert."""

    def __init__(self, networks: tuple[Network, ...]) -> None:
        self.functions = [Function(network) for network in networks]
        self.graphs = self.functions
        self.march = networks[0].march
        self.version = networks[0].told.get("version", "4.11.11")

    def __getitem__(self, key: int | str) -> Function:
        return _found(self.functions, key)

    def __len__(self) -> int:
        return len(self.functions)


class HbmGraph(Function):
    """A network of an .hbm, fed on the simulator."""

    def feed(
        self,
        feeds: Mapping[str, np.ndarray[Any, Any]],
        output_dir: str = ".",
        remote_ip: str | None = None,
        remote_port: int = 22,
        username: str = "root",
        password: str = "",
        local_work_path: str = "remote_bpu/",
        remote_work_root: str = "/tmp/",
        remote_cores: list[int] | None = None,
    ) -> Arrays:
        """The outputs by name, as the network has them."""
        return {name: value.copy() for name, value in super().feed(feeds).items()}


class Hbm:
    """An .hbm with its networks."""

    def __init__(self, path: str) -> None:
        networks = read(Path(path))
        self.graphs = [HbmGraph(network) for network in networks]
        self.functions = self.graphs
        self.march_name = networks[0].march
        self.toolkit_version = networks[0].told.get("version", "4.11.11")

    def __getitem__(self, key: int | str) -> HbmGraph:
        return _found(self.graphs, key)

    def __len__(self) -> int:
        return len(self.graphs)

    def __iter__(self) -> Iterator[HbmGraph]:
        return iter(self.graphs)


def load(path: str) -> Module:
    """The module of a .bc."""
    if Path(path).suffix != ".bc":
        raise RuntimeError(f"cannot load {path}: not an HBIR file")
    return Module(read(Path(path)))


def _found(functions: list[F], key: int | str) -> F:
    if isinstance(key, int):
        return functions[key]
    found = next((function for function in functions if function.name == key), None)
    if found is None:
        raise KeyError(key)
    return found


def _value(tensor: TensorTold) -> Value:
    info = QuantInfo(list(tensor.scales), list(tensor.zero_points), tensor.axis) if tensor.scales else None
    return Value(tensor.name, TensorType(tensor.shape, tensor.kind.type), info)
