"""Pages that must not be longer than their place takes: ever shorter versions, of which the first that fits is taken."""

from __future__ import annotations

from collections.abc import Callable, Iterable


def fitting(versions: Iterable[str], size: Callable[[str], int], limit: int) -> str | None:
    """The first version of at most `limit`; None where not even the last one fits. Later ones are not made."""
    return next((version for version in versions if size(version) <= limit), None)


def utf8_bytes(text: str) -> int:
    """The length of a file."""
    return len(text.encode("utf-8", "replace"))


def characters(text: str) -> int:
    """The length by the larger of two counts, code points and UTF-16 units: services do not say which one is theirs."""
    return max(len(text), len(text.encode("utf-16-le", "surrogatepass")) // 2)
