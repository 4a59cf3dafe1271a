"""A message: a stable code and its parameters, without prose."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Union

#: A parameter that is a message itself, such as the reason of something, is said in the language of the whole.
Param = Union[str, int, float, tuple[str, ...], "Message"]


@dataclass(frozen=True, slots=True)
class Message:
    """One thing to say; `text` of the catalogue turns it into a sentence of the reader's language."""

    code: str
    params: tuple[tuple[str, Param], ...] = ()

    def get(self, name: str) -> Param | None:
        """The value of one parameter, or None."""
        return dict(self.params).get(name)


def message(code: str, /, **params: Param) -> Message:
    """Build a message; the parameters are kept in alphabetical order, so equal messages are equal."""
    return Message(code, tuple(sorted(params.items())))
