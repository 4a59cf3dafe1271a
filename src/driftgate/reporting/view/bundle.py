"""What the README of a bundle shows: each subject with its failure, the vendor's list, what is where, what is not."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath

from driftgate.domain.bundles import BundledLink, BundleManifest, Status, Wanted
from driftgate.domain.facts import Facts
from driftgate.domain.results import Results
from driftgate.messages.message import Message, message
from driftgate.reporting.view.page import Page, Subject, page

#: What each status is marked with in the vendor's list.
CELLS = {Status.INCLUDED: "PASS", Status.WITHHELD: "-", Status.MISSING: "ERROR"}
SHOWN = 40  # files that are not in the bundle


@dataclass(frozen=True, slots=True)
class WantedLine:
    """An entry of the vendor's list."""

    cell: str
    what: Message
    status: Message
    paths: tuple[str, ...]
    how: Message | None


@dataclass(frozen=True, slots=True)
class WithheldLine:
    """A file that is not in the bundle; size and SHA-256 as far as they are known."""

    path: str
    bytes: str
    sha256: str
    reason: Message


@dataclass(frozen=True, slots=True)
class LinkPart:
    """One subject: what its report says, and the evidence of its failing link."""

    subject: Subject | None
    told: BundledLink
    wanted: tuple[WantedLine, ...]
    versions: tuple[str, ...]

    @property
    def link_folder(self) -> str:
        """Where its evidence folder lies."""
        return str(PurePosixPath(self.told.folder) / "link")


@dataclass(frozen=True, slots=True)
class Readme:
    """The whole page."""

    tool: str
    page: Page
    parts: tuple[LinkPart, ...]
    replay: str
    has_link: bool
    models_included: bool
    withheld: tuple[WithheldLine, ...]
    more_withheld: int
    sacrificed: tuple[str, ...]


def readme(results: Results, manifest: BundleManifest) -> Readme:
    """The README of a bundle with these results."""
    whole = page(results)
    by_key = {(one.name, one.target): one for one in whole.subjects}
    facts = {one.plan.key: one for one in results.facts}
    lines = tuple(
        WithheldLine(one.path, "" if one.bytes is None else str(one.bytes), one.sha256 or "", one.reason)
        for one in manifest.withheld
    )
    return Readme(
        tool=manifest.tool,
        page=whole,
        parts=tuple(
            _part(by_key.get((link.subject, link.target)), link, facts.get((link.subject, link.target)))
            for link in manifest.links
        ),
        replay=" ".join(manifest.replay),
        has_link=any(link.samples for link in manifest.links),
        models_included=manifest.models_included,
        withheld=lines[:SHOWN],
        more_withheld=max(0, len(lines) - SHOWN),
        sacrificed=tuple(role.value for role in manifest.sacrificed),
    )


def _part(subject: Subject | None, told: BundledLink, facts: Facts | None) -> LinkPart:
    return LinkPart(subject, told, tuple(map(_wanted, told.wanted)), () if facts is None else _versions(facts))


def _versions(facts: Facts) -> tuple[str, ...]:
    """What ran the stages, on which boards, and what the build and the artifacts say of the tools that made them."""
    ran = [f"{name} {value}" for one in facts.environments for name, value in one.versions]
    boards = [one.board for one in facts.environments if one.board]
    tools = [
        f"{fact.source}: {name.removeprefix('version-')} {value}"
        for fact in facts.tool_facts
        for name, value in fact.values
        if name.startswith("version")
    ]
    return tuple(dict.fromkeys((*ran, *boards, *tools)))


def _wanted(one: Wanted) -> WantedLine:
    return WantedLine(CELLS[one.status], one.what, message(f"keep-{one.status.value}"), one.paths, one.how)
