"""The `boards` section: pools of boards, how they are reached, and what is done on them."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from pydantic import Field, field_validator, model_validator

from driftgate.backends.board.boards import Boards, PerfPlan
from driftgate.backends.board.transport import Host
from driftgate.errors import ConfigError
from driftgate.masking.aliases import Aliases
from driftgate.messages.message import message
from driftgate.settings.section import Section

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_HOST = re.compile(r"^(?:(?P<user>[^@\s]+)@)?(?P<address>\[[^\]]+\]|[^:\s]+)(?::(?P<port>\d{1,5}))?$")
MIB = 1 << 20


class JumpSettings(Section):
    """A host before the board."""

    host: str = Field(min_length=1, description="[user@]address[:port]; ${NAME} is taken from the environment")
    password: str | None = Field(default=None, description="${NAME}: from the environment, never in the file")
    key: Path | None = Field(default=None, description="a private key")
    known_hosts: Path | None = Field(default=None, description="the file with its host key; your own where absent")


class PerfSettings(Section):
    """How speed is measured, with hrt_model_exec perf."""

    runs: int = Field(default=3, ge=1, description="their median counts, their spread is shown")
    frames: int = Field(default=200, ge=1)
    threads: int = Field(default=1, ge=1, le=32)


class BoardSettings(Section):
    """A pool of boards of one kind: the first that is free is used, by one run at a time."""

    labels: tuple[str, ...] = Field(
        default=("self-hosted",), min_length=1, description="of the runners that reach these boards"
    )
    transport: Literal["ssh", "local"] = Field(default="ssh", description="local: this machine is the board")
    hosts: tuple[str, ...] = Field(
        default=(), description="[user@]address[:port]; ${NAME} is taken from the environment"
    )
    march: str | None = Field(default=None, description="of these boards, as in nash-m")
    user: str = "root"
    password: str | None = Field(default=None, description="${NAME}: from the environment, never in the file; or empty")
    key: Path | None = Field(default=None, description="a private key; the agent is asked as well")
    known_hosts: Path | None = Field(default=None, description="the file with the host keys; your own where absent")
    jump: JumpSettings | None = Field(default=None, description="a host before the boards")
    proxy_command: tuple[str, ...] = Field(default=(), description="its stdin and stdout are the connection")
    folder: str = Field(default="/map/driftgate", description="on the board: lock, cache of models, what a run needs")
    tool: str = Field(default="hrt_model_exec", description="on the board, by its path where it is not on the PATH")
    environment: dict[str, str] = Field(default_factory=dict, description="of the tool, such as LD_LIBRARY_PATH")
    core: int | None = Field(default=None, ge=0, description="the core by its number from 0; any where absent")
    lease: float = Field(
        default=30.0, gt=0, description="seconds without a sign of life after which a lock is taken over"
    )
    wait: float = Field(default=1800.0, ge=0, description="seconds to wait for a board that is in use")
    patience: float = Field(default=120.0, ge=0, description="seconds to try again while a board is away")
    sample_timeout: float = Field(default=120.0, gt=0, description="seconds that one sample may take")
    cache_mib: int = Field(default=2048, ge=0, description="room for models on the board")
    power_cycle: tuple[str, ...] = Field(default=(), description="a command that switches an absent board off and on")
    boot: float = Field(default=90.0, gt=0, description="seconds a board takes to come back after that")
    perf: PerfSettings | None = Field(default=None, description="measure speed, too")

    @field_validator("password")
    @classmethod
    def _not_in_the_file(cls, value: str | None) -> str | None:
        if value and not _VARIABLE.fullmatch(value):
            raise ValueError("a password is not written into the configuration; say ${NAME}, and set NAME as a secret")
        return value

    @field_validator("hosts")
    @classmethod
    def _in_form(cls, values: tuple[str, ...]) -> tuple[str, ...]:
        for value in values:
            if not _VARIABLE.search(value) and not _HOST.match(value):
                raise ValueError("not [user@]address[:port]")
        return values

    @field_validator("environment")
    @classmethod
    def _named(cls, value: dict[str, str]) -> dict[str, str]:
        for name in value:
            if not name.isidentifier():
                raise ValueError(f"{name!r} is no name of a variable")
        return value

    @model_validator(mode="after")
    def _reached(self) -> BoardSettings:
        if self.transport == "ssh" and not self.hosts:
            raise ValueError("names no hosts")
        if self.transport == "local" and self.hosts:
            raise ValueError("local takes no hosts: this machine is the board")
        if not self.folder.startswith("/") or self.folder.rstrip("/") == "":
            raise ValueError("folder must be a folder of its own, from the root")
        return self

    def boards(self, name: str, *, root: Path, w_stride: int, environment: Mapping[str, str] | None = None) -> Boards:
        """As a value, with what the environment holds; what it lacks is told when a board is to be reached. Raises
        ConfigError for an address that is none."""
        held = os.environ if environment is None else environment
        unset = tuple(sorted({v for text in self._texts() for v in _VARIABLE.findall(text) if v not in held}))
        return Boards(
            name=name,
            hosts=() if unset else self._hosts(name, root, held),
            unset=unset,
            march=self.march,
            folder=self.folder.rstrip("/"),
            tool=self.tool,
            environment=tuple(self.environment.items()),
            core=self.core,
            w_stride=w_stride,
            lease_seconds=self.lease,
            wait_seconds=self.wait,
            patience_seconds=self.patience,
            sample_seconds=self.sample_timeout,
            cache_bytes=self.cache_mib * MIB,
            power_cycle=self.power_cycle,
            boot_seconds=self.boot,
            perf=None if self.perf is None else PerfPlan(self.perf.runs, self.perf.frames, self.perf.threads),
        )

    def hide(self, aliases: Aliases, name: str, held: Mapping[str, str]) -> None:
        """Let the pool's name stand for its addresses, and nothing for its passwords."""
        jump = () if self.jump is None else (self.jump.host,)
        for text in (*self.hosts, *jump):
            for shown in (text, _VARIABLE.sub(lambda found: held.get(found[1], ""), text)):
                found = _HOST.match(shown)
                if found is not None and not _VARIABLE.search(found["address"]):
                    aliases.add(found["address"].strip("[]"), name)
        for word in (*self.proxy_command, *self.power_cycle):
            found = _HOST.match(word)
            if found is not None and _is_host(found["address"]):
                aliases.add(found["address"].strip("[]"), name)
        passwords = (self.password, None if self.jump is None else self.jump.password)
        for variable in (v for text in passwords for v in _VARIABLE.findall(text or "")):
            aliases.add_secret(held.get(variable, ""))

    def _hosts(self, name: str, root: Path, held: Mapping[str, str]) -> tuple[Host, ...]:
        jump = None if self.jump is None else self._jump(self.jump, name, root, held)
        return tuple(
            self._host(f"{name}#{at}" if len(self.hosts) > 1 else name, text, root, held, jump)
            for at, text in enumerate(self.hosts, 1)
        )

    def _texts(self) -> tuple[str, ...]:
        jump = () if self.jump is None else (self.jump.host, self.jump.password or "")
        return (*self.hosts, self.password or "", *jump)

    def _host(self, name: str, text: str, root: Path, held: Mapping[str, str], jump: Host | None) -> Host:
        user, address, port = _parts(_filled(text, held), name)
        return Host(
            name=name,
            address=address,
            port=port,
            user=user or self.user,
            password=None if self.password is None else _filled(self.password, held),
            key=None if self.key is None else root / self.key.expanduser(),
            known_hosts=None if self.known_hosts is None else root / self.known_hosts.expanduser(),
            jump=jump,
            proxy=self.proxy_command,
        )

    def _jump(self, jump: JumpSettings, name: str, root: Path, held: Mapping[str, str]) -> Host:
        user, address, port = _parts(_filled(jump.host, held), name)
        return Host(
            name=f"{name}'s jump host",
            address=address,
            port=port,
            user=user or self.user,
            password=None if jump.password is None else _filled(jump.password, held),
            key=None if jump.key is None else root / jump.key.expanduser(),
            known_hosts=None if jump.known_hosts is None else root / jump.known_hosts.expanduser(),
        )


def _is_host(word: str) -> bool:
    """Whether a word of a command is the name of a machine rather than a program, an option or a file."""
    return "." in word.strip(".") and not set(word) & set("/%=") and not word.startswith("-")


def _filled(text: str, held: Mapping[str, str]) -> str:
    return _VARIABLE.sub(lambda found: held[found[1]], text)


def _parts(text: str, name: str) -> tuple[str | None, str, int]:
    """User, address and port. Raises ConfigError, without the text, which may be secret."""
    found = _HOST.match(text)
    if found is None or not 0 < int(found["port"] or 22) < 65536:
        raise ConfigError(message("board-address", board=name))
    return found["user"], found["address"].strip("[]"), int(found["port"] or 22)
