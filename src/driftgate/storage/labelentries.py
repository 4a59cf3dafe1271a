"""What a reader of labels brings: entries as they stand in the file, and what is wrong with them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from driftgate.messages.message import Message

Label = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Entries:
    """Ids with their labels in the file's order, ids twice where they stand so; `broken` are ids whose entry could
    not be read, of which a problem tells."""

    labels: tuple[tuple[str, Label], ...]
    problems: tuple[Message, ...] = ()
    broken: frozenset[str] = frozenset()
