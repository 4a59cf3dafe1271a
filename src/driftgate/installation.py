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
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from driftgate import __version__
from driftgate.errors import InstallError, UsageError
from driftgate.messages.message import message

#: What the wheel is built from, so what tells one state of the source from another.
SOURCES = ("pyproject.toml", "README.md", "LICENSE", "NOTICE", "src", "templates", "schemas")
#: A folder with this file in it is whole.
STAMP = "installed"
STEP_SECONDS = 1800
TAIL_CHARACTERS = 2000


def interpreter(source: Path, root: Path, environment: Mapping[str, str]) -> Path:
    """The Python of a venv below `root` that has the package of `source`; made if it is not there.

    Several runners of one machine may share `root`: they wait for each other. Raises InstallError.
    """
    home = root / "driftgate" / f"{__version__}-{fingerprint(source)}"
    python = home / "bin" / "python"
    home.parent.mkdir(parents=True, exist_ok=True)
    with _locked(home.parent / f"{home.name}.lock"):
        if not ((home / STAMP).is_file() and _starts(python, environment)):
            shutil.rmtree(home, ignore_errors=True)
            _step((sys.executable, "-I", "-m", "venv", str(home)), environment, "install-venv")
            _step((str(python), "-I", "-m", "pip", "install", "--quiet", str(source)), environment, "install-package")
            (home / STAMP).touch()
    return python


def fingerprint(source: Path) -> str:
    """Twelve hexadecimal digits over the interpreter, the machine and every file that the package is built from."""
    digest = hashlib.sha256()
    for part in (sys.version, sys.base_prefix, platform.machine()):
        digest.update(f"{part}\0".encode())
    for file in _files(source):
        digest.update(f"{file.relative_to(source).as_posix()}\0".encode())
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()[:12]


def tool_folder(environment: Mapping[str, str]) -> Path:
    """Where a runner keeps tools between jobs, or, where it has no such folder, for this job. Raises UsageError."""
    for name in ("RUNNER_TOOL_CACHE", "RUNNER_TEMP"):
        folder = environment.get(name, "")
        if folder and _writable(Path(folder)):
            return Path(folder)
    raise UsageError(message("install-no-folder"))


def _files(source: Path) -> Iterator[Path]:
    for name in SOURCES:
        top = source / name
        found = (top,) if top.is_file() else sorted(top.rglob("*"))
        yield from (file for file in found if file.is_file() and file.suffix != ".pyc")


def _writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK | os.X_OK)


@contextmanager
def _locked(file: Path) -> Iterator[None]:
    with file.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _starts(python: Path, environment: Mapping[str, str]) -> bool:
    """Whether the venv's Python is still there: a runner's system Python may have been replaced below it."""
    try:
        _step((str(python), "-I", "-c", "import driftgate.action"), environment, "install-package")
    except InstallError:
        return False
    return True


def _step(command: tuple[str, ...], environment: Mapping[str, str], code: str) -> None:
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
        raise InstallError(message(code, python=sys.executable, tail=str(error))) from error
    if done.returncode != 0:
        output = done.stdout.decode("utf-8", "replace").strip()
        raise InstallError(message(code, python=sys.executable, tail=_without_credentials(output)[-TAIL_CHARACTERS:]))


def _without_credentials(output: str) -> str:
    """pip may name an index with its password."""
    return re.sub(r"(://)[^/\s@]+@", r"\1***@", output)
