"""The values in the tools' cells: numbers, shapes and lists, or None where a word or nothing stands there."""

from __future__ import annotations

import math
import re

from driftgate.domain.toolchain.common import Shape

#: How a dynamic dimension is printed: by hrt_model_exec, and by hb_model_info (toolchain facts §3, §7.3).
DYNAMIC = (-1, -(2**63))
_INTEGER = re.compile(r"[+-]?\d{1,19}")
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")


def finite(text: str) -> float | None:
    """A finite number in plain digits; None for `fused`, dashes, NaN and anything else."""
    value = float(text) if len(text) < 64 and _NUMBER.fullmatch(text.strip()) else math.inf
    return value if math.isfinite(value) else None


def integer(text: str) -> int | None:
    """A whole number of a size that files, shapes and counters have."""
    return int(text) if _INTEGER.fullmatch(text.strip()) else None


def boolean(text: str) -> bool | None:
    """True or False, in any case."""
    return {"true": True, "false": False}.get(text.strip().lower())


def parts(text: str, separators: str = ",") -> tuple[str, ...]:
    """The items of a list in any brackets; one that is empty at the end, behind a trailing comma, is none."""
    items = [item.strip() for item in re.split(f"[{separators}]", text.strip().strip("()[]"))]
    return tuple(items if items[-1] else items[:-1])


def integers(text: str, separators: str = ",") -> tuple[int, ...] | None:
    """Whole numbers, in brackets or not; None if one is no whole number."""
    values = tuple(map(integer, parts(text, separators)))
    return None if None in values else tuple(value for value in values if value is not None)


def numbers(text: str, separators: str = r",\s") -> tuple[float, ...] | None:
    """Finite numbers between commas or blanks, in brackets or not; empty brackets are an empty tuple."""
    values = tuple(finite(item) for item in parts(text, separators) if item)
    return None if None in values else tuple(value for value in values if value is not None)


def shape(text: str, separators: str = ",") -> Shape | None:
    """A shape or stride, dynamic dimensions as None; None if it is no list of whole numbers."""
    values = integers(text, separators)
    return None if values is None else dynamic(values)


def dynamic(values: tuple[int, ...]) -> Shape:
    """A shape with None for each dynamic dimension."""
    return tuple(None if value in DYNAMIC else value for value in values)


def torch_size(text: str) -> tuple[int, ...] | None:
    """`torch.Size([1, 2])` as a tuple; None where there is none."""
    found = re.fullmatch(r"torch\.Size\(\[([\d,\s]*)\]\)", text.strip())
    return integers(found[1]) if found and found[1].strip() else () if found else None
