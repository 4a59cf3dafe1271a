"""One comment of a workflow on a pull request that always shows its newest run: found, made, renewed, repaired.

`decide` is the whole algorithm: from what stands there now to the next single step. `settle` does that step, looks
again and decides again until nothing is left to do. Any number of runs may do this at once:

* Nothing of ours is overwritten by an older run, and content moves before its comment is deleted.
* Whoever creates a comment looks afterwards; of several the lowest id stays and gets the newest content, the others
  go. All runs decide the same from the same view, and the lowest id is never deleted, so one remains.
* A write is never repeated blindly: after a lost reply, a refusal for now or a vanished comment comes a new look.

GitHub has no conditional write. Directly before a PATCH or DELETE its comment is read once more; what another run
writes between that read and the write is lost. **This window of one request is the only way for older content to
survive**, and a `concurrency` group closes it. `Settled.overtaken` says when the look after our write showed
something else than what we wrote.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from driftgate.errors import GitHubError, Gone, NotAllowed, Postponed, ReplyLost
from driftgate.github.api import Client
from driftgate.github.marker import Marker, read_marker
from driftgate.github.payload import number_at, text_at
from driftgate.messages.message import Message, message

#: Who writes with the token of a workflow; such a token may not ask who it is.
ACTIONS = "github-actions[bot]"
#: GitHub takes this many characters.
BODY_LIMIT = 65_536
ROUNDS = 40


class Presence(str, Enum):
    """What shall be there: a comment, a comment only where there is one already, or none."""

    WANTED = "wanted"
    RENEWED = "renewed"
    UNWANTED = "unwanted"


class Done(str, Enum):
    """What it came to. `superseded`: a newer run's content stands there; `absent`: there was nothing to do."""

    CREATED = "created"
    UPDATED = "updated"
    UNCHANGED = "unchanged"
    SUPERSEDED = "superseded"
    DELETED = "deleted"
    ABSENT = "absent"
    NOT_ALLOWED = "not_allowed"


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment as GitHub lists it; `marker` is None where the first line is none."""

    id: int
    author: str
    body: str
    url: str

    @property
    def marker(self) -> Marker | None:
        """The marker on the first line."""
        return read_marker(self.body)


@dataclass(frozen=True, slots=True)
class Wish:
    """What this run wants to stand there; `author` is whom comments with our marker must be by.

    `written` turns true once the server has confirmed our content: from then on content of the same run and attempt
    by someone else (two jobs with one key) is left alone, so that the two do not overwrite each other for ever.
    """

    marker: Marker
    content: str
    presence: Presence
    author: str
    written: bool = False

    @property
    def body(self) -> str:
        """The comment's text: the marker's line, then the content."""
        return f"{self.marker.line}\n{self.content}"


@dataclass(frozen=True, slots=True)
class Create:
    """Make the comment."""


@dataclass(frozen=True, slots=True)
class Update:
    """Give a comment a text, our own or that of a newer duplicate."""

    comment: Comment
    body: str


@dataclass(frozen=True, slots=True)
class Delete:
    """Remove a comment: a duplicate, or one that is no longer wanted."""

    comment: Comment


@dataclass(frozen=True, slots=True)
class Rest:
    """Nothing is left to do; `kept` is the one comment of ours, `superseded` whether a newer run wrote it."""

    kept: Comment | None
    superseded: bool


Step = Create | Update | Delete | Rest


@dataclass(frozen=True, slots=True)
class Thread:
    """A pull request's comments."""

    repository: str
    number: int

    @property
    def path(self) -> str:
        """Where they are listed and made."""
        return f"/repos/{self.repository}/issues/{self.number}/comments"

    def comment_path(self, comment: Comment) -> str:
        """Where one of them is."""
        return f"/repos/{self.repository}/issues/comments/{comment.id}"


@dataclass(frozen=True, slots=True)
class Settled:
    """What became of a wish, and where to see it; `requests` counts all that it took, retries too.

    `overtaken`: a look after one of our writes showed something else. `notes` say what people should know.
    """

    done: Done
    url: str = ""
    requests: int = 0
    overtaken: bool = False
    notes: tuple[Message, ...] = ()


def decide(comments: Iterable[Comment], wish: Wish) -> Step:
    """The next step from what stands there. Pure; comments of others and forged markers are as if not there."""
    ours = _ours(comments, wish)
    if not ours:
        return Rest(None, False) if wish.written or wish.presence is not Presence.WANTED else Create()
    newest_order, newest = max(((marker.order, comment.id), comment) for comment, marker in ours)[0][0], max(
        ours, key=lambda pair: (pair[1].order, pair[0].id)
    )[0]
    superseded = newest_order > wish.marker.order or (
        wish.written and newest_order == wish.marker.order and not same_text(newest.body, wish.body)
    )
    if wish.presence is Presence.UNWANTED and not superseded:
        return Delete(ours[-1][0])
    kept = ours[0][0]
    body = newest.body if superseded else wish.body
    if not same_text(kept.body, body):
        return Update(kept, body)
    if len(ours) > 1:
        return Delete(ours[-1][0])
    return Rest(kept, superseded)
