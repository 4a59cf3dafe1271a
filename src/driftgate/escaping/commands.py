"""Foreign text in GitHub's workflow commands and output files."""

from __future__ import annotations

import re
from uuid import uuid4

from driftgate.errors import StorageError
from driftgate.escaping.characters import one_line, visible
from driftgate.messages.message import message

LEVELS = ("error", "warning", "notice")

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*\Z")
_DATA = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
_PROPERTY = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A", ":": "%3A", ",": "%2C"})

#: What the runner takes for a command: `::` where a line's text begins, `##[` anywhere in it.
_BEGINNING = re.compile(r"(^|\s)::", re.MULTILINE)
_ANYWHERE = re.compile(r"##(?=\[)")


def data(text: str) -> str:
    """The message of a command."""
    return text.translate(_DATA)


def property_value(text: str) -> str:
    """The value of a command's property."""
    return text.translate(_PROPERTY)


def annotation(
    level: str, text: str, *, title: str | None = None, file: str | None = None, line: int | None = None
) -> str:
    """The line that annotates the run; `level` is one of `LEVELS`, any other counts as an error.

    `file` is relative to the repository.
    """
    command = level if level in LEVELS else "error"
    given = {"file": file, "line": line, "title": title}
    properties = ",".join(
        f"{key}={property_value(one_line(str(value)))}" for key, value in given.items() if value is not None
    )
    return f"::{command} {properties}::{data(visible(text))}" if properties else f"::{command}::{data(visible(text))}"


def error(text: str, *, title: str | None = None, file: str | None = None, line: int | None = None) -> str:
    """The line that annotates the run with an error."""
    return annotation("error", text, title=title, file=file, line=line)


def warning(text: str, *, title: str | None = None, file: str | None = None, line: int | None = None) -> str:
    """The line that annotates the run with a warning."""
    return annotation("warning", text, title=title, file=file, line=line)


def notice(text: str, *, title: str | None = None, file: str | None = None, line: int | None = None) -> str:
    """The line that annotates the run with a notice."""
    return annotation("notice", text, title=title, file=file, line=line)


def disarmed(text: str) -> str:
    """Text for a log that a runner reads: what would be a command is kept apart by a space."""
    return _ANYWHERE.sub("## ", _BEGINNING.sub(r"\1: :", text))


def disarmed_json(document: str) -> str:
    """A JSON document for a log that a runner reads; what it says stays the same."""
    return _ANYWHERE.sub("#\\\\u0023", document)


def stop(token: str) -> str:
    """The line after which the runner takes no commands, so that foreign output may follow; see `resume`.

    `token` must be one that the output cannot know, such as a fresh UUID.
    """
    return f"::stop-commands::{token}"


def resume(token: str) -> str:
    """The line that ends `stop`; it must start a line of its own."""
    return f"::{token}::"


def mask(secret: str) -> str:
    """The line after which the runner shows `***` wherever the secret stands in a log."""
    return f"::add-mask::{data(secret)}"


def output(name: str, value: str, delimiter: str | None = None) -> str:
    """One entry for the file GITHUB_OUTPUT; a value of several lines cannot become a second output.

    The delimiter is random unless given; half a character, which no file can hold, is written as `\\ud800`.
    Raises StorageError for a name that is none, and for a value that contains the delimiter.
    """
    delimiter = delimiter or f"driftgate_{uuid4().hex}"
    if not _NAME.match(name):
        raise StorageError(message("output-name", name=name))
    if delimiter in value:
        raise StorageError(message("output-delimiter", name=name))
    written = value.encode("utf-8", "backslashreplace").decode("utf-8")
    return f"{name}<<{delimiter}\n{written}\n{delimiter}\n"
