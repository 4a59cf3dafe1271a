"""The `preprocess` section: how images become the feeds of every stage."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from driftgate.settings.section import Section
from driftgate.transforms.colours import Colour
from driftgate.transforms.geometry import Fit, Place, Resize
from driftgate.transforms.layouts import ElementType, Encoding, Layout, Range
from driftgate.transforms.resampling import Filter


def _one_or_more(value: object) -> object:
    return (value,) if isinstance(value, (int, float)) and not isinstance(value, bool) else value


def _height_and_width(value: object) -> object:
    if isinstance(value, int) and not isinstance(value, bool):
        return (value, value)
    if isinstance(value, (list, tuple)) and len(value) != 2:
        raise ValueError("wanted [height, width], or one number for both")
    return value


#: One number for all channels, or one for each.
Numbers = Annotated[
    tuple[float, ...],
    BeforeValidator(_one_or_more),
    WithJsonSchema({"anyOf": [{"type": "number"}, {"type": "array", "items": {"type": "number"}}]}),
]
Pad = Annotated[
    tuple[Annotated[int, Field(ge=0, le=255)], ...],
    BeforeValidator(_one_or_more),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "integer", "minimum": 0, "maximum": 255},
                {"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": 255}, "maxItems": 3},
            ]
        }
    ),
]
Pixels = Annotated[int, Field(ge=1)]
_LENGTH = {"type": "integer", "minimum": 1}
Size = Annotated[
    tuple[Pixels, Pixels],
    BeforeValidator(_height_and_width),
    WithJsonSchema({"anyOf": [_LENGTH, {"type": "array", "items": _LENGTH, "minItems": 2, "maxItems": 2}]}),
]
TrainedColour = Literal["rgb", "bgr", "gray", "yuv444"]
DeployedColour = Literal["rgb", "bgr", "gray", "yuv444", "nv12"]


class PreprocessSettings(Section):
    """What the float models were trained on. The order is: decode, upright, resize, colour, range, mean and std,
    layout."""

    decoder: Literal["pillow"] = Field(default="pillow", description="what decodes the image files")
    size: Size | None = Field(
        default=None,
        description="[height, width] of the network's input in pixels, or one number for both; "
        "needed but for resize: none",
    )
    resize: Resize = Field(
        default=Resize.LETTERBOX,
        description="letterbox: whole image, the rest padded; stretch: whole image, proportions lost; "
        "crop: middle of the image; none: every image has this size already",
    )
    shorter: Pixels | None = Field(
        default=None,
        description="with crop: pixels that the shorter side gets before the cut, 256 for ImageNet's usual; "
        "without it the image just covers the size",
    )
    filter: Filter = Field(default=Filter.BILINEAR, description="what a pixel of the resized image is made of")
    antialias: bool = Field(
        default=True,
        description="true: as Pillow and torchvision do it; false: as OpenCV does; area and nearest have no choice",
    )
    pad: Pad = Field(default=(114,), description="with letterbox: pixel value 0–255 of the rest; a number or [r, g, b]")
    place: Place = Field(default=Place.CENTRE, description="with letterbox: where the image lies; corner is top left")
    colour: TrainedColour = Field(
        default="rgb", description="channels; gray and yuv444 are BT.601, full range, U and V around 128"
    )
    range: Range = Field(default=Range.UNIT, description="what the pixels 0 and 255 become")
    mean: Numbers = Field(default=(), description="subtracted after `range`, in its unit; a number or one a channel")
    std: Numbers = Field(default=(), description="then divided by; a number or one a channel, in the colours' order")
    layout: Layout = Field(default=Layout.NCHW, description="axes of the feed, whose first has length 1")
    dtype: ElementType = Field(default=ElementType.FLOAT32, description="uint8: the pixels as they are")
    feed: str = Field(default="images", min_length=1, description="name of the feed")

    @model_validator(mode="after")
    def _sound(self) -> PreprocessSettings:
        problems = "; ".join(self._problems())
        if problems:
            raise ValueError(problems)
        return self

    def _problems(self) -> Iterator[str]:
        if self.size is None and self.resize is not Resize.NONE:
            yield "size is missing; give [height, width] in pixels, or resize: none"
        if self.shorter is not None and self.resize is not Resize.CROP:
            yield "shorter is for resize: crop only"
        elif self.shorter is not None and self.size is not None and self.shorter < max(self.size):
            yield f"shorter is {self.shorter}, less than the size; wanted {max(self.size)} or more"
        if self.filter is Filter.LANCZOS and not self.antialias:
            yield "filter lanczos is with antialias: true only"
        if len(self.pad) not in (1, 3):
            yield f"pad has {len(self.pad)} numbers; wanted one, or [r, g, b]"
        channels = Colour(self.colour).channels
        for name, numbers in (("mean", self.mean), ("std", self.std)):
            if len(numbers) not in {0, 1, channels}:
                yield f"{name} has {len(numbers)} numbers; wanted one, or {channels} for {self.colour}"
        if 0 in self.std:
            yield "std is 0; wanted another number"
        if self.dtype is ElementType.UINT8 and (self.range is not Range.BYTE or self.mean or self.std):
            yield "dtype uint8 takes the pixels as they are; set range: 0-255 and leave mean and std out"

    def fit(self) -> Fit:
        """How images are brought to size."""
        pad = self.pad * 3 if len(self.pad) == 1 else self.pad
        return Fit(
            size=self.size,
            resize=self.resize,
            filter=self.filter,
            antialias=self.antialias,
            pad=(pad[0], pad[1], pad[2]),
            place=self.place,
            shorter=self.shorter,
        )

    def encoding(self) -> Encoding:
        """What the float models' feed is made of."""
        return Encoding(
            feed=self.feed,
            colour=Colour(self.colour),
            range=self.range,
            layout=self.layout,
            dtype=self.dtype,
            mean=self.mean,
            std=self.std,
        )


class RuntimeImages(Section):
    """What the deployed model eats, of the same images at the same size: 8-bit pixels, not normalised."""

    from_: Path = Field(alias="from", description="the folder of images")
    as_: DeployedColour = Field(
        alias="as", description="channels; nv12 makes two feeds, <feed>_y and <feed>_uv, BT.601, full range"
    )
    layout: Layout | None = Field(default=None, description="NHWC, but NCHW for gray, as hb_compile has it")
    feed: str | None = Field(default=None, min_length=1, description="name of the feed; that of `preprocess` if absent")

    @model_validator(mode="after")
    def _nv12_is_nhwc(self) -> RuntimeImages:
        if self.as_ == "nv12" and self.layout is Layout.NCHW:
            raise ValueError("nv12 is NHWC; leave layout out")
        return self

    def encoding(self, feed: str) -> Encoding:
        """What the deployed model's feed is made of."""
        usual = Layout.NCHW if self.as_ == "gray" else Layout.NHWC
        return Encoding(
            feed=self.feed or feed,
            colour=Colour(self.as_),
            range=Range.BYTE,
            layout=self.layout or usual,
            dtype=ElementType.UINT8,
        )
