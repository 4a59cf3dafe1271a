"""The command line: one verb a file in commands/, imported when it is used."""

from __future__ import annotations

import os
from importlib import import_module

import click

from driftgate import __version__
from driftgate.messages.languages import AUTO, CHOICES, VARIABLE, asked, language_of
from driftgate.messages.text import speak

#: verb → (module in driftgate.commands, one line for --help)
VERBS: dict[str, tuple[str, str]] = {
    "demo": ("demo", "Check the embedded demo network, healthy or with a planted fault."),
    "doctor": ("doctor", "Show what this machine has for a check, and what is missing."),
    "init": ("init", "Write a driftgate.yaml for a folder of the vendor's files."),
    "samples": ("samples", "Make and check the sample manifest."),
    "check": ("check", "Run the whole chain, judge it, write the reports."),
    "plan": ("plan", "Show what would be measured, and the legs it can be divided into."),
    "run": ("run", "Run one leg of a plan, as a shard."),
    "report": ("report", "Merge shards, judge again, write the reports."),
    "diff": ("diff", "Compare two artifacts on the same inputs."),
    "compare": ("compare", "Tell what became better or worse from version to version."),
    "gate": ("gate", "Hold results against every clause of a policy."),
    "explain": ("explain", "Say why the two sides of an evidence folder differ."),
    "bundle": ("bundle", "Write the evidence of a finished check as one file to hand on."),
    "replay": ("replay", "Run the failing link of a bundle again."),
    "comment": ("comment", "Keep one comment on the pull request that shows the newest run."),
    "schema": ("schema", "Print the JSON Schema of a document."),
}


class LazyGroup(click.Group):
    """Lists verbs from the table and imports a verb's module only to run it or to show its own help."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in VERBS:
            return None
        command: click.Command = import_module(f"driftgate.commands.{VERBS[cmd_name][0]}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Verbs"):
            formatter.write_dl([(verb, line) for verb, (_, line) in VERBS.items()])


@click.command(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="driftgate")
@click.option(
    "--lang",
    type=click.Choice(CHOICES),
    default=AUTO,
    envvar=VARIABLE,
    show_envvar=True,
    help="What people are spoken to in; auto: as the configuration or the environment says. JSON and JUnit: English.",
)
def main(lang: str) -> None:
    """Find the first stage at which a network stops being itself on its way to a Journey 6 board.

    Exit codes: 0 everything asked for is proven, 1 a check failed, 2 something could not be established.
    """
    asked(lang)
    speak(language_of(lang, os.environ))
