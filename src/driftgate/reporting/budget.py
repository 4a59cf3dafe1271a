"""Pages that must fit into their place: ever shorter versions, of which the first that fits is taken."""

from __future__ import annotations

from collections.abc import Callable, Iterable


def fitting(versions: Iterable[Iterable[str]], size: Callable[[str], int], limit: int) -> str | None:
    """The first version, given in parts, whose sizes sum to at most `limit`; None where not even the last one fits.

    Of a version that is too long no more is made than shows it, and of those after the one taken nothing.
    """
    return next((text for parts in versions if (text := _within(parts, size, limit)) is not None), None)


def utf8_bytes(text: str) -> int:
    """The length of a file."""
    return len(text.encode("utf-8", "replace"))


def characters(text: str) -> int:
    """The length by the larger of two counts, code points and UTF-16 units: services do not say which one is theirs."""
    return max(len(text), len(text.encode("utf-16-le", "surrogatepass")) // 2)


def _within(parts: Iterable[str], size: Callable[[str], int], limit: int) -> str | None:
    kept: list[str] = []
    for part in parts:
        kept.append(part)
        limit -= size(part)
        if limit < 0:
            return None
    return "".join(kept)
