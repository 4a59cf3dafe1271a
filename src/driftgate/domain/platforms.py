"""The platforms of the Journey 6 family as data; toolchain facts §9, J6 OE 3.9 and RDK documents."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Platform:
    """A target. `tail`: type of a high-precision tail operator; `w_stride`: alignment of an NV12 row, bytes;
    `precisions`: what to try on sensitive nodes, in this order, by quant_config's names; empty: ask the tool."""

    name: str
    march: str
    tail: str
    w_stride: int
    precisions: tuple[str, ...] = ()


INT16, WITH_FLOAT16 = ("int16",), ("int16", "float16")

PLATFORMS = {
    platform.name: platform
    for platform in (
        Platform("J6B", "nash-b", "fp32", 32),
        Platform("J6E", "nash-e", "int32", 32, INT16),
        Platform("J6M", "nash-m", "int32", 32, INT16),
        Platform("J6H", "nash-h", "fp32", 64, WITH_FLOAT16),
        Platform("J6P", "nash-p", "fp32", 64, WITH_FLOAT16),
        Platform("S100", "nash-e", "int32", 32, INT16),
        Platform("S100P", "nash-m", "int32", 32, INT16),
        Platform("S600", "nash-p", "fp32", 64, WITH_FLOAT16),
    )
}
