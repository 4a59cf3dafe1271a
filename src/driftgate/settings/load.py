"""Reading driftgate.yaml: parse, validate, look for the files; every problem at once, each with its line."""

from __future__ import annotations

import copy
import datetime
import difflib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

from driftgate.backends.registry import backend_names
from driftgate.domain.chain import CHAINS, Chain
from driftgate.domain.judgement import LimitOrigin, Policy
from driftgate.errors import ConfigError
from driftgate.judgement.codes import CODES
from driftgate.judgement.waivers import NEVER
from driftgate.masking.aliases import Aliases
from driftgate.messages.message import Message, message
from driftgate.messages.text import text
from driftgate.settings.artifacts import OURS, TARGET
from driftgate.settings.boards import BoardSettings
from driftgate.settings.ceilings import loosened
from driftgate.settings.chains import ChainSettings
from driftgate.settings.policies import PolicySettings, as_limits, resolved
from driftgate.settings.section import Section
from driftgate.settings.subjects import Defaults, SubjectSettings
from driftgate.settings.waivers import WaiverSettings
from driftgate.settings.yaml_lines import Lines, Place, read_yaml

SHOWN = 60  # characters of a wrong value
SECRET = "password"  # noqa: S105 - a key whose value is never shown, also where it is wrong
#: Keys of boards that hold addresses.
ADDRESSES = frozenset({"host", "hosts", "jump", "proxy-command", "power-cycle"})

#: A validator's type of error → (code of what was wanted, the parameter of the error that says more).
WANTED: Mapping[str, tuple[str, str]] = {
    "bool_type": ("wanted-truth", ""),
    "dict_type": ("wanted-mapping", ""),
    "enum": ("wanted-one-of", "expected"),
    "finite_number": ("wanted-number", ""),
    "float_parsing": ("wanted-number", ""),
    "float_type": ("wanted-number", ""),
    "greater_than": ("wanted-above", "gt"),
    "greater_than_equal": ("wanted-least", "ge"),
    "int_from_float": ("wanted-integer", ""),
    "int_parsing": ("wanted-integer", ""),
    "int_type": ("wanted-integer", ""),
    "literal_error": ("wanted-one-of", "expected"),
    "model_type": ("wanted-mapping", ""),
    "path_type": ("wanted-path", ""),
    "string_pattern_mismatch": ("wanted-pattern", "pattern"),
    "string_too_short": ("wanted-filled", ""),
    "string_type": ("wanted-text", ""),
    "too_short": ("wanted-entries", "min_length"),
    "tuple_type": ("wanted-list", ""),
}
_QUOTED = re.compile("'([^']+)'")
_NAME_OF_KEY = "[key]"  # what a validator calls a mapping's key that is wrong itself


class Settings(Section):
    """driftgate.yaml, version 1."""

    version: Literal[1]
    defaults: Defaults = Field(default_factory=Defaults)
    boards: dict[str, BoardSettings] = Field(default_factory=dict)
    chains: dict[str, ChainSettings] = Field(default_factory=dict)
    subjects: dict[str, SubjectSettings] = Field(min_length=1)
    policies: dict[str, PolicySettings] = Field(default_factory=dict)
    waivers: tuple[WaiverSettings, ...] = ()


@dataclass(frozen=True, slots=True)
class Config:
    """Validated settings, the folder that their paths start from, and the line of each place."""

    settings: Settings
    root: Path
    lines: Lines

    def chain(self, subject: str) -> Chain:
        """The chain of a subject."""
        name = self.settings.subjects[subject].chain or self.settings.defaults.chain
        return self.chains[name]

    @property
    def chains(self) -> Mapping[str, Chain]:
        """All chains, the user's own among them."""
        return {**CHAINS, **{name: chain.chain(name) for name, chain in self.settings.chains.items()}}

    def hidden(self, environment: Mapping[str, str]) -> Aliases:
        """What the configuration has of addresses and passwords, itself or by variables of the environment."""
        aliases = Aliases()
        for name, board in self.settings.boards.items():
            board.hide(aliases, name, environment)
        return aliases

    def policy(self, name: str | None, subject: str, chain: Chain | None = None) -> Policy:
        """A policy for one subject; the defaults when no name is given. `chain` is the subject's where these settings
        do not know it. Raises ConfigError."""
        told = self.settings.subjects.get(subject)
        tuned, speed = (False, ()) if told is None else (told.calibration_tuned, told.speed.declared)
        own = tuple(one.waiver for one in self.settings.waivers if one.subject == subject)
        today = datetime.datetime.now(datetime.timezone.utc).date().isoformat() if own else ""
        tightened = () if told is None else as_limits(told.limits, LimitOrigin.CONFIG)
        if name is None:
            return Policy(calibration_tuned=tuned, declared_speed=speed, tightened=tightened, waivers=own, today=today)
        if name not in self.settings.policies:
            known = tuple(self.settings.policies) or ("-",)
            raise ConfigError(message("policy-unknown", name=name, known=known))
        slugs = tuple(check.slug for check in (chain or self.chain(subject)).checks)
        made = resolved(name, self.settings.policies, slugs)
        return replace(
            made, calibration_tuned=tuned, declared_speed=speed, tightened=tightened, waivers=own, today=today
        )


def load(path: Path, *, for_samples: bool = False, for_policy: bool = False) -> Config:
    """Read and validate a configuration. Raises ConfigError with all problems found.

    `for_samples`: of the files that it names, only the samples need to be there, not yet their manifest. `for_policy`:
    none of them needs to be there.
    """
    raw, lines = read_yaml(path)
    if not isinstance(raw, dict):
        raise ConfigError(message("config-not-mapping", path=str(path)))
    try:
        settings = Settings.model_validate(raw)
    except ValidationError as error:
        found = error.errors(include_url=False)
        rest = _without(raw, found)
        absent = (
            ()
            if rest is None or for_policy
            else _files(Config(rest, path.resolve().parent, lines), for_samples=for_samples)
        )
        raise ConfigError(*_by_line([*_problems(found, raw, lines), *absent])) from error
    config = Config(settings, path.resolve().parent, lines)
    files = () if for_policy else (*_files(config, for_samples=for_samples), *_sources(config))
    problems = [*_names(config), *files]
    if problems:
        raise ConfigError(*_by_line(problems))
    return config


def config_schema() -> Mapping[str, Any]:
    """The JSON Schema of driftgate.yaml, version 1."""
    schema = Settings.model_json_schema(by_alias=True)
    definitions = schema["$defs"]
    for section, key in (("SubjectSettings", "artifacts"), ("SubjectSettings", "outputs")):
        values = definitions[section]["properties"][key]["additionalProperties"]
        shorthand = (
            [{"type": "string"}]
            if key == "artifacts"
            else [
                {"type": "string"},
                {"type": "array", "items": {"type": "string"}},
            ]
        )
        alternatives = values.pop("oneOf", None) or values.pop("anyOf", None) or []
        values.clear()
        values["anyOf"] = [*shorthand, *alternatives]
    definitions["SubjectSettings"]["properties"]["artifacts"]["properties"] = {
        "build": {"$ref": "#/$defs/BuildSettings"}
    }
    for section, key in (("ScoreSettings", "labels"), ("ScoreSettings", "postprocess")):
        whole = definitions[section]["properties"][key]
        told = {name: whole.pop(name) for name in ("description", "default", "title") if name in whole}
        definitions[section]["properties"][key] = {"anyOf": [{"type": "string"}, whole], **told}
    definitions["OtherArtifact"]["properties"]["backend"]["not"] = {"enum": [*OURS]}
    limits = definitions["PolicySettings"]["properties"].pop("limits")
    definitions["PolicySettings"]["additionalProperties"] = limits["additionalProperties"]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "title": "driftgate.yaml",
        "description": "What driftgate checks, version 1.",
    }


def _by_line(problems: Sequence[Message]) -> list[Message]:
    """In the order of the file, each once."""
    return sorted(dict.fromkeys(problems), key=lambda problem: int(str(problem.get("line") or 0)))


def _problems(errors: Sequence[Mapping[str, Any]], raw: object, lines: Lines) -> Iterator[Message]:
    """A validator's complaints as messages."""
    values: list[Mapping[str, Any]] = []
    for error in errors:
        place = _inside(_place(error), raw)
        if error["type"] == "missing":
            path, line, where = str(lines.path), lines.of(place), _readable(place, lines)
            yield message("config-missing-key", path=path, line=line, where=where, key=str(error["loc"][-1]))
        elif error["type"] == "extra_forbidden":
            yield _unknown_key(str(place[-1]), place, lines, _known_keys())
        elif error["loc"][-1] == _NAME_OF_KEY:
            yield _unknown_key(str(error["input"]), place, lines, _QUOTED.findall(error["msg"]))
        else:
            values.append(error)
    yield from _wrong_values(values, raw, lines)


def _wrong_values(errors: Sequence[Mapping[str, Any]], raw: object, lines: Lines) -> Iterator[Message]:
    """What was found and what was wanted; where any of several things would do, they are one message."""
    wanted: dict[tuple[int, str, str], list[Message]] = {}
    path = str(lines.path)
    for error in errors:
        place = _inside(_place(error), raw)
        line, where = lines.of(place), _readable(place, lines)
        found = (
            "***"
            if _is_hidden(place, error["input"])
            else json.dumps(error["input"], ensure_ascii=False, default=str)[:SHOWN]
        )
        code, parameter = WANTED.get(error["type"], ("", ""))
        if code:
            said = message(code, **({"value": str(error["ctx"][parameter])} if parameter else {}))
            wanted.setdefault((line, where, found), []).append(said)
        else:
            reason = str(error["msg"]).removeprefix("Value error, ")
            yield message("config-refused-value", path=path, line=line, where=where, found=found, reason=reason)
    for (line, where, found), alternatives in wanted.items():
        choice = ", or ".join(text(said) for said in dict.fromkeys(alternatives))
        yield message("config-wrong-value", path=path, line=line, where=where, found=found, wanted=choice)


def _is_hidden(place: Place, value: object) -> bool:
    """Whether a wrong value may hold an address or a password: those of boards, but for their numbers and words."""
    if SECRET in place:
        return True
    return place[:1] == ("boards",) and (not ADDRESSES.isdisjoint(place) or not isinstance(value, (int, float, str)))


def _unknown_key(key: str, place: Place, lines: Lines, known: Sequence[str]) -> Message:
    path, line, where = str(lines.path), lines.of(place), _readable(place[:-1], lines)
    near = difflib.get_close_matches(key, known, n=1)
    if near:
        return message("config-unknown-key-near", path=path, line=line, where=where, key=key, near=near[0])
    return message("config-unknown-key", path=path, line=line, where=where, key=key)


def _place(error: Mapping[str, Any]) -> Place:
    return tuple(part for part in error["loc"] if isinstance(part, (str, int)))


def _inside(place: Place, raw: object) -> Place:
    """The parts of a place that the file really has; a validator's names of alternatives are left out."""
    parts: list[str | int] = []
    value = raw
    for part in place:
        inside = dict(enumerate(value)) if isinstance(value, list) else value
        if isinstance(inside, dict) and part in inside:
            value = inside[part]
            parts.append(part)
    return tuple(parts)


def _readable(place: Place, lines: Lines) -> str:
    """A place as people write it; the file's name for the whole."""
    return ".".join(str(part) for part in place) or lines.path.name


def _without(raw: object, errors: Sequence[Mapping[str, Any]]) -> Settings | None:
    """The settings without what is wrong in them, to look for further problems; None where that leaves none."""
    rest = copy.deepcopy(raw)
    for error in errors:
        *around, last = _inside(_place(error), raw) or ("",)
        value: Any = rest
        for part in around:
            inside = dict(enumerate(value)) if isinstance(value, list) else value
            value = inside.get(part) if isinstance(inside, dict) else None
        if isinstance(value, dict):
            value.pop(last, None)
    try:
        return Settings.model_validate(rest)
    except ValidationError:
        return None


def _known_keys() -> Sequence[str]:
    keys: list[str] = []
    pending: list[Any] = [Settings.model_json_schema(by_alias=True)]
    while pending:
        value = pending.pop()
        if isinstance(value, dict):
            keys.extend(value.get("properties", {}))
            pending.extend(value.values())
        elif isinstance(value, list):
            pending.extend(value)
    return keys


def _names(config: Config) -> Iterator[Message]:
    """Names that point nowhere: chains, stages, checks, links, policies."""
    settings, lines = config.settings, config.lines
    chains = config.chains

    def unknown(place: Place, kind: str, name: str, known: Sequence[str]) -> Message:
        return message(
            "config-unknown-name",
            path=str(lines.path),
            line=lines.of(place),
            kind=kind,
            name=name,
            known=tuple(known),
        )

    if settings.defaults.chain not in chains:
        yield unknown(("defaults", "chain"), "chain", settings.defaults.chain, tuple(chains))
        return
    board = settings.defaults.board
    if board is not None and TARGET not in board and board not in settings.boards:
        yield unknown(("defaults", "board"), "board", board, tuple(settings.boards) or ("-",))
    for name, subject in settings.subjects.items():
        if subject.chain is not None and subject.chain not in chains:
            yield unknown(("subjects", name, "chain"), "chain", subject.chain, tuple(chains))
            continue
        stages = [stage.name for stage in config.chain(name).stages]
        for output, said in subject.outputs.items():
            for stage in said.permute if said is not None else ():
                if stage not in stages:
                    yield unknown(("subjects", name, "outputs", output, "permute", stage), "stage", stage, stages)
        for stage, artifact in subject.artifacts.items():
            place = ("subjects", name, "artifacts", stage)
            if stage not in stages:
                yield unknown(place, "stage", stage, stages)
            if artifact.backend not in backend_names():
                yield unknown(place, "backend", artifact.backend, backend_names())
            board = getattr(artifact, "board", None)
            if board is not None and TARGET not in board and board not in settings.boards:
                yield unknown((*place, "board"), "board", board, tuple(settings.boards) or ("-",))
    used = {subject.chain or settings.defaults.chain for subject in settings.subjects.values()}
    places = {check.slug for chain in used if chain in chains for check in chains[chain].checks}
    orders = [[stage.name for stage in chains[chain].stages] for chain in used if chain in chains]
    for number, waiver in enumerate(settings.waivers):
        at: Place = ("waivers", number)
        if waiver.subject not in settings.subjects:
            yield unknown((*at, "subject"), "subject", waiver.subject, tuple(settings.subjects))
        if waiver.check is not None and waiver.check not in places:
            yield unknown((*at, "check"), "check", waiver.check, sorted(places))
        if waiver.link is not None and not any(_is_link(waiver.link, order) for order in orders):
            yield unknown((*at, "link"), "link", waiver.link, ("stage..stage",))
        if waiver.finding is not None and waiver.finding not in CODES:
            yield unknown((*at, "finding"), "finding", waiver.finding, sorted(CODES))
        if waiver.finding in NEVER:
            line = lines.of((*at, "finding"))
            yield message("config-never-waived", path=str(lines.path), line=line, code=waiver.finding)
    for name, subject in settings.subjects.items():
        for key in subject.limits:
            if key not in places and not any(_is_link(key, order) for order in orders):
                yield unknown(("subjects", name, "limits", key), "check or link", key, sorted(places))
    for one in loosened(settings.subjects, settings.policies):
        yield message(
            "config-loosened",
            path=str(lines.path),
            line=lines.of(("subjects", one.subject, "limits", one.place, one.criterion)),
            where=f"subjects.{one.subject}.limits.{one.place}.{one.criterion}",
            found=f"{one.value:g}",
            policy=one.policy,
            ceiling=f"{one.ceiling:g}",
        )
    for name, policy in settings.policies.items():
        for key in policy.limits:
            if key not in places and not any(_is_link(key, order) for order in orders):
                yield unknown(("policies", name, key), "check or link", key, sorted(places))
        for slug in policy.require or () if policy.require != "all" else ():
            if slug not in places:
                yield unknown(("policies", name, "require"), "check", slug, sorted(places))
        try:
            resolved(name, settings.policies, ())
        except ValueError as error:
            line = lines.of(("policies", name, "extends"))
            yield message("config-extends", path=str(lines.path), line=line, name=name, route=str(error))


def _is_link(key: str, order: Sequence[str]) -> bool:
    """Whether a key is `stage..stage`, a later stage of the chain held against an earlier one."""
    reference, _, candidate = key.partition("..")
    return reference in order and candidate in order and order.index(reference) < order.index(candidate)


def _files(config: Config, *, for_samples: bool) -> Iterator[Message]:
    """Files and folders that are not there."""
    for name, subject in config.settings.subjects.items():
        at: Place = ("subjects", name)
        for key, source in subject.samples.sources.items():
            yield from _absent(config, (*at, "samples"), key, source)
        if for_samples:
            continue
        for stage, artifact in subject.artifacts.items():
            for key in artifact.files:
                for target in subject.platforms(config.settings.defaults.platform):
                    value = getattr(artifact.on(target), key, None)
                    yield from _absent(config, (*at, "artifacts", stage), key, value)
        yield from _absent(config, (*at, "samples"), "manifest", subject.samples.manifest)
        if subject.score is not None:
            yield from _absent(config, (*at, "score"), "labels", subject.score.labels.path)
        yield from _absent(config, at, "custom_ops", subject.custom_ops)


def _sources(config: Config) -> Iterator[Message]:
    """Subjects without samples."""
    for name, subject in config.settings.subjects.items():
        at: Place = ("subjects", name)
        samples = subject.samples
        if samples.manifest is None and samples.raw is None and not (samples.declared and samples.runtime):
            line = config.lines.of((*at, "samples"))
            yield message("config-no-samples", path=str(config.lines.path), line=line, where=f"subjects.{name}.samples")


def _absent(config: Config, place: Place, key: str, value: Path | Sequence[Path] | None) -> Iterator[Message]:
    paths = () if value is None else (value,) if isinstance(value, Path) else tuple(value)
    key = key.replace("_", "-")
    for path in paths:
        if not (config.root / path).exists():
            yield message(
                "config-file-absent",
                path=str(config.lines.path),
                line=config.lines.of((*place, key)),
                where=".".join(str(part) for part in (*place, key)),
                file=str(path),
                root=str(config.root),
            )
