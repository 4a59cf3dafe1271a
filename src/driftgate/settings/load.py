"""Reading driftgate.yaml: parse, validate, look for the files; every problem at once, each with its line."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

from driftgate.backends.registry import backend_names
from driftgate.domain.chain import CHAINS, Chain
from driftgate.domain.judgement import Policy
from driftgate.errors import ConfigError
from driftgate.messages.message import Message, message
from driftgate.settings.chains import ChainSettings
from driftgate.settings.policies import PolicySettings, resolved
from driftgate.settings.section import Section
from driftgate.settings.subjects import Defaults, SubjectSettings
from driftgate.settings.yaml_lines import Lines, Place, read_yaml

SHOWN = 60  # characters of a wrong value


class Settings(Section):
    """driftgate.yaml, version 1."""

    version: Literal[1]
    defaults: Defaults = Field(default_factory=Defaults)
    chains: dict[str, ChainSettings] = Field(default_factory=dict)
    subjects: dict[str, SubjectSettings] = Field(min_length=1)
    policies: dict[str, PolicySettings] = Field(default_factory=dict)


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

    def policy(self, name: str | None, subject: str) -> Policy:
        """A policy for one subject; the defaults when no name is given. Raises ConfigError."""
        if name is None:
            return Policy()
        if name not in self.settings.policies:
            known = tuple(self.settings.policies) or ("-",)
            raise ConfigError(message("policy-unknown", name=name, known=known))
        slugs = tuple(check.slug for check in self.chain(subject).checks)
        return resolved(name, self.settings.policies, slugs)


def load(path: Path) -> Config:
    """Read and validate a configuration. Raises ConfigError with all problems found."""
    raw, lines = read_yaml(path)
    if not isinstance(raw, dict):
        raise ConfigError(message("config-not-mapping", path=str(path)))
    try:
        settings = Settings.model_validate(raw)
    except ValidationError as error:
        raise ConfigError(*(_problem(item, raw, lines) for item in error.errors(include_url=False))) from error
    config = Config(settings, path.resolve().parent, lines)
    problems = [*_names(config), *_files(config)]
    if problems:
        raise ConfigError(*problems)
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
    limits = definitions["PolicySettings"]["properties"].pop("limits")
    definitions["PolicySettings"]["additionalProperties"] = limits["additionalProperties"]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "title": "driftgate.yaml",
        "description": "What driftgate checks, version 1.",
    }


def _problem(error: Mapping[str, Any], raw: object, lines: Lines) -> Message:
    """A validator's complaint as a message: unknown keys with a near name, the rest with what was found."""
    place: Place = tuple(part for part in error["loc"] if isinstance(part, (str, int)))
    where = _readable(place, raw)
    common: dict[str, str | int] = {"path": str(lines.path), "line": lines.of(place), "where": where}
    if error["type"] == "extra_forbidden":
        key = str(place[-1])
        near = difflib.get_close_matches(key, _known_keys(), n=1)
        if near:
            return message("config-unknown-key-near", key=key, near=near[0], **common)
        return message("config-unknown-key", key=key, **common)
    if error["type"] == "missing":
        return message("config-missing-key", key=str(place[-1]), **common)
    found = repr(error["input"])
    reason = str(error["msg"]).removeprefix("Value error, ")
    return message("config-wrong-value", found=found[:SHOWN], reason=reason, **common)


def _readable(place: Place, raw: object) -> str:
    """The part of a place that the file really has, as people write it."""
    parts: list[str] = []
    value = raw
    for part in place:
        inside = dict(enumerate(value)) if isinstance(value, list) else value
        if isinstance(inside, dict) and part in inside:
            value = inside[part]
            parts.append(str(part))
    return ".".join(parts) or "-"


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
    for name, subject in settings.subjects.items():
        if subject.chain is not None and subject.chain not in chains:
            yield unknown(("subjects", name, "chain"), "chain", subject.chain, tuple(chains))
            continue
        stages = [stage.name for stage in config.chain(name).stages]
        for stage, artifact in subject.artifacts.items():
            place = ("subjects", name, "artifacts", stage)
            if stage not in stages:
                yield unknown(place, "stage", stage, stages)
            if artifact.backend not in backend_names():
                yield unknown(place, "backend", artifact.backend, backend_names())
    used = {subject.chain or settings.defaults.chain for subject in settings.subjects.values()}
    places = {check.slug for chain in used if chain in chains for check in chains[chain].checks}
    stages_used = [stage.name for chain in used if chain in chains for stage in chains[chain].stages]
    for name, policy in settings.policies.items():
        for key in policy.limits:
            reference, dots, candidate = key.partition("..")
            if key not in places and not (dots and reference in stages_used and candidate in stages_used):
                yield unknown(("policies", name, key), "check or link", key, sorted(places))
        for slug in policy.require or () if policy.require != "all" else ():
            if slug not in places:
                yield unknown(("policies", name, "require"), "check", slug, sorted(places))
        try:
            resolved(name, settings.policies, ())
        except ValueError as error:
            yield unknown(("policies", name, "extends"), "policy", str(error), tuple(settings.policies))


def _files(config: Config) -> Iterator[Message]:
    """Files and folders that are not there."""
    for name, subject in config.settings.subjects.items():
        at: Place = ("subjects", name)
        for stage, artifact in subject.artifacts.items():
            for key in artifact.files:
                yield from _absent(config, (*at, "artifacts", stage), key, getattr(artifact, key, None))
        for key in ("manifest", "raw", "runtime"):
            yield from _absent(config, (*at, "samples"), key, getattr(subject.samples, key))
        if subject.score is not None:
            yield from _absent(config, (*at, "score"), "labels", subject.score.labels)
        yield from _absent(config, at, "custom_ops", subject.custom_ops)
        if subject.samples.manifest is None and subject.samples.raw is None:
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
