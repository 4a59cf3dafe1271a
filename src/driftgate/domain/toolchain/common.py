"""What several of the vendor's tools say in the same way: versions, an input's contract, a table's rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

Shape = tuple[int | None, ...]  # None: dynamic
Entries = tuple[tuple[str, str], ...]
Entry = TypeVar("Entry")


@dataclass(frozen=True, slots=True)
class Listing(Generic[Entry]):
    """The rows of one table in the tool's order, and how many of its rows could not be read."""

    rows: tuple[Entry, ...]
    unread: int = 0


@dataclass(frozen=True, slots=True)
class ToolVersions:
    """Versions as printed; `tool` is that of the program itself, `builder` of the one that built the model."""

    tool: str | None = None
    builder: str | None = None
    hbdk: str | None = None
    hmct: str | None = None
    ucp: str | None = None
    hbrt: str | None = None


@dataclass(frozen=True, slots=True)
class InputContract:
    """What a model wants at one input and what it does with it by itself. Of mean, scale and std an empty tuple means
    that the tool said there is none."""

    name: str
    type_rt: str | None = None
    type_train: str | None = None
    layout_rt: str | None = None
    layout_train: str | None = None
    shape: tuple[int, ...] | None = None
    batch: int | None = None
    separate_batch: bool | None = None
    space_and_range: str | None = None
    mean: tuple[float, ...] | None = None
    scale: tuple[float, ...] | None = None
    std: tuple[float, ...] | None = None
    norm: str | None = None
    source: str | None = None
