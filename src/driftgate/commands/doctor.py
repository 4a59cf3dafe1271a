"""`driftgate doctor`: what this machine has, what is missing, and how to get it."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import click
from rich.table import Table

from driftgate.commands.speaking import EXIT_ERROR, LogText, guarded, say, stdout, verbose_option
from driftgate.doctoring import SECONDS, TOOLS, Item, State, interpreters, machine, own_packages, room, vendor_tools
from driftgate.escaping.commands import disarmed_json
from driftgate.escaping.terminal import LIMIT, inert, markup
from driftgate.messages.message import Message, message
from driftgate.messages.text import text
from driftgate.plan import artifacts_of, targets_of
from driftgate.sessions import Artifact
from driftgate.settings.load import Config, load

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

    Ends with 2 where something is missing that driftgate or the configuration needs.
    """
    LogText(verbose=verbose)
    settings = None if config is None else load(config)
    items = tuple(_items(settings, out, seconds))
    lacking = any(item.needed and item.state is not State.THERE for item in items)
    if as_json:
        document = {"schema": "driftgate.doctor", "version": 1, "items": [_entry(item) for item in items]}
        stdout().print(disarmed_json(json.dumps(document, ensure_ascii=False, indent=1)), markup=False)
    else:
        _show(items)
    return EXIT_ERROR if lacking else 0


def _items(settings: Config | None, out: Path, seconds: float) -> Iterator[Item]:
    yield machine()
    yield from own_packages()
    yield from vendor_tools(seconds=seconds)
    wanted: dict[tuple[str, ...], list[str]] = {}
    for artifact in () if settings is None else _artifacts(settings):
        if artifact.backend in ("torch", "hbruntime"):
            python = tuple(artifact.options.get("python") or (sys.executable,))
            backends = wanted.setdefault(python, [])
            backends.extend([artifact.backend] if artifact.backend not in backends else [])
    yield from interpreters(wanted, seconds=seconds)
    yield room(out.absolute())


def _artifacts(settings: Config) -> Iterator[Artifact]:
    """Those of all subjects on all their targets."""
    for name in settings.settings.subjects:
        for target in targets_of(settings, name):
            yield from artifacts_of(settings, name, target)


def _entry(item: Item) -> dict[str, object]:
    return {
        "name": item.name,
        "state": item.state.value,
        "found": item.found,
        "needed": item.needed,
        "purpose": text(item.purpose),
        "advice": None if item.advice is None else text(item.advice),
    }


def _show(items: tuple[Item, ...]) -> None:
    console = stdout()
    headers = (say(message(code)) for code in ("doctor-name", "doctor-state", "doctor-found", "doctor-purpose"))
    table = Table(*headers, box=None)
    for item in items:
        state = f"[{COLOURS[item.state]}]{say(message(f'doctor-{item.state.value}'))}[/]"
        table.add_row(markup(inert(item.name, LIMIT)), state, markup(inert(item.found, LIMIT)), say(item.purpose))
    console.print(table)
    for advice in _together(items):
        console.print(say(advice), markup=False)


def _together(items: Sequence[Item]) -> Iterator[Message]:
    """What to do; the same for several tools is said once."""
    by_code: dict[str, list[Item]] = {}
    for item in items:
        if item.advice is not None:
            by_code.setdefault(item.advice.code if item.name in TOOLS else item.name, []).append(item)
    for several in by_code.values():
        first = several[0].advice
        if first is not None and len(several) > 1:
            yield message(first.code, **{**dict(first.params), "tool": tuple(item.name for item in several)})
        elif first is not None:
            yield first
