"""A mask: what an environment and a configuration hide, taken out of texts, facts and files."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any, BinaryIO, TypeVar, cast
from urllib.parse import unquote

from driftgate.domain.facts import Facts
from driftgate.domain.investigations import Investigation
from driftgate.masking.aliases import LONG_SECRET, Aliases
from driftgate.masking.patterns import has_token, without_patterns
from driftgate.messages.message import Param

T = TypeVar("T")
CHUNK_BYTES = 1 << 20
TOKEN_BYTES = 256  # of which the beginning of a token tells it
#: Names of variables that hold secrets.
_SECRET_NAME = re.compile(
    r"TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|API_?KEY|ACCESS_?KEY|PRIVATE_?KEY|_(?:PWD|PAT|KEY|PASS)$"
    r"|^SSHPASS$",
    re.I,
)
VERSION = "version"  # how names of values that are versions begin
_USERINFO = re.compile(r"://([^\s/@:]*):([^\s/@]+)@")


class Mask:
    """Takes secrets and addresses out of what is written down; the same text always gives the same."""

    def __init__(self, aliases: Aliases) -> None:
        self._aliases = aliases
        self._known: dict[str, str] = {}

    def text(self, text: str) -> str:
        """The text without them."""
        if text not in self._known:
            made = without_patterns(self._aliases.applied(text))
            self._known[text] = text if made == text else made
        made = self._known[text]
        return text if made == text else made  # the same object: what is not masked is not made anew

    def value(self, value: T) -> T:
        """Frozen data with every text in it masked; what has nothing to hide is handed back as it is."""
        return cast(T, self._masked(value))

    def facts(self, facts: Facts) -> Facts:
        """Facts with everything masked that a tool or a machine said; runs still name the environments that they are
        of. Names of subjects, samples and stages are the user's own and stay."""
        environments = tuple(
            replace(self.value(one), versions=tuple((name, self._aliases.applied(said)) for name, said in one.versions))
            for one in facts.environments
        )
        told = tuple(
            replace(fact, values=tuple((name, self._told(name, value)) for name, value in fact.values))
            for fact in facts.tool_facts
        )
        renamed = {old.id: new.id for old, new in zip(facts.environments, environments, strict=True)}
        runs = tuple(
            replace(
                run,
                environment=renamed.get(run.environment, run.environment),
                reason=self.value(run.reason),
                notes=self.value(run.notes),
            )
            for run in facts.runs
        )
        return replace(
            facts,
            runs=runs,
            environments=environments,
            problems=self.value(facts.problems),
            tool_facts=told,
            investigations=tuple(map(self._investigation, facts.investigations)),
        )

    def _told(self, name: str, value: Param) -> Param:
        """A version may have four numbers as an address has: of one only what is known is masked."""
        if name.startswith(VERSION) and isinstance(value, str):
            return self._aliases.applied(value)
        return self.value(value)

    def _investigation(self, found: Investigation) -> Investigation:
        return replace(found, notes=self.value(found.notes), explanations=self.value(found.explanations))

    def is_held_by(self, stream: BinaryIO) -> bool:
        """Whether a known secret, a token or a key stands in a file that cannot be rewritten; reads it through."""
        overlap, kept = b"", max(self._aliases.longest_bytes, TOKEN_BYTES)
        while chunk := stream.read(CHUNK_BYTES):
            if self._aliases.holds(overlap + chunk) or has_token(overlap + chunk):
                return True
            overlap = (overlap + chunk)[-kept:]
        return False

    def _masked(self, value: Any) -> Any:  # noqa: ANN401 - data of any form
        if isinstance(value, Enum):
            return value
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, (tuple, list)):
            made = [self._masked(item) for item in value]
            same = all(new is old for new, old in zip(made, value, strict=True))
            return value if same else type(value)(made)
        if isinstance(value, dict):
            return {self._masked(key): self._masked(item) for key, item in value.items()}
        if is_dataclass(value) and not isinstance(value, type):
            old = {field.name: getattr(value, field.name) for field in fields(value)}
            new = {name: self._masked(item) for name, item in old.items()}
            return value if all(new[name] is old[name] for name in old) else replace(value, **new)
        return value


def mask_of(environment: Mapping[str, str], aliases: Aliases | None = None) -> Mask:
    """What the environment's variables hide, beside what is known already."""
    known = Aliases() if aliases is None else aliases
    for name, value in environment.items():
        if _SECRET_NAME.search(name) and len(value.strip()) >= LONG_SECRET and not _is_place(value):
            known.add_secret(value)
        for user, password in _USERINFO.findall(value):
            for part in (password, unquote(password)):
                if len(part) >= LONG_SECRET and part != user:
                    known.add_secret(part)
    return Mask(known)


def _is_place(value: str) -> bool:
    """Whether it is the path of something rather than the thing itself."""
    try:
        return value.startswith("/") and Path(value).exists()
    except (OSError, ValueError):
        return False
