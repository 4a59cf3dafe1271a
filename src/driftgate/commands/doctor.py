"""`driftgate doctor`: what this machine has, what is missing, and how to get it."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import click
from rich.table import Table

from driftgate.backends.board.boards import Boards
from driftgate.boardhealth import boards
from driftgate.commands.speaking import EXIT_ERROR, LogText, configured, guarded, hiding, say, stdout, verbose_option
from driftgate.doctoring import (
    SECONDS,
    TOOLS,
    Interpreter,
    Item,
    State,
    held_together,
    interpreters,
    machine,
    own_packages,
    room,
    vendor_tools,
    verifier,
)
from driftgate.errors import DriftgateError
from driftgate.escaping.commands import disarmed_json
from driftgate.escaping.terminal import LIMIT, inert, markup
from driftgate.messages.message import Message, message
from driftgate.messages.text import ENGLISH_LANGUAGE, in_language, text
from driftgate.plan import artifacts_of, targets_of
from driftgate.sessions import Artifact
from driftgate.settings.load import Config, load

WORKED = ("torch", "hbruntime", "hbm_infer", "hbm_runtime")  # backends whose work is done by a worker
FILES = ("weights", "search_path")  # options that name its files
COLOURS = {State.THERE: "green", State.MISSING: "yellow", State.ODD: "bold yellow"}


@click.command("doctor")
@click.option("-c", "--config", type=click.Path(path_type=Path), help="Look for what this configuration needs, too.")
@click.option("--out", type=click.Path(path_type=Path), default=Path("driftgate-out"), help="Where output would go.")
@click.option(
    "--seconds", type=click.FloatRange(min=1.0), default=SECONDS, show_default=True, help="Time for one answer."
)
@click.option("--json", "as_json", is_flag=True, help="Print what was found as JSON.")
@verbose_option
@guarded
def command(config: Path | None, out: Path, seconds: float, as_json: bool, verbose: bool) -> int:
    """Show packages, the vendor's tools, interpreters of workers and room on the disk, and what is missing.

    Ends with 2 where something is MISSING that driftgate or the configuration needs; anything else is told only.
    """
    LogText(verbose=verbose)
    settings = None if config is None else load(config)
    if settings is not None:
        configured(settings)
    items = hiding().value(held_together(tuple(_items(settings, out, seconds))))
    if as_json:
        document = {"schema": "driftgate.doctor", "version": 1, "items": [_entry(item) for item in items]}
        stdout().print(disarmed_json(json.dumps(document, ensure_ascii=False, indent=1)), markup=False)
    else:
        _show(items)
    return EXIT_ERROR if any(item.lacks for item in items) else 0


def _items(settings: Config | None, out: Path, seconds: float) -> Iterator[Item]:
    yield from machine()
    yield from own_packages()
    yield from vendor_tools(seconds=seconds)
    if settings is not None:
        if settings.settings.defaults.verifier is not None:
            yield verifier(settings.settings.defaults.verifier.command, seconds=seconds)
        artifacts, lost = _artifacts(settings)
        yield from lost
        yield from interpreters(_interpreters(settings, artifacts), seconds=seconds)
        pools, unset = _pools(settings)
        yield from unset
        yield from boards(pools)
    yield room(out.absolute())


def _artifacts(settings: Config) -> tuple[Sequence[Artifact], Sequence[Item]]:
    """Those of all subjects on all their targets, and what keeps some of them from being found."""
    found: list[Artifact] = []
    lost: list[Item] = []
    for name in settings.settings.subjects:
        for target in targets_of(settings, name):
            try:
                found += artifacts_of(settings, name, target)
            except DriftgateError as error:
                purpose = message("doctor-build", subject=name)
                lost.append(Item(f"{name} {target}", State.MISSING, "", purpose, True, error.problems))
    return found, lost


def _pools(settings: Config) -> tuple[Sequence[Boards], Sequence[Item]]:
    """The pools of boards, and those of which a variable is not set."""
    found: list[Boards] = []
    unset: list[Item] = []
    for name, section in settings.settings.boards.items():
        try:
            pool = section.boards(name, root=settings.root, w_stride=0)
            pool.places()
            found.append(pool)
        except DriftgateError as error:
            unset.append(Item(f"board {name}", State.MISSING, "", message("doctor-for-board"), True, error.problems))
    return found, unset


def _interpreters(settings: Config, artifacts: Iterable[Artifact]) -> Iterator[Interpreter]:
    """By command: what it serves, and the files of its artifacts."""
    serves: dict[tuple[str, ...], list[str]] = {}
    files: dict[tuple[str, ...], list[Path]] = {}
    for artifact in artifacts:
        if artifact.backend in WORKED:
            python = tuple(artifact.options.get("python") or (sys.executable,))
            serves.setdefault(python, []).append(artifact.backend)
            files.setdefault(python, []).extend(_folders(artifact))
    for subject in settings.settings.subjects.values():
        score = subject.score
        for python in () if score is None else (score.python, score.postprocess.python if score.postprocess else ()):
            if python:
                serves.setdefault(python, []).append("score")
    for python, served in serves.items():
        yield Interpreter(python, tuple(dict.fromkeys(served)), tuple(dict.fromkeys(files.get(python, ()))))


def _folders(artifact: Artifact) -> Iterator[Path]:
    """Where the files of an artifact lie."""
    if artifact.path is not None:
        yield artifact.path.absolute().parent
    for key in FILES:
        value = artifact.options.get(key) or ()
        for path in (value,) if isinstance(value, str) else value:
            yield Path(path).absolute() if key == "search_path" else Path(path).absolute().parent


@in_language(ENGLISH_LANGUAGE)
def _entry(item: Item) -> dict[str, object]:
    return {
        "name": item.name,
        "state": item.state.value,
        "found": item.found,
        "needed": item.needed,
        "purpose": text(item.purpose),
        "advice": "; ".join(map(text, item.advice)) or None,
    }


def _show(items: tuple[Item, ...]) -> None:
    console = stdout()
    headers = (say(message(code)) for code in ("doctor-name", "doctor-state", "doctor-found", "doctor-purpose"))
    table = Table(box=None)
    for header in headers:
        table.add_column(header, overflow="fold")
    for item in items:
        colour, code = ("bold red", "lacking") if item.lacks else (COLOURS[item.state], item.state.value)
        state = f"[{colour}]{say(message(f'doctor-{code}'))}[/]"
        table.add_row(markup(inert(item.name, LIMIT)), state, markup(inert(item.found, LIMIT)), say(item.purpose))
    console.print(table)
    for advice in _together(items):
        console.print(say(advice), markup=False)


def _together(items: Sequence[Item]) -> Iterator[Message]:
    """What to do; the same for several tools is said once."""
    tools: dict[str, list[Message]] = {}
    for item in items:
        for advice in item.advice:
            if item.name in TOOLS and advice.get("tool") is not None:
                tools.setdefault(advice.code, []).append(advice)
            else:
                yield advice
    for first, *others in tools.values():
        names = tuple(str(advice.get("tool")) for advice in (first, *others))
        yield message(first.code, **{**dict(first.params), "tool": names}) if others else first
