"""Bundles put together and written: the size they may have, what goes first where they would be larger, a full disk."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from driftgate.domain.bundles import (
    SACRIFICE,
    BundledFile,
    BundledLink,
    BundleManifest,
    BundlePolicy,
    Role,
    Status,
    Wanted,
    Withheld,
)
from driftgate.domain.judgement import Policy
from driftgate.errors import ArtifactError, StorageError
from driftgate.evidencing import Item, LinkEvidence
from driftgate.messages.message import Message, message
from driftgate.storage.archive import Names, Writer, of_bytes
from driftgate.storage.atomic import replacing
from driftgate.storage.bundle import MANIFEST, encode_manifest, forget_parts
from driftgate.storage.hashing import file_digest

BUDGET = 256 << 20
READMES = ("README.md", "README.zh-CN.md")
REPLAY = ("driftgate", "replay", "bundle.zip")

#: From the manifest as far as it is known (the files are not yet hashed) to the texts of the READMEs, by name.
Readmes = Callable[[BundleManifest], Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class Draft:
    """What a bundle shall hold, before anything is left out."""

    tool: str
    items: tuple[Item, ...]
    links: tuple[LinkEvidence, ...]
    policies: tuple[tuple[str, Policy], ...]
    models_included: bool
    budget_bytes: int = BUDGET
    lost: tuple[tuple[str, Message], ...] = ()  # paths of files that turned out to be unreadable, and why

    @property
    def everything(self) -> tuple[Item, ...]:
        """All files, those that stay before those that may go."""
        found = (*self.items, *(item for link in self.links for item in link.items))
        return tuple(sorted(found, key=lambda item: (item.role in SACRIFICE, item.path)))


@dataclass(frozen=True, slots=True)
class Bundled:
    """A bundle that was written: its SHA-256, and what kept a larger one from being written, such as a full disk."""

    path: Path
    sha256: str
    manifest: BundleManifest
    trouble: tuple[Message, ...] = ()


class _Lost(ArtifactError):
    """A file that was there when the bundle was drafted cannot be read now."""

    def __init__(self, item: Item, *problems: Message) -> None:
        super().__init__(*problems)
        self.item = item


def write_bundle(path: Path, draft: Draft, readmes: Readmes) -> Bundled:
    """Write the bundle, whole; where the budget or the disk is too small, a smaller one. Raises StorageError where not
    even the smallest fits; then there is none, but one that was there before."""
    forget_parts(path)
    gone = _too_large(draft)
    full: tuple[Message, ...] = ()
    while True:
        try:
            manifest = _written(path, draft, gone, readmes)
            return Bundled(path, _digest(path), manifest, (*(reason for _, reason in draft.lost), *full))
        except _Lost as lost:
            if lost.item.role not in SACRIFICE:
                raise StorageError(*lost.problems, message("bundle-none", path=str(path))) from lost
            draft = replace(draft, lost=(*draft.lost, (lost.item.path, lost.problems[0])))
        except StorageError as error:
            left = [role for role in _present(draft) if role not in gone]
            if not left:
                raise StorageError(*error.problems, message("bundle-none", path=str(path))) from error
            gone, full = (*gone, left[0]), error.problems


def _digest(path: Path) -> str:
    try:
        return file_digest(path)
    except OSError as error:
        reason = error.strerror or str(error)
        raise StorageError(message("archive-unreadable", path=str(path), reason=reason)) from error


def _present(draft: Draft) -> tuple[Role, ...]:
    """The roles of the files that may go, the first to go first."""
    have = {item.role for item in draft.everything}
    return tuple(role for role in SACRIFICE if role in have)


def _too_large(draft: Draft) -> tuple[Role, ...]:
    """The roles that must go for the budget. Raises StorageError where what must stay is too large by itself."""
    sizes: dict[Role, int] = {}
    for item in draft.everything:
        sizes[item.role] = sizes.get(item.role, 0) + item.content.size_bytes
    gone: list[Role] = []
    for role in _present(draft):
        if sum(sizes.values()) <= draft.budget_bytes:
            break
        sizes.pop(role)
        gone.append(role)
    total = sum(sizes.values())
    if total > draft.budget_bytes:
        raise StorageError(message("bundle-too-large", bytes=total, limit_bytes=draft.budget_bytes))
    return tuple(gone)


def _written(path: Path, draft: Draft, gone: Sequence[Role], readmes: Readmes) -> BundleManifest:
    kept, withheld = _chosen(draft, gone)
    links = tuple(_without(one.link, {item.path for item in kept}, gone) for one in draft.links)
    manifest = BundleManifest(
        tool=draft.tool,
        models_included=draft.models_included,
        budget_bytes=draft.budget_bytes,
        replay=REPLAY,
        links=links,
        policies=tuple(BundlePolicy(subject, policy) for subject, policy in draft.policies),
        files=(),
        withheld=withheld,
        sacrificed=tuple(gone),
    )
    texts = readmes(manifest)
    files: list[BundledFile] = []
    with replacing(path) as stream, Writer(stream) as writer:
        first = [Item(name, Role.README, of_bytes(_utf8(told))) for name, told in texts.items()]
        for item in (*first, *kept):
            try:
                made = writer.add(item.path, item.content)
            except ArtifactError as error:
                raise _Lost(item, *error.problems) from error
            files.append(BundledFile(item.path, made.size_bytes, made.sha256, item.role, item.source))
        whole = replace(manifest, files=tuple(files))
        writer.add(MANIFEST, of_bytes(encode_manifest(whole)))
    return whole


def _chosen(draft: Draft, gone: Sequence[Role]) -> tuple[tuple[Item, ...], tuple[Withheld, ...]]:
    """The files that go in, and all that do not."""
    names = Names()
    for name in (MANIFEST, *READMES):
        names.take(name)
    kept: list[Item] = []
    withheld = [one for link in draft.links for one in link.withheld]
    lost = dict(draft.lost)
    for item in draft.everything:
        reason = message("bundle-for-size") if item.role in gone else None
        if reason is None and item.path in lost:
            reason = message("bundle-unreadable", reason=lost[item.path])
        if reason is None and not names.take(item.path):
            reason = message("bundle-name-taken")
        if reason is None:
            kept.append(item)
        else:
            withheld.append(Withheld(item.path, item.role, reason, item.content.size_bytes))
    return tuple(kept), tuple(sorted(withheld, key=lambda one: one.path))


def _without(link: BundledLink, kept: Iterable[str], gone: Sequence[Role]) -> BundledLink:
    """The link's list with what was left out."""
    there = set(kept)
    how = message("keep-how-size" if gone else "keep-how-include")
    return replace(link, wanted=tuple(_told(one, there, how) for one in link.wanted))


def _told(one: Wanted, there: set[str], how: Message) -> Wanted:
    if one.status is not Status.INCLUDED or there.issuperset(one.paths):
        return one
    return replace(one, status=Status.WITHHELD, how=how)


def notes_on(made: Bundled) -> Iterator[Message]:
    """What should be said of a bundle that was written."""
    yield message("bundle-written", path=str(made.path), sha256=made.sha256)
    if made.manifest.sacrificed:
        roles = tuple(role.value for role in made.manifest.sacrificed)
        yield message("bundle-smaller", roles=roles)
    yield from made.trouble


def _utf8(told: str) -> bytes:
    return told.encode("utf-8", "backslashreplace")
