"""What a machine has of what a check needs: packages, the vendor's tools, interpreters of workers, room on the disk."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from importlib import metadata
from pathlib import Path

from driftgate.messages.message import Message, message
from driftgate.programs import printed

SECONDS = 30.0
LEAST_FREE = 2 << 30  # bytes that recordings, bundles and workers' files may need
OWN = ("numpy", "onnx", "onnxruntime", "pydantic", "jinja2", "markdown", "junit-xml", "requests", "pyyaml", "rich")
#: The vendor's tools: how each tells its version, and what it is for.
TOOLS: Mapping[str, tuple[tuple[str, ...], str]] = {
    "hb_compile": (("--version",), "doctor-for-build"),
    "hb_verifier": (("--version",), "doctor-for-second-opinion"),
    "hb_model_info": (("--version",), "doctor-for-facts"),
    "hb_analyzer": (("--version",), "doctor-for-facts"),
    "hmct-debugger": (("--help",), "doctor-for-tuning"),
    "hrt_model_exec": (("--version",), "doctor-for-board"),
}
#: A tool that only the generation before has.
OLD_TOOL = "hb_mapper"
#: What an interpreter must be able to import, by backend.
NEEDS: Mapping[str, tuple[str, ...]] = {"torch": ("numpy", "torch"), "hbruntime": ("numpy", "horizon_tc_ui")}
_VERSION = re.compile(r"(?<![\w.])v?(\d+(?:\.\d+)+[\w.+-]*)")
_ASK = (
    "import importlib, json, platform, sys\n"
    "told = {'python': platform.python_version()}\n"
    "for name in sys.argv[1:]:\n"
    "    try:\n"
    "        told[name] = str(getattr(importlib.import_module(name), '__version__', ''))\n"
    "    except Exception as error:\n"
    "        told[name] = None\n"
    "print('\\n' + json.dumps(told))\n"
)


class State(str, Enum):
    """`missing` ends in an error only where something that was asked for needs it."""

    THERE = "there"
    MISSING = "missing"
    ODD = "odd"


@dataclass(frozen=True, slots=True)
class Item:
    """One thing that was looked for: its version or place, what it is for, and what to do where it is not there."""

    name: str
    state: State
    found: str
    purpose: Message
    needed: bool = False
    advice: Message | None = None


def own_packages() -> Iterator[Item]:
    """The packages that driftgate itself stands on."""
    for name in OWN:
        try:
            yield Item(name, State.THERE, metadata.version(name), message("doctor-for-driftgate"), needed=True)
        except metadata.PackageNotFoundError:
            advice = message("doctor-get-package", package=name)
            yield Item(name, State.MISSING, "", message("doctor-for-driftgate"), True, advice)


def vendor_tools(path: str | None = None, *, seconds: float = SECONDS) -> Iterator[Item]:
    """The vendor's tools on the PATH, each asked for its version in a folder of its own."""
    old = shutil.which(OLD_TOOL, path=path)
    for name, (arguments, code) in TOOLS.items():
        program = shutil.which(name, path=path)
        if program is None:
            advice = message("doctor-old-tools" if old else "doctor-get-tool", tool=name)
            yield Item(name, State.ODD if old else State.MISSING, "", message(code), advice=advice)
            continue
        said = _asked((program, *arguments), seconds)
        told = _VERSION.search(said) if said is not None else None
        if told is None and said is None:
            advice = message("doctor-tool-silent", tool=program, seconds=seconds)
            yield Item(name, State.ODD, program, message(code), advice=advice)
        else:
            yield Item(name, State.THERE, told[1] if told is not None else program, message(code))


def interpreters(wanted: Mapping[tuple[str, ...], Sequence[str]], *, seconds: float = SECONDS) -> Iterator[Item]:
    """Interpreters by command, each with the backends that it must serve."""
    for command, backends in wanted.items():
        packages = tuple(dict.fromkeys(package for backend in backends for package in NEEDS.get(backend, ())))
        said = _asked((*command, "-c", _ASK, *packages), seconds)
        told = _last_object(said or "")
        name = " ".join(command)
        purpose = message("doctor-for-stages", backends=tuple(backends))
        if told is None:
            yield Item(name, State.MISSING, "", purpose, True, message("doctor-interpreter", command=name))
            continue
        absent = tuple(package for package in packages if told.get(package) is None)
        found = ", ".join(f"{key} {value}".strip() for key, value in told.items() if value is not None)
        advice = message("doctor-interpreter-packages", command=name, packages=absent) if absent else None
        yield Item(name, State.MISSING if absent else State.THERE, found, purpose, True, advice)


def room(folder: Path) -> Item:
    """Free bytes where the output goes."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    free = shutil.disk_usage(folder).free
    enough = free >= LEAST_FREE
    advice = None if enough else message("doctor-room", folder=str(folder), wanted_mib=LEAST_FREE >> 20)
    found = f"{free >> 20} MiB"
    return Item(str(folder), State.THERE if enough else State.ODD, found, message("doctor-for-output"), advice=advice)


def machine() -> Item:
    """Processor and system."""
    found = f"{platform.machine()} {platform.system()} {platform.release()}, {os.cpu_count()} cores"
    return Item("machine", State.THERE, found, message("doctor-for-driftgate"))


def _asked(command: Sequence[str], seconds: float) -> str | None:
    """What a command prints; None where it cannot be started or does not end in time."""
    with tempfile.TemporaryDirectory(prefix="driftgate-doctor-") as folder:
        try:
            return printed(command, folder=folder, seconds=seconds)[0]
        except (OSError, subprocess.TimeoutExpired):
            return None


def _last_object(said: str) -> dict[str, str | None] | None:
    """The JSON object on the last line."""
    lines = said.strip().splitlines()
    try:
        told = json.loads(lines[-1]) if lines else None
    except ValueError:
        return None
    return told if isinstance(told, dict) else None
