"""`driftgate comment`: keep one comment on the pull request that shows the newest run of this workflow."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

import click

from driftgate.commands.links import links_of
from driftgate.commands.speaking import LogText, guarded, log, say, stdout, verbose_option
from driftgate.domain.judgement import Outcome
from driftgate.errors import GitHubError, Gone, NotAllowed, UsageError
from driftgate.github.api import Client
from driftgate.github.comment import Done, Presence, Settled, Thread, Wish, author_of, settle
from driftgate.github.environment import read_context, read_event
from driftgate.github.marker import Marker, marker_of
from driftgate.github.patience import machine_timing
from driftgate.github.pulls import find_pull_request, is_head
from driftgate.messages.languages import AUTO, LANGUAGES, asked
from driftgate.messages.message import Message, message
from driftgate.messages.text import speak
from driftgate.reporting.comment import LIMIT
from driftgate.reporting.comment import comment as rendered
from driftgate.reporting.view.gate import gate_block
from driftgate.storage.bundle import BUNDLE
from driftgate.storage.document import read_results
from driftgate.storage.gate import read_gate
from driftgate.storage.hashing import file_digest

MODES = ("auto", "always", "on-failure", "never")
TOKENS = ("DRIFTGATE_TOKEN", "GITHUB_TOKEN")
#: What is said about each end of the work.
SAID = {
    Done.CREATED: "comment-created",
    Done.UPDATED: "comment-updated",
    Done.UNCHANGED: "comment-unchanged",
    Done.SUPERSEDED: "comment-superseded",
    Done.DELETED: "comment-deleted",
    Done.ABSENT: "comment-absent",
}


@click.command("comment")
@click.argument("report", metavar="REPORT_DIR", type=click.Path(path_type=Path))
@click.option("--mode", type=click.Choice(MODES), default="auto", help="When to comment; always: it must be possible.")
@click.option("--delete-when-green", is_flag=True, help="Remove the comment once every check passes.")
@click.option("--template", type=click.Path(path_type=Path), help="A template of your own for the comment.")
@click.option("--archive-url", default="", help="Address of the uploaded report.")
@click.option("--archive-digest", default="", help="SHA-256 of the uploaded report.")
@click.option("--bundle-digest", default="", help="SHA-256 of bundle.zip, where it is not in REPORT_DIR.")
@click.option("--key", default="", help="Tells several comments of one workflow apart, such as legs of a matrix.")
@click.option("--login", help="Whom comments of this token are by, where GitHub does not tell.")
@click.option("--event-path", type=click.Path(path_type=Path), help="The event's payload instead of GITHUB_EVENT_PATH.")
@verbose_option
@guarded
def command(
    report: Path,
    mode: str,
    delete_when_green: bool,
    template: Path | None,
    archive_url: str,
    archive_digest: str,
    bundle_digest: str,
    key: str,
    login: str | None,
    event_path: Path | None,
    verbose: bool,
) -> int:
    """Show the results in REPORT_DIR on the pull request that the run belongs to.

    The token is read from DRIFTGATE_TOKEN or GITHUB_TOKEN, everything else from the variables of the run. Where the
    token may not comment, or there is no pull request, that is said and is no error, except with --mode always.
    """
    LogText(verbose=verbose)
    if mode == "never":
        return _say(message("comment-never"))
    results = read_results(report)
    if asked() == AUTO and results.tool.language in LANGUAGES:
        speak(results.tool.language)
    context = read_context(os.environ, read_event(event_path or _event_path(os.environ)))
    marker = marker_of(context, key)
    token = _token(os.environ)
    if not token:
        return _without(mode, message("comment-no-token", names=TOKENS))
    gate = read_gate(report)
    outcome = results.outcome if gate is None or results.outcome is not Outcome.PASSED else gate.outcome
    presence = _presence(outcome, mode=mode, delete_when_green=delete_when_green)
    content = rendered(
        results,
        links=links_of(
            context,
            archive_url=archive_url or None,
            archive_digest=archive_digest or None,
            bundle_digest=_bundle_digest(report, bundle_digest),
        ),
        template=template,
        limit=LIMIT - len(marker.line) - 1,
        gate=None if gate is None else gate_block(gate.lines, gate.policy),
    )
    timing = machine_timing()
    with Client(context.api_url, token, timing=timing) as client:
        try:
            number = find_pull_request(client, context)
            if isinstance(number, Message):
                return _without(mode, number)
            if delete_when_green and presence is Presence.WANTED and not is_head(client, context, number):
                presence = Presence.RENEWED  # a deleted comment has left no trace of which run deleted it
        except (NotAllowed, Gone) as refused:
            return _without(mode, *refused.problems)
        wish = Wish(marker, content, presence, login or author_of(client))
        settled = settle(client, Thread(context.repository, number), wish)
    if settled.done is Done.NOT_ALLOWED:
        return _without(mode, *settled.notes)
    return _told(settled, number, marker)


def _told(settled: Settled, number: int, marker: Marker) -> int:
    notes = (*settled.notes, message("comment-overtaken")) if settled.overtaken else settled.notes
    said = message(
        SAID[settled.done],
        number=number,
        url=settled.url,
        run=marker.run_number,
        requests=settled.requests,
    )
    return _say(said, *notes)


def _bundle_digest(report: Path, given: str) -> str | None:
    """The SHA-256 of the bundle beside the report, else the one that is given; None where neither is one."""
    file = report / BUNDLE
    try:
        if file.is_file() and not file.is_symlink():
            return file_digest(file)
    except OSError:
        return None
    return given if re.fullmatch(r"[0-9a-f]{64}", given) else None


def _presence(outcome: Outcome, *, mode: str, delete_when_green: bool) -> Presence:
    if outcome is not Outcome.PASSED:
        return Presence.WANTED
    if delete_when_green:
        return Presence.UNWANTED
    return Presence.RENEWED if mode == "on-failure" else Presence.WANTED


def _event_path(environment: Mapping[str, str]) -> Path:
    path = environment.get("GITHUB_EVENT_PATH", "")
    if not path:
        raise UsageError(message("event-unnamed"))
    return Path(path)


def _token(environment: Mapping[str, str]) -> str:
    return next((token for name in TOKENS if (token := environment.get(name, "").strip())), "")


def _without(mode: str, *reasons: Message) -> int:
    """There will be no comment: an error where one must be, a note elsewhere."""
    if mode == "always":
        raise GitHubError(*reasons)
    return _say(message("comment-none"), *reasons)


def _say(*said: Message) -> int:
    console = stdout()
    for line in said:
        log(line)
        console.print(say(line), markup=False)
    return 0
