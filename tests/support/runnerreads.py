"""What GitHub's runner makes of a step's output and of the file GITHUB_OUTPUT, by the rules of its source."""

from __future__ import annotations

import re
from dataclasses import dataclass

REGISTERED = frozenset(
    {
        *("error", "warning", "notice", "debug", "group", "endgroup", "echo", "add-mask", "add-matcher"),
        *("remove-matcher", "stop-commands", "set-output", "save-state", "set-env", "add-path", "command"),
    }
)


@dataclass(frozen=True, slots=True)
class Command:
    """One command that the runner would obey."""

    name: str
    properties: tuple[tuple[str, str], ...]
    data: str


def commands_in(output: str) -> list[Command]:
    """Every command in what a process printed: `::name …::` where a line begins, `##[name …]` anywhere in it."""
    found = (_second_form(line) or _first_form(line) for line in re.split(r"\r\n|\r|\n", output))
    return [command for command in found if command is not None]


def outputs_in(file: str) -> dict[str, str]:
    """The outputs in GITHUB_OUTPUT. Raises ValueError where the runner would."""
    found: dict[str, str] = {}
    lines = file.split("\n")
    while lines:
        line = lines.pop(0)
        if not line:
            continue
        equals, heredoc = line.find("="), line.find("<<")
        if equals >= 0 and (heredoc < 0 or equals < heredoc):
            name, _, value = line.partition("=")
        elif heredoc >= 0:
            name, _, delimiter = line.partition("<<")
            end = lines.index(delimiter)
            value = "\n".join(lines[:end])
            del lines[: end + 1]
        else:
            raise ValueError(line)
        found[name] = value
    return found


def _second_form(line: str) -> Command | None:
    line = line.lstrip()
    end = line.find("::", 2)
    if not line.startswith("::") or end < 0:
        return None
    name, _, rest = line[2:end].partition(" ")
    return _command(name, rest.strip(), line[end + 2 :], ",")


def _first_form(line: str) -> Command | None:
    start = line.find("##[")
    end = line.find("]", start)
    if start < 0 or end < 0:
        return None
    name, _, rest = line[start + 3 : end].partition(" ")
    return _command(name, rest, line[end + 1 :], ";")


def _command(name: str, properties: str, data: str, between: str) -> Command | None:
    if name not in REGISTERED:
        return None
    pairs = (part.partition("=") for part in properties.split(between) if part)
    return Command(name, tuple((key, _unescaped(value)) for key, _, value in pairs if value), _unescaped(data))


def _unescaped(text: str) -> str:
    for written, meant in (("%0D", "\r"), ("%0A", "\n"), ("%3A", ":"), ("%2C", ","), ("%25", "%")):
        text = text.replace(written, meant)
    return text
