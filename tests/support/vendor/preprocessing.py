"""What the compiler bakes in front of a network: bytes of pictures into the floats it was trained on (§2.6, §9)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

from support.vendor.graph import Array

#: BT.601 in full range: Y, U and V of R, G and B; U and V lie around 128.
BT601 = np.array([[0.299, 0.587, 0.114], [-0.168736, -0.331264, 0.5], [0.5, -0.418688, -0.081312]])
OFFSET = np.array([0.0, 128.0, 128.0])
VIDEO_GAIN = np.array([219.0, 224.0, 224.0]) / 255.0
VIDEO_OFFSET = np.array([16.0, 128.0, 128.0])
PICTURES = ("rgb", "bgr", "gray", "yuv444", "nv12")
YUV = ("nv12", "yuv444")
REVERSED = np.array([2, 1, 0])


@dataclass(frozen=True, slots=True)
class InputSettings:
    """What the YAML says of one input; `scale` is that of std_value too."""

    name: str
    rt: str = "featuremap"
    train: str = "featuremap"
    layout: str = "NCHW"
    space: str = "regular"
    mean: tuple[float, ...] = ()
    scale: tuple[float, ...] = ()
    std: tuple[float, ...] = ()
    source: str = "ddr"

    @property
    def is_picture(self) -> bool:
        """Whether it eats bytes when deployed."""
        return self.rt in PICTURES and self.train != "featuremap"

    @property
    def factors(self) -> tuple[float, ...]:
        """What every pixel is multiplied by, behind the mean."""
        return self.scale or tuple(1.0 / value for value in self.std)


@dataclass(slots=True)
class Preprocessing:
    """The inputs, nodes and constants of one picture; `made` is the float tensor they end in."""

    told: InputSettings
    shape: tuple[int, ...]
    inputs: list[onnx.ValueInfoProto] = field(default_factory=list)
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: dict[str, Array] = field(default_factory=dict)
    made: str = ""

    def __post_init__(self) -> None:
        pixels = self._planes() if self.told.rt == "nv12" else self._picture()
        self.made = self._normalised(self._coloured(self._do("Cast", pixels, to=TensorProto.DOUBLE)))

    def _do(self, operator: str, *inputs: str | Array, **attributes: Any) -> str:
        """One node; arrays among its inputs become constants."""
        names = []
        for value in inputs:
            if not isinstance(value, str):
                name = f"{self.told.name}_preprocess_{len(self.constants)}"
                self.constants[name] = value
                value = name
            names.append(value)
        made = f"{self.told.name}_preprocess_{operator}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, names, [made], name=made, **attributes))
        return made

    def _input(self, name: str, *shape: int) -> str:
        self.inputs.append(helper.make_tensor_value_info(name, TensorProto.UINT8, shape))
        return name

    @property
    def _size(self) -> tuple[int, int]:
        height, width = self.shape[2:4] if self.told.layout == "NCHW" else self.shape[1:3]
        return height, width

    def _planes(self) -> str:
        """Y, U and V of every pixel; each U and V stands for 2 × 2 of them."""
        height, width = self._size
        luma = self._input(f"{self.told.name}_y", 1, height, width, 1)
        chroma = self._input(f"{self.told.name}_uv", 1, height // 2, width // 2, 2)
        apart = self._do("Reshape", chroma, np.array([1, height // 2, 1, width // 2, 1, 2]))
        wide = self._do("Expand", apart, np.array([1, height // 2, 2, width // 2, 2, 2]))
        return self._do("Concat", luma, self._do("Reshape", wide, np.array([1, height, width, 2])), axis=3)

    def _picture(self) -> str:
        height, width = self._size
        if self.told.rt == "gray":
            return self._do("Transpose", self._input(self.told.name, 1, 1, height, width), perm=[0, 2, 3, 1])
        return self._input(self.told.name, 1, height, width, 3)

    def _coloured(self, pixels: str) -> str:
        """In the order and space that the network was trained on, rounded to bytes where it has been computed."""
        rt, train = self.told.rt, self.told.train
        if rt == "nv12" and self.told.space == "bt601_video":
            moved = self._do("Sub", pixels, VIDEO_OFFSET)
            pixels = self._do("Add", self._do("Div", moved, VIDEO_GAIN), OFFSET)
        if rt in YUV and train in ("rgb", "bgr"):
            matrix = np.linalg.inv(BT601).T
            matrix = matrix if train == "rgb" else matrix[:, ::-1]
            pixels = self._do("MatMul", self._do("Sub", pixels, OFFSET), np.ascontiguousarray(matrix))
        elif rt not in YUV and rt != train:
            return self._do("Gather", pixels, REVERSED, axis=3)
        return self._do("Clip", self._do("Round", pixels), np.float64(0), np.float64(255)) if rt in YUV else pixels

    def _normalised(self, pixels: str) -> str:
        for operator, values in (("Sub", self.told.mean), ("Mul", self.told.factors)):
            pixels = self._do(operator, pixels, np.array(values, np.float64)) if values else pixels
        made = self._do("Cast", pixels, to=TensorProto.FLOAT)
        return self._do("Transpose", made, perm=[0, 3, 1, 2]) if self.told.layout == "NCHW" else made


def preprocessed(settings: Mapping[str, InputSettings], name: str, shape: tuple[int, ...]) -> Preprocessing | None:
    """The preprocessing of an input; None for one that is fed as the float network is."""
    told = settings.get(name)
    return Preprocessing(told, shape) if told is not None and told.is_picture else None
