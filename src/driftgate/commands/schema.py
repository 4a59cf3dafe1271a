"""`driftgate schema`: the JSON Schemas of the documents."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import click

from driftgate.commands.speaking import guarded
from driftgate.settings.load import config_schema
from driftgate.storage.bundle import bundle_schema
from driftgate.storage.comparison import comparison_schema
from driftgate.storage.document import results_schema
from driftgate.storage.gate import gate_schema
from driftgate.storage.history import history_schema
from driftgate.storage.manifest import manifest_schema

SCHEMAS: dict[str, Callable[[], Mapping[str, Any]]] = {
    "bundle": bundle_schema,
    "comparison": comparison_schema,
    "config": config_schema,
    "gate": gate_schema,
    "history": history_schema,
    "results": results_schema,
    "samples": manifest_schema,
}


def rendered(name: str) -> str:
    """A schema as the text that is published under schemas/."""
    return json.dumps(SCHEMAS[name](), indent=2, ensure_ascii=False) + "\n"


@click.command("schema")
@click.argument("document", type=click.Choice(tuple(SCHEMAS)))
@guarded
def command(document: str) -> int:
    """Print the JSON Schema of DOCUMENT: bundle (MANIFEST.json of a bundle), config (driftgate.yaml), history
    (history.json), results (results.json), samples (samples.json); comparison and gate as `--json` prints them."""
    click.echo(rendered(document), nl=False)
    return 0
