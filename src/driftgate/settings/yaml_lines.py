"""YAML with the line of every key, so that a problem can be shown where it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import yaml
from yaml.reader import ReaderError

from driftgate.errors import ConfigError
from driftgate.messages.message import Message, message

Place = tuple[str | int, ...]
PLACES_MOST = 100_000  # aliases within aliases can make a small file a huge one


@dataclass(slots=True)
class Lines:
    """The line of every place in one file."""

    path: Path
    known: dict[Place, int] = field(default_factory=dict)

    def of(self, place: Sequence[object]) -> int:
        """The line of a place, or of the nearest place around it that the file has; 1 at the least.

        Parts of a place that the file does not have (names of alternatives in a validator's report) are
        passed over.
        """
        reached: Place = ()
        for part in place:
            longer = (*reached, part) if isinstance(part, (str, int)) else reached
            reached = longer if longer in self.known else reached
        return self.known.get(reached, 1)


def read_yaml(path: Path) -> tuple[object, Lines]:
    """A YAML file's values and lines.

    Raises ConfigError: unreadable, no YAML, a key that stands twice, or aliases without an end.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(message("config-absent", path=str(path), reason=error.strerror or "")) from error
    except UnicodeDecodeError as error:
        raise ConfigError(message("config-encoding", path=str(path), reason=str(error))) from error
    lines = Lines(path)
    twice: list[Message] = []
    try:
        loader = yaml.SafeLoader(text)
        node = loader.get_single_node()
        value = None if node is None else _value(loader, node, (), lines, twice)
    except ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise ConfigError(message("config-no-yaml", path=str(path), line=line, reason=str(error.reason))) from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 1 if mark is not None else 1
        reason = str(getattr(error, "problem", None) or error)
        raise ConfigError(message("config-no-yaml", path=str(path), line=line, reason=reason)) from error
    except RecursionError as error:
        raise ConfigError(message("config-nested", path=str(path))) from error
    if twice:
        raise ConfigError(*twice)
    return value, lines


def _value(loader: yaml.SafeLoader, node: yaml.Node, place: Place, lines: Lines, twice: list[Message]) -> object:
    lines.known.setdefault(place, node.start_mark.line + 1)
    if len(lines.known) > PLACES_MOST:
        raise RecursionError
    if isinstance(node, yaml.MappingNode):
        own = [key_node for key_node, _ in node.value]
        loader.flatten_mapping(node)  # puts what `<<` merges before the mapping's own keys, which may override it
        mapping: dict[object, object] = {}
        seen: set[object] = set()
        for key_node, value_node in node.value:
            key = loader.construct_object(key_node, deep=True)
            name = key if isinstance(key, (str, int)) else str(key)
            below: Place = (*place, name)
            line = key_node.start_mark.line + 1
            if name in seen:
                twice.append(message("config-key-twice", path=str(lines.path), line=line, key=str(name)))
            if key_node in own:
                seen.add(name)
            lines.known[below] = line
            mapping[name] = _value(loader, value_node, below, lines, twice)
        return mapping
    if isinstance(node, yaml.SequenceNode):
        return [_value(loader, item, (*place, n), lines, twice) for n, item in enumerate(node.value)]
    value: object = loader.construct_object(node, deep=True)
    return value
