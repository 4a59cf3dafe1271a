"""Foreign text in GitHub's workflow commands and output files."""

from __future__ import annotations

import re
from uuid import uuid4

from driftgate.errors import StorageError
from driftgate.escaping.characters import visible
from driftgate.messages.message import message

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*\Z")
_DATA = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
_PROPERTY = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A", ":": "%3A", ",": "%2C"})


def data(text: str) -> str:
    """The message of a command."""
    return text.translate(_DATA)


def property_value(text: str) -> str:
    """The value of a command's property."""
    return text.translate(_PROPERTY)


def error(text: str, *, title: str | None = None, file: str | None = None, line: int | None = None) -> str:
    """The line that annotates the run with an error; `file` is relative to the repository."""
    given = {"file": file, "line": line, "title": title}
    properties = ",".join(f"{key}={property_value(str(value))}" for key, value in given.items() if value is not None)
    return f"::error {properties}::{data(visible(text))}" if properties else f"::error::{data(visible(text))}"


def stop(token: str) -> str:
    """The line after which the runner takes no commands, so that foreign output may follow; see `resume`.

    `token` must be one that the output cannot know, such as a fresh UUID.
    """
    return f"::stop-commands::{token}"


def resume(token: str) -> str:
    """The line that ends `stop`; it must start a line of its own."""
    return f"::{token}::"


def output(name: str, value: str, delimiter: str | None = None) -> str:
    """One entry for the file GITHUB_OUTPUT; a value of several lines cannot become a second output.

    The delimiter is random unless given. Raises StorageError for a name that is none, and for a value that
    contains the delimiter.
    """
    delimiter = delimiter or f"driftgate_{uuid4().hex}"
    if not _NAME.match(name):
        raise StorageError(message("output-name", name=name))
    if delimiter in value:
        raise StorageError(message("output-delimiter", name=name))
    return f"{name}<<{delimiter}\n{value}\n{delimiter}\n"
