"""What the deployed model eats, made of what the float model eats, and back: by the declaration that hb_compile has.

Toolchain facts §2.6 and §9: runtime samples are not normalised; rgb, bgr and yuv444 become NHWC, gray and feature
maps keep their axes, nv12 becomes two tensors `<input>_y` and `<input>_uv`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftgate.transforms.colours import Colour, bytes_of, coloured, ycbcr
from driftgate.transforms.layouts import Layout
from driftgate.transforms.nv12 import planes, rgb_of, ycbcr_of
from driftgate.transforms.resampling import Numbers, Pixels

Tensor = NDArray[Any]


class Type(str, Enum):
    """input_type_train and input_type_rt."""

    RGB = "rgb"
    BGR = "bgr"
    GRAY = "gray"
    YUV444 = "yuv444"
    NV12 = "nv12"  # at run time only
    FEATUREMAP = "featuremap"


class DeclarationError(ValueError):
    """A tensor is not what its declaration says, or that is none; the words are for a reader."""


#: What hb_compile converts to what (toolchain facts §2.6), as far as this is written here.
LEGAL: Mapping[Type, tuple[Type, ...]] = {
    Type.RGB: (Type.RGB, Type.BGR, Type.NV12, Type.YUV444),
    Type.BGR: (Type.BGR, Type.RGB, Type.NV12, Type.YUV444),
    Type.YUV444: (Type.YUV444, Type.NV12),
    Type.GRAY: (Type.GRAY,),
    Type.NV12: (),
    Type.FEATUREMAP: (Type.FEATUREMAP,),
}


@dataclass(frozen=True, slots=True)
class Declaration:
    """One input. A float value is (pixel - mean) · scale, by channel in the order of `train`, or one for all;
    `layout` is that of the float model's input, `video` the range of nv12; with a `roi` (left, top, right, bottom, the
    last ones included) the resizer cuts it out of the picture, and is fed it as an input of its own, `roi_input`."""

    train: Type = Type.FEATUREMAP
    rt: Type = Type.FEATUREMAP
    layout: Layout = Layout.NCHW
    mean: tuple[float, ...] = ()
    scale: tuple[float, ...] = ()
    video: bool = False
    roi: tuple[int, int, int, int] | None = None
    roi_input: str = ""

    def __post_init__(self) -> None:
        if self.rt not in LEGAL[self.train]:
            known = ", ".join(one.value for one in LEGAL[self.train])
            raise DeclarationError(
                f"{self.train.value} cannot become {self.rt.value} at run time; it can become {known}"
            )
        if self.roi is not None and self.rt not in (Type.NV12, Type.GRAY):
            raise DeclarationError(f"the resizer takes nv12 and gray, not {self.rt.value}")
        if self.roi is not None and not (0 <= self.roi[0] < self.roi[2] and 0 <= self.roi[1] < self.roi[3]):
            raise DeclarationError(f"roi {self.roi}; wanted left, top, right, bottom, both last ones included")

    @property
    def passes(self) -> bool:
        """Whether the tensor is handed on as it is."""
        return self.train is Type.FEATUREMAP


def runtime_of(name: str, raw: Tensor, declared: Declaration) -> dict[str, Tensor]:
    """The runtime tensors of one float input (1, channels, height, width) or (1, height, width, channels), by name.

    Raises DeclarationError.
    """
    if declared.passes:
        return {name: raw}
    pixels = _pixels(raw, declared)
    if declared.rt is Type.NV12:
        height, width = pixels.shape[:2]
        if height % 2 or width % 2:
            raise DeclarationError(f"{height} × {width} pixels; nv12 wants an even height and width")
        luma, chroma = planes(_ycbcr(pixels, declared.train), video=declared.video)
        return {f"{name}_y": luma, f"{name}_uv": chroma, **_resized(name, pixels, declared)}
    made = (
        pixels if declared.rt is declared.train else coloured(_rgb(pixels, declared.train), Colour(declared.rt.value))
    )
    axes = (2, 0, 1) if declared.rt is Type.GRAY else (0, 1, 2)
    return {name: np.array(made.transpose(axes)[None], order="C"), **_resized(name, pixels, declared)}


def raw_of(name: str, runtime: Mapping[str, Tensor], declared: Declaration) -> Tensor:
    """The float input of runtime tensors, as the float model eats it. What nv12 lost stays lost.

    Raises DeclarationError.
    """
    if declared.passes:
        return _of(runtime, name)
    if declared.rt is Type.NV12:
        luma, chroma = _of(runtime, f"{name}_y"), _of(runtime, f"{name}_uv")
        rows, columns = luma.shape[1:3] if luma.ndim == len("NHWC") else (0, 0)
        if luma.shape != (1, rows, columns, 1) or chroma.shape != (1, rows // 2, columns // 2, 2):
            raise DeclarationError(
                f"Y {luma.shape} and UV {chroma.shape}; wanted (1, height, width, 1) and (1, height / 2, width / 2, 2)"
            )
        values = ycbcr_of(luma, chroma, video=declared.video)
        pixels = bytes_of(values) if declared.train is Type.YUV444 else _trained(rgb_of(values), declared.train)
    else:
        held = _of(runtime, name)[0].transpose((1, 2, 0) if declared.rt is Type.GRAY else (0, 1, 2))
        pixels = held if declared.rt is declared.train else _trained(_rgb(held, declared.rt), declared.train)
    floats = pixels.astype(np.float64) - np.array(declared.mean or (0.0,))
    floats = (floats * np.array(declared.scale or (1.0,))).astype(np.float32)
    if declared.layout is Layout.NCHW:
        floats = floats.transpose(2, 0, 1)
    return np.array(floats[None], order="C")


def roi_name(name: str, declared: Declaration) -> str:
    """What the input of an input's region is called."""
    return declared.roi_input or f"{name}_roi"


def _resized(name: str, pixels: Pixels, declared: Declaration) -> dict[str, Tensor]:
    """The region for the resizer (1, 4). A float input is what the resizer gives, which is the picture itself only
    where the region is the whole of it."""
    if declared.roi is None:
        return {}
    height, width = pixels.shape[:2]
    if declared.roi != (0, 0, width - 1, height - 1):
        raise DeclarationError(
            f"roi {declared.roi} of {height} × {width} pixels: what the resizer makes of a part of a picture is not "
            "known here; give runtime samples, with the region among them"
        )
    return {roi_name(name, declared): np.array([declared.roi], np.int32)}


def _pixels(raw: Tensor, declared: Declaration) -> Pixels:
    """The 8-bit pixels (height, width, channels) that a float input was made of, in the order of `train`."""
    channels = 1 if declared.train is Type.GRAY else 3
    place = 1 if declared.layout is Layout.NCHW else 3
    if raw.ndim != len("NCHW") or raw.shape[0] != 1 or raw.shape[place] != channels:
        wanted = f"(1, {channels}, height, width)" if place == 1 else f"(1, height, width, {channels})"
        raise DeclarationError(f"shape {raw.shape}; {declared.train.value} in {declared.layout.value} wants {wanted}")
    values = np.asarray(raw[0], np.float64)
    if declared.layout is Layout.NCHW:
        values = values.transpose(1, 2, 0)
    values = values / np.array(declared.scale or (1.0,)) + np.array(declared.mean or (0.0,))
    if not np.isfinite(values).all() or values.min(initial=0.0) < -1.0 or values.max(initial=0.0) > 256.0:
        low, high = float(np.nanmin(values)), float(np.nanmax(values))
        raise DeclarationError(
            f"its pixels would be {low:.4g} … {high:.4g}; wanted 0 … 255: mean and scale are not those it was made with"
        )
    return bytes_of(values)


def _of(runtime: Mapping[str, Tensor], name: str) -> Tensor:
    if name not in runtime:
        raise DeclarationError(f"{name} is missing; there are {', '.join(sorted(runtime)) or 'none'}")
    return runtime[name]


def _rgb(pixels: Pixels, colour: Type) -> Pixels:
    return _TO_RGB[colour](pixels)


def _trained(rgb: Pixels, colour: Type) -> Pixels:
    return coloured(rgb, Colour(colour.value))


def _ycbcr(pixels: Pixels, colour: Type) -> Numbers:
    """Y, U and V, of yuv444 without a way through RGB."""
    return pixels.astype(np.float64) if colour is Type.YUV444 else ycbcr(_rgb(pixels, colour))


_TO_RGB: Mapping[Type, Callable[[Pixels], Pixels]] = {
    Type.RGB: lambda pixels: pixels,
    Type.BGR: lambda pixels: pixels[:, :, ::-1],
    Type.GRAY: lambda pixels: pixels.repeat(3, axis=2),
    Type.YUV444: lambda pixels: rgb_of(pixels.astype(np.float64)),
}
