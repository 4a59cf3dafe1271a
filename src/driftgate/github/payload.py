"""Values out of JSON that came from elsewhere: whatever is not of the wanted type counts as absent."""

from __future__ import annotations

from collections.abc import Mapping


def at(value: object, *path: str) -> object:
    """What stands at a path of keys; None where there is nothing."""
    for key in path:
        if not isinstance(value, Mapping):
            return None
        value = value.get(key)
    return value


def text_at(value: object, *path: str) -> str:
    """The string at a path; empty where there is none."""
    found = at(value, *path)
    return found if isinstance(found, str) else ""


def number_at(value: object, *path: str) -> int | None:
    """The integer at a path; None where there is none."""
    found = at(value, *path)
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def items_at(value: object, *path: str) -> tuple[object, ...]:
    """The list at a path; empty where there is none."""
    found = at(value, *path)
    return tuple(found) if isinstance(found, list) else ()
