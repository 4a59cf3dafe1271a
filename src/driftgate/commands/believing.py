"""Facts that come from files: well formed they may still make no sense, which is told and is no accident of ours."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from driftgate.errors import StorageError
from driftgate.messages.message import message

#: What facts raise that contradict themselves: a sample without a digest, a task that nobody knows, a step of nothing.
NONSENSE = (ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError, TypeError, ValueError)


@contextmanager
def of_file(path: Path) -> Iterator[None]:
    """Within, facts of a file are judged and shown; where that cannot be done, StorageError names the file."""
    try:
        yield
    except NONSENSE as error:
        reason = f"{type(error).__name__}: {error}"
        raise StorageError(message("results-senseless", path=str(path), reason=reason)) from error
