"""What a machine has of what a check needs: packages, the vendor's tools, interpreters of workers, room on the disk."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from importlib import metadata
from pathlib import Path

from driftgate import __version__
from driftgate.backends.foreign import is_container
from driftgate.messages.message import Message, message
from driftgate.programs import printed
from driftgate.vendor.console import plain_lines
from driftgate.vendor.runtime import runtime_versions

SECONDS = 30.0
LEAST_FREE = 2 << 30  # bytes that recordings, bundles and workers' files may need
OWN = (
    "numpy",
    "onnx",
    "onnxruntime",
    "pydantic",
    "jinja2",
    "markdown",
    "junit-xml",
    "requests",
    "pyyaml",
    "click",
    "rich",
    "pillow",
)
LAST_LINES, LAST_CHARACTERS = 3, 200  # of what a program said before it ended
VERSION = ("--version",)
#: The vendor's tools: how each tells its version, and what it is for.
TOOLS: Mapping[str, tuple[tuple[str, ...], str]] = {
    "hb_compile": (VERSION, "doctor-for-build"),
    "hb_verifier": (VERSION, "doctor-for-second-opinion"),
    "hb_model_info": (VERSION, "doctor-for-facts"),
    "hb_analyzer": (VERSION, "doctor-for-facts"),
    "hmct-debugger": (("--help",), "doctor-for-tuning"),
    "hrt_model_exec": (VERSION, "doctor-for-board"),
}
#: Of one package, and therefore of one version.
ONE_PACKAGE = ("hb_compile", "hb_verifier", "hb_model_info")
#: A tool, and a package, that only the generation before has.
OLD_TOOL, OLD_PACKAGE = "hb_mapper", "hobot_tc_ui"
LEAST_MAJOR = 3  # of the tools for Journey 6; those of the generation before begin with 1 and 2
#: What an interpreter must be able to import, by what it serves.
NEEDS: Mapping[str, tuple[str, ...]] = {
    "torch": ("numpy", "torch"),
    "hbruntime": ("numpy", "horizon_tc_ui"),
    "hbm_infer": ("numpy", "hbm_infer"),
    "hbm_runtime": ("numpy", "hbm_runtime"),
    "score": ("numpy",),
}
#: Distributions whose versions it is asked for, where it has them.
ALSO: Mapping[str, tuple[str, ...]] = {
    "torch": ("horizon_plugin_pytorch",),
    "hbruntime": ("horizon_tc_ui", "hbdk4-compiler", "hmct", "hbm_infer"),
}
TC_UI, HBDK, UCP, HBRT = "horizon_tc_ui", "hbdk4-compiler", "UCP", "HBRT"
#: Versions that were seen together, by their first two numbers (toolchain facts §0, §12).
TOGETHER: tuple[Mapping[str, str], ...] = (
    {TC_UI: "3.3", HBDK: "4.1", "hmct": "2.1", UCP: "3.3", HBRT: "4.1"},
    {TC_UI: "3.3", HBDK: "4.2", "hmct": "2.4"},
    {UCP: "3.7", HBRT: "4.3"},
    {UCP: "3.12", HBRT: "4.5"},
    {TC_UI: "3.5", HBDK: "4.7", "hmct": "2.6", UCP: "3.13", HBRT: "4.7"},
    {TC_UI: "3.5", HBDK: "4.11", "hmct": "2.8", UCP: "3.15", HBRT: "4.11", "hbm_infer": "3.15"},
)
#: How a container's program is told to hand stdin on.
_STDIN = re.compile(r"-[a-zA-Z]*i[a-zA-Z]*|--interactive(?:=true)?")
_VERSION = re.compile(r"(?<![\w.])v?(\d+(?:\.\d+)+[\w.+-]*)")
_FIRST_TWO = re.compile(r"(\d+)\.(\d+)")
_ASK = """
import importlib, json, os, platform, sys
wanted = json.loads(sys.argv[1])
told = {"python": platform.python_version(), "versions": {}, "absent": {}, "unseen": []}
for name in wanted["modules"]:
    try:
        told["versions"][name] = str(getattr(importlib.import_module(name), "__version__", ""))
    except BaseException as error:
        told["absent"][name] = type(error).__name__ + ": " + str(error)
try:
    from importlib import metadata
    for name in wanted["distributions"]:
        try:
            told["versions"][name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            pass
except ImportError:
    pass
told["unseen"] = [path for path in wanted["paths"] if not os.path.exists(path)]
print("\\n" + json.dumps(told))
"""


class State(str, Enum):
    """`missing` ends in an error only where something that was asked for needs it."""

    THERE = "there"
    MISSING = "missing"
    ODD = "odd"


@dataclass(frozen=True, slots=True)
class Item:
    """One thing that was looked for: its version or place, what it is for, and what to do where it is not there.
    `versions`: by component, as far as it told them."""

    name: str
    state: State
    found: str
    purpose: Message
    needed: bool = False
    advice: tuple[Message, ...] = ()
    versions: tuple[tuple[str, str], ...] = ()

    @property
    def lacks(self) -> bool:
        """Whether it is needed and not there."""
        return self.needed and self.state is State.MISSING


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A command that runs workers: what it serves, and the files that it must see under their own names."""

    command: tuple[str, ...]
    serves: tuple[str, ...]
    files: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class Reply:
    """What a command printed, and its exit code; None and why it did not come to its end."""

    said: str
    code: int | None
    why: str = ""

    @property
    def last_words(self) -> str:
        """Its last lines in one."""
        lines = [line.strip()[:LAST_CHARACTERS] for line in self.said.splitlines() if line.strip()]
        return " / ".join(lines[-LAST_LINES:]) or "-"


def machine() -> Iterator[Item]:
    """Processor and system, Python and driftgate."""
    purpose = message("doctor-for-driftgate")
    system = f"{platform.machine()} {platform.system()} {platform.release()}, {os.cpu_count()} cores"
    yield Item("machine", State.THERE, system, purpose)
    yield Item("python", State.THERE, f"{platform.python_version()} {sys.executable}", purpose)
    yield Item("driftgate", State.THERE, __version__, purpose)


def own_packages() -> Iterator[Item]:
    """The packages that driftgate itself stands on."""
    for name in OWN:
        try:
            yield Item(name, State.THERE, metadata.version(name), message("doctor-for-driftgate"), needed=True)
        except metadata.PackageNotFoundError:
            advice = message("doctor-get-package", package=name)
            yield Item(name, State.MISSING, "", message("doctor-for-driftgate"), True, (advice,))


def vendor_tools(path: str | None = None, *, seconds: float = SECONDS) -> Iterator[Item]:
    """The vendor's tools on the PATH, each asked for its version in a folder of its own."""
    old = shutil.which(OLD_TOOL, path=path)
    for name, (arguments, code) in TOOLS.items():
        program = shutil.which(name, path=path)
        if program is None:
            advice = message("doctor-old-tools" if old else "doctor-get-tool", tool=name)
            yield Item(name, State.ODD if old else State.MISSING, "", message(code), advice=(advice,))
            continue
        yield _tool(Item(name, State.THERE, program, message(code)), (program, *arguments), seconds)


def verifier(command: Sequence[str], *, seconds: float = SECONDS) -> Item:
    """The hb_verifier that the configuration names, which may be in a container."""
    item = Item(" ".join(command), State.THERE, "", message("doctor-for-second-opinion"), needed=True)
    reply = _asked((*command, *VERSION), seconds)
    if reply.code:
        words = message("doctor-tool-died", command=item.name, exit_code=reply.code, said=reply.last_words)
        return replace(item, state=State.MISSING, advice=(words,))
    if reply.code is None:
        advice = _not_ended("doctor-verifier", item.name, reply, seconds)
        return replace(item, state=State.MISSING, advice=(advice,))
    return _told(item, reply, tells=True)


def interpreters(wanted: Iterable[Interpreter], *, seconds: float = SECONDS) -> Iterator[Item]:
    """Interpreters, each asked for what it must serve; what would keep its workers from their work is missing."""
    for one in wanted:
        name = " ".join(one.command)
        item = Item(name, State.MISSING, "", message("doctor-for-stages", backends=one.serves), needed=True)
        asked = _modules(one)
        with tempfile.TemporaryDirectory(prefix="driftgate-doctor-") as folder:
            paths = [folder, *(str(file) for file in one.files)]
            request = json.dumps({"modules": asked, "distributions": _distributions(one), "paths": paths})
            reply = _asked((*one.command, "-c", _ASK, request), seconds, folder)
        told = _last_object(reply.said)
        if told is not None:
            yield _judged(item, one, told)
        elif reply.code is None:
            yield replace(item, advice=(_not_ended("doctor-interpreter", name, reply, seconds),))
        else:
            advice = message("doctor-interpreter-died", command=name, exit_code=reply.code, said=reply.last_words)
            yield replace(item, advice=(advice, *_without_stdin(one)))


def room(folder: Path) -> Item:
    """Free bytes where the output goes."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    free = shutil.disk_usage(folder).free
    enough = free >= LEAST_FREE
    advice = () if enough else (message("doctor-room", folder=str(folder), wanted_mib=LEAST_FREE >> 20),)
    found = f"{free >> 20} MiB"
    return Item(str(folder), State.THERE if enough else State.ODD, found, message("doctor-for-output"), advice=advice)


def held_together(items: Sequence[Item]) -> tuple[Item, ...]:
    """The items with what is odd about their versions: several releases on one PATH, components that were never seen
    together, a runtime that is older than the compiler."""
    tools = {item.name: item.found for item in items if item.name in ONE_PACKAGE and item.versions}
    mixed = tuple(f"{name} {version}" for name, version in tools.items()) if len(set(tools.values())) > 1 else ()
    compilers = [dict(item.versions)[HBDK] for item in items if HBDK in dict(item.versions)]
    return tuple(_with_oddities(item, mixed if item.name in tools else (), compilers) for item in items)


def unseen_pairs(versions: Mapping[str, str]) -> tuple[str, ...]:
    """Pairs that are known from other company only; what TOGETHER does not know is not judged."""
    told = {name: f"{found[1]}.{found[2]}" for name, said in versions.items() if (found := _FIRST_TWO.match(said))}
    names = [name for name in told if any(row.get(name) == told[name] for row in TOGETHER)]
    return tuple(
        f"{one} {versions[one]} with {other} {versions[other]}"
        for at, one in enumerate(names)
        for other in names[at + 1 :]
        if any(row.get(one) == told[one] and other in row for row in TOGETHER)
        and any(row.get(other) == told[other] and one in row for row in TOGETHER)
        and not any(row.get(one) == told[one] and row.get(other) == told[other] for row in TOGETHER)
    )


def _with_oddities(item: Item, mixed: Sequence[str], compilers: Sequence[str]) -> Item:
    versions = dict(item.versions)
    advice = []
    if mixed:
        advice.append(message("doctor-tools-mixed", tool=item.name, versions=tuple(mixed)))
    if pairs := unseen_pairs(versions):
        advice.append(message("doctor-versions-apart", name=item.name, pairs=pairs))
    newer = [compiler for compiler in compilers if HBRT in versions and _minor(compiler) > _minor(versions[HBRT])]
    if newer:
        advice.append(message("doctor-runtime-older", name=item.name, hbrt=versions[HBRT], hbdk=newer[0]))
    if not advice:
        return item
    state = State.ODD if item.state is State.THERE else item.state
    return replace(item, state=state, advice=(*item.advice, *advice))


def _minor(version: str) -> tuple[int, int]:
    found = _FIRST_TWO.match(version)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def _tool(item: Item, command: Sequence[str], seconds: float) -> Item:
    reply = _asked(command, seconds)
    if reply.code is None:
        advice = message("doctor-tool-silent", tool=item.found, seconds=seconds)
        return replace(item, state=State.ODD, advice=(advice,))
    return _told(item, reply, tells=command[-1:] == VERSION)


def _told(item: Item, reply: Reply, *, tells: bool) -> Item:
    """The item with the versions that a tool tells; help texts have numbers of their own."""
    runtime = runtime_versions(list(plain_lines(reply.said)))
    if runtime.ucp is not None:
        told = [(name, said) for name, said in ((UCP, runtime.ucp), (HBRT, runtime.hbrt)) if said is not None]
        return replace(item, found=", ".join(f"{name} {said}" for name, said in told), versions=tuple(told))
    found = _VERSION.search(reply.said) if tells else None
    if found is None:
        return item
    made = replace(item, found=found[1], versions=((item.name, found[1]),))
    if _minor(found[1])[0] >= LEAST_MAJOR:
        return made
    state = State.MISSING if item.needed else State.ODD
    return replace(made, state=state, advice=(message("doctor-old-version", tool=item.name, version=found[1]),))


def _judged(item: Item, one: Interpreter, told: Mapping[str, object]) -> Item:
    """The item with what an interpreter answered."""
    versions = _entries(told, "versions")
    absent = {name: why for name, why in _entries(told, "absent").items() if name != OLD_PACKAGE}
    known = {name: said for name, said in versions.items() if name != OLD_PACKAGE}
    found = ", ".join(f"{name} {said}".strip() for name, said in {"python": str(told.get("python")), **known}.items())
    unseen = told.get("unseen")
    paths = tuple(map(str, unseen)) if isinstance(unseen, list) else ()
    advice: list[Message] = []
    tc_ui = versions.get(TC_UI, "")
    if (absent and OLD_PACKAGE in versions) or (_FIRST_TWO.match(tc_ui) and _minor(tc_ui)[0] < LEAST_MAJOR):
        advice.append(message("doctor-interpreter-old", command=item.name, packages=found))
    elif absent:
        why = tuple(
            name if said.startswith("ModuleNotFoundError") else f"{name} ({said})" for name, said in absent.items()
        )
        advice.append(message("doctor-interpreter-packages", command=item.name, packages=why))
    if paths:
        advice.append(message("doctor-interpreter-files", command=item.name, paths=paths))
    advice += _without_stdin(one)
    state = State.MISSING if advice else State.THERE
    return replace(item, state=state, found=found, advice=tuple(advice), versions=tuple(known.items()))


def _without_stdin(one: Interpreter) -> tuple[Message, ...]:
    """A worker is spoken to on its stdin, which a container does not have unless it is told to."""
    _, *rest = one.command
    if not is_container(one.command) or not {"run", "exec"} & {*rest} or any(map(_STDIN.fullmatch, rest)):
        return ()
    return (message("doctor-container-stdin", command=" ".join(one.command)),)


def _modules(one: Interpreter) -> list[str]:
    needs = [package for served in one.serves for package in NEEDS.get(served, ())]
    return list(dict.fromkeys([*needs, *([OLD_PACKAGE] if TC_UI in needs else [])]))


def _distributions(one: Interpreter) -> list[str]:
    return list(dict.fromkeys(name for served in one.serves for name in ALSO.get(served, ())))


def _entries(told: Mapping[str, object], key: str) -> dict[str, str]:
    value = told.get(key)
    return {str(name): str(said) for name, said in value.items()} if isinstance(value, dict) else {}


def _not_ended(code: str, name: str, reply: Reply, seconds: float) -> Message:
    """The message of that code where it could not be started; it may also have taken too long."""
    if reply.why:
        return message(code, command=name, reason=reply.why)
    return message("doctor-interpreter-silent", command=name, seconds=seconds)


def _asked(command: Sequence[str], seconds: float, folder: str | None = None) -> Reply:
    """Runs a command in a folder of its own, or in the one that is given."""
    with tempfile.TemporaryDirectory(prefix="driftgate-doctor-") as own:
        try:
            return Reply(*printed(command, folder=folder or own, seconds=seconds))
        except OSError as error:
            return Reply("", None, error.strerror or str(error))
        except subprocess.TimeoutExpired:
            return Reply("", None)


def _last_object(said: str) -> dict[str, object] | None:
    """The JSON object on the last line."""
    lines = said.strip().splitlines()
    try:
        told = json.loads(lines[-1]) if lines else None
    except ValueError:
        return None
    return told if isinstance(told, dict) else None
