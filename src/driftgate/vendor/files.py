"""Files of the vendor's tools as text or JSON, whatever bytes they hold, and the error for one that is another."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import cast

from driftgate.errors import ArtifactError
from driftgate.messages.message import message

MOST_BYTES = 64 << 20
SHOWN = 80
#: What a Windows console writes when it redirects.
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)

_HALVES = re.compile(r"\\u[dD][89a-fA-F]")

Json = Mapping[str, object]


def read_text(path: Path) -> str:
    """The whole text; bytes that are none become replacement characters. ArtifactError: unreadable or too large."""
    try:
        with path.open("rb") as stream:
            data = stream.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise ArtifactError(message("artifact-unreadable", path=str(path), reason=reason)) from error
    if len(data) > MOST_BYTES:
        raise ArtifactError(message("vendor-too-large", path=str(path), limit=MOST_BYTES >> 20))
    return data.decode("utf-16" if data.startswith(_UTF16) else "utf-8", "replace").removeprefix("\ufeff")


def another_file(text: str, name: str, *, tool: str, wanted: Iterable[str]) -> ArtifactError:
    """The error for a text in which a reader found nothing that it knows; `wanted` are what it looked for."""
    lines = (line.strip() for line in text.splitlines())
    found = next((line for line in lines if line), "")
    shown = found if len(found) <= SHOWN else f"{found[:SHOWN]}…"
    return ArtifactError(message("vendor-another-file", path=name, tool=tool, wanted=tuple(wanted), found=shown or "-"))


def json_value(text: str, name: str, *, tool: str) -> object:
    """Any JSON value; ArtifactError where it is none, or nested deeper than any of these files."""
    try:
        value = json.loads(text.removeprefix("\ufeff"))
        # Halves of a surrogate pair cannot be written anywhere: they become replacement characters.
        return json.loads(_without_halves(json.dumps(value, ensure_ascii=False))) if _HALVES.search(text) else value
    except (ValueError, RecursionError) as error:
        reason = str(error) or type(error).__name__
        raise ArtifactError(message("vendor-no-json", path=name, tool=tool, reason=reason)) from error


def compact(value: object) -> str:
    """A JSON value in one line; its type where it is nested too deeply."""
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except (ValueError, RecursionError):
        return type(value).__name__


def json_object(text: str, name: str, *, tool: str, wanted: str) -> Json:
    """A JSON object; ArtifactError where it is something else, which says what was wanted."""
    value = json_value(text, name, tool=tool)
    if not isinstance(value, dict):
        raise form_error(name, tool=tool, key="-", found=value, wanted=wanted)
    return cast(Json, value)


def form_error(name: str, *, tool: str, key: str, found: object, wanted: str) -> ArtifactError:
    """The error for a JSON value of another form than the one it must have."""
    shown = compact(found)
    shown = shown if len(shown) <= SHOWN else f"{shown[:SHOWN]}…"
    return ArtifactError(message("vendor-form", path=name, tool=tool, key=key, found=shown, wanted=wanted))


def _without_halves(text: str) -> str:
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
