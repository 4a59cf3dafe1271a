"""Inputs in the words of hb_compile's yaml: how runtime samples follow from raw ones, or the reverse."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from driftgate.domain.toolchain.common import InputContract
from driftgate.settings.preprocess import Numbers
from driftgate.settings.section import Section
from driftgate.transforms.declared import Declaration, DeclarationError, Type
from driftgate.transforms.layouts import Layout


class InputSettings(Section):
    """One input. A float value is (pixel - mean) · scale; give scale or std, whose reciprocal it is."""

    train: Literal["rgb", "bgr", "gray", "yuv444", "featuremap"] = Field(
        default="featuremap", description="input_type_train"
    )
    rt: Literal["rgb", "bgr", "gray", "yuv444", "nv12", "featuremap"] = Field(
        default="featuremap", description="input_type_rt; nv12 makes <input>_y and <input>_uv"
    )
    layout: Layout = Field(default=Layout.NCHW, description="input_layout_train")
    space: Literal["regular", "bt601_video"] = Field(default="regular", description="input_space_and_range, of nv12")
    mean: Numbers = Field(default=(), description="mean_value; a number or one a channel, in the order of train")
    scale: Numbers = Field(default=(), description="scale_value")
    std: Numbers = Field(default=(), description="std_value, instead of scale")

    roi: tuple[int, int, int, int] | None = Field(
        default=None, description="region for an input of the resizer: left, top, right, bottom, the last ones included"
    )
    roi_input: str = Field(default="", description="the name of that region's input; <input>_roi where absent")

    @model_validator(mode="after")
    def _sound(self) -> InputSettings:
        if self.scale and self.std:
            raise ValueError("give scale or std, not both")
        if 0 in self.std or 0 in self.scale:
            raise ValueError("scale and std must not be 0")
        self.declaration()
        return self

    def declaration(self) -> Declaration:
        """As a value. Raises ValueError for what hb_compile cannot convert."""
        try:
            return Declaration(
                train=Type(self.train),
                rt=Type(self.rt),
                layout=self.layout,
                mean=self.mean,
                scale=self.scale or tuple(1.0 / one for one in self.std),
                video=self.space == "bt601_video",
                roi=self.roi,
                roi_input=self.roi_input,
            )
        except DeclarationError as error:
            raise ValueError(str(error)) from error

    def contract(self, name: str) -> InputContract:
        """In hb_compile's words, but for the normalisation."""
        is_picture = self.train != "featuremap"
        return InputContract(
            name,
            type_rt=self.rt,
            type_train=self.train,
            layout_train=self.layout.value if is_picture else None,
            space_and_range=self.space if self.rt == "nv12" else None,
        )


def declarations(inputs: dict[str, InputSettings]) -> dict[str, Declaration]:
    """By input."""
    return {name: one.declaration() for name, one in inputs.items()}
