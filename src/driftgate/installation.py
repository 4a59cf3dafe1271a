"""The action's own environment: puts the package of a source folder into a venv, once for each state of both.

Standard library only: it runs before anything is installed, from the action's folder.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from urllib.parse import unquote, urlsplit

from driftgate import __version__
from driftgate.errors import DriftgateError, InstallError, UsageError
from driftgate.escaping import commands
from driftgate.messages.message import message
from driftgate.runner import fail, write_outputs

#: What the wheel is built from, so what tells one state of the source from another.
SOURCES = ("pyproject.toml", "hatch_build.py", "README.md", "LICENSE", "NOTICE", "src", "templates", "schemas")
#: Made of other files that are looked at: modules, catalogues.
COMPILED = (".pyc", ".mo")
#: A folder with this file in it is whole; its time is that of the last use.
STAMP = "installed"
STEP_SECONDS = 1800
TAIL_CHARACTERS = 2000
#: Environments of other states that stay beside the newest.
KEPT = 3
#: Longer than a runner lets any job run, so nobody works in an environment that was last used before.
IDLE_SECONDS = 6 * 24 * 3600


@dataclass(frozen=True, slots=True)
class Supply:
    """Where packages come from: an index, a folder of wheels, or, with neither, what pip is set up for here.

    `index_url` may hold credentials: it reaches pip by its environment, never by its arguments.
    """

    index_url: str | None = None
    wheelhouse: Path | None = None

    @property
    def secrets(self) -> tuple[str, ...]:
        """What no log may show."""
        url = self.index_url or ""
        password = urlsplit(url).password or ""
        return tuple(dict.fromkeys(part for part in (url, password, unquote(password)) if password and part))


def main(sources: str) -> None:
    """The first step: `sources` is the src folder of the action; the output `python` is for the steps after it."""
    try:
        supply = read_supply(os.environ)
        for secret in supply.secrets:
            print(commands.mask(secret), flush=True)
        python = interpreter(Path(sources).parent, tool_folder(os.environ), os.environ, supply)
    except DriftgateError as error:
        fail(error)
    write_outputs(os.environ, {"python": str(python)})


def read_supply(environment: Mapping[str, str]) -> Supply:
    """The inputs index-url and wheelhouse, as action.yml hands them over. Raises UsageError."""
    url = environment.get("DRIFTGATE_INDEX_URL", "").strip()
    wheels = environment.get("DRIFTGATE_WHEELHOUSE", "").strip()
    if url and wheels:
        raise UsageError(message("install-two-sources"))
    wheelhouse = Path(environment.get("GITHUB_WORKSPACE") or ".").absolute() / wheels if wheels else None
    if wheelhouse is not None and not wheelhouse.is_dir():
        raise UsageError(message("install-wheelhouse-absent", path=str(wheelhouse), version=__version__))
    return Supply(url or None, wheelhouse)


def interpreter(source: Path, root: Path, environment: Mapping[str, str], supply: Supply | None = None) -> Path:
    """A Python that has the package of `source`: this one, or that of a venv below `root`, made if it is not there.

    Several runners of one machine may share `root`: they wait for each other. Raises InstallError.
    """
    if is_installed(source, sys.path):
        return Path(sys.executable)
    home = root / "driftgate" / f"{__version__}-{fingerprint(source)}"
    python = home / "bin" / "python"
    home.parent.mkdir(parents=True, exist_ok=True)
    with _locked(_lock_of(home)):
        if not ((home / STAMP).is_file() and _starts(python, environment)):
            shutil.rmtree(home, ignore_errors=True)
            _step((sys.executable, "-I", "-m", "venv", str(home)), environment, "install-venv")
            _install(python, source, environment, supply or Supply())
        (home / STAMP).touch()
    prune(home, now=time.time())
    return python


def is_installed(source: Path, places: Iterable[str]) -> bool:
    """Whether the package on one of these places is that of `source`, to the byte, with all that it depends on."""
    path = list(places)
    found = next(iter(metadata.distributions(name="driftgate", path=path)), None)
    if found is None or found.version != __version__:
        return False
    needed = [line for line in found.requires or () if "extra ==" not in line]
    names = [re.split(r"[^A-Za-z0-9._-]", line, maxsplit=1)[0] for line in needed]
    if not all(any(True for _ in metadata.distributions(name=name, path=path)) for name in names):
        return False
    return _has_content_of(source, Path(str(found.locate_file("driftgate"))))


def fingerprint(source: Path) -> str:
    """Twelve hexadecimal digits over the interpreter, the machine and every file that the package is built from."""
    digest = hashlib.sha256()
    for part in (sys.version, sys.base_prefix, platform.machine()):
        digest.update(f"{part}\0".encode())
    for name, content in _contents(source, SOURCES):
        digest.update(f"{name}\0".encode())
        digest.update(content)
    return digest.hexdigest()[:12]


def prune(home: Path, *, now: float) -> None:
    """Remove environments beside `home` that nobody has used for long, but for the few that were used last."""
    others = [folder for folder in home.parent.iterdir() if folder.is_dir() and folder != home]
    others.sort(key=_used, reverse=True)
    for folder in others[KEPT:]:
        with _locked(_lock_of(folder), wait=False) as is_ours:
            if is_ours and now - _used(folder) > IDLE_SECONDS:
                shutil.rmtree(folder, ignore_errors=True)


def tool_folder(environment: Mapping[str, str]) -> Path:
    """Where a runner keeps tools between jobs, or, where it has no such folder, for this job. Raises UsageError."""
    for name in ("RUNNER_TOOL_CACHE", "RUNNER_TEMP"):
        folder = environment.get(name, "")
        if folder and _writable(Path(folder)):
            return Path(folder)
    raise UsageError(message("install-no-folder"))


def _install(python: Path, source: Path, environment: Mapping[str, str], supply: Supply) -> None:
    pip = (str(python), "-I", "-m", "pip", "install", "--quiet")
    if supply.wheelhouse is None:
        index = {"PIP_INDEX_URL": supply.index_url} if supply.index_url else {}
        _step((*pip, str(source)), {**environment, **index}, "install-package")
        return
    path = str(supply.wheelhouse)
    told = {"path": path, "version": __version__}
    offline = ("--no-index", "--only-binary=:all:", "--find-links", path)
    _step((*pip, *offline, f"driftgate=={__version__}"), environment, "install-wheelhouse", told)
    package = next(python.parent.parent.glob("lib/python*/site-packages/driftgate"))
    if not _has_content_of(source, package):
        raise InstallError(message("install-wheelhouse-other", **told))


def _has_content_of(source: Path, package: Path) -> bool:
    """Whether an installed package consists of the same files as the source."""
    ours = dict(_contents(source / "src", ("driftgate",)))
    ours |= {f"driftgate/_{name}": content for name, content in _contents(source, ("templates",))}
    return ours == dict(_contents(package.parent, (package.name,)))


def _contents(folder: Path, names: Iterable[str]) -> Iterator[tuple[str, bytes]]:
    """Path and digest of each file below these names, compiled ones excepted."""
    for name in names:
        top = folder / name
        for file in (top,) if top.is_file() else sorted(top.rglob("*")):
            if file.is_file() and file.suffix not in COMPILED:
                yield file.relative_to(folder).as_posix(), hashlib.sha256(file.read_bytes()).digest()


def _used(folder: Path) -> float:
    """When it was used last; of one that never became whole, when it was begun."""
    for file in (folder / STAMP, folder):
        try:
            return file.stat().st_mtime
        except OSError:
            continue
    return 0.0


def _writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK | os.X_OK)


def _lock_of(home: Path) -> Path:
    """It outlives what it locks: whoever waits for it must wait for the same file as everybody else."""
    return home.parent / f"{home.name}.lock"


@contextmanager
def _locked(file: Path, *, wait: bool = True) -> Iterator[bool]:
    """Whether it is ours until the end; without waiting it may be another's."""
    with file.open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True


def _starts(python: Path, environment: Mapping[str, str]) -> bool:
    """Whether the venv's Python is still there: a runner's system Python may have been replaced below it."""
    try:
        _step((str(python), "-I", "-c", "import driftgate.action"), environment, "install-package")
    except InstallError:
        return False
    return True


def _step(
    command: tuple[str, ...], environment: Mapping[str, str], code: str, told: Mapping[str, str] | None = None
) -> None:
    try:
        done = subprocess.run(
            command,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=STEP_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InstallError(message(code, python=sys.executable, tail=str(error), **(told or {}))) from error
    if done.returncode != 0:
        tail = _without_credentials(done.stdout.decode("utf-8", "replace").strip())[-TAIL_CHARACTERS:]
        raise InstallError(message(code, python=sys.executable, tail=tail, **(told or {})))


def _without_credentials(output: str) -> str:
    """pip may name an index with its password."""
    return re.sub(r"(://)[^/\s@]+@", r"\1***@", output)
