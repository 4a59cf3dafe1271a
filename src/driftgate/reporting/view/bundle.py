"""What the README of a bundle shows: each subject with its failure, the vendor's list, what is where, what is not."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath

from driftgate.domain.bundles import BundledLink, BundleManifest, Status, Wanted
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
    lines = tuple(
        WithheldLine(one.path, "" if one.bytes is None else str(one.bytes), one.sha256 or "", one.reason)
        for one in manifest.withheld
    )
    return Readme(
        tool=manifest.tool,
        page=whole,
        parts=tuple(_part(by_key.get((link.subject, link.target)), link) for link in manifest.links),
        replay=" ".join(manifest.replay),
        has_link=any(link.samples for link in manifest.links),
        models_included=manifest.models_included,
        withheld=lines[:SHOWN],
        more_withheld=max(0, len(lines) - SHOWN),
        sacrificed=tuple(role.value for role in manifest.sacrificed),
    )


def _part(subject: Subject | None, told: BundledLink) -> LinkPart:
    versions = [version for one in (subject.environments if subject else ()) for version in one.versions]
    boards = [one.board for one in (subject.environments if subject else ()) if one.board]
    return LinkPart(subject, told, tuple(map(_wanted, told.wanted)), tuple(dict.fromkeys((*versions, *boards))))


def _wanted(one: Wanted) -> WantedLine:
    return WantedLine(CELLS[one.status], one.what, message(f"keep-{one.status.value}"), one.paths, one.how)
