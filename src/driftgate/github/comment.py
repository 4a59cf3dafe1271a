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

from collections.abc import Iterable, Set
from dataclasses import dataclass, replace
from enum import Enum

from driftgate.errors import GitHubError, Gone, NotAllowed, Postponed, ReplyLost
from driftgate.github.api import Client
from driftgate.github.marker import Marker, read_marker
from driftgate.github.payload import number_at, text_at
from driftgate.messages.message import Message, message

#: Who writes with the token of a workflow; such a token may not ask who it is.
ACTIONS = "github-actions[bot]"
ROUNDS = 20


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
    """A comment as GitHub lists it."""

    id: int
    author: str
    body: str
    url: str

    @property
    def marker(self) -> Marker | None:
        """The marker on the first line; None where that is another text."""
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


class _Moved(Exception):
    """What a step was decided on is not there any more."""


def decide(comments: Iterable[Comment], wish: Wish) -> Step:
    """The next step from what stands there. Pure; comments of others and forged markers are as if not there."""
    ours = _ours(comments, wish)
    if not ours:
        return Rest(None, False) if wish.written or wish.presence is not Presence.WANTED else Create()
    kept = ours[0].comment
    newest = max(ours, key=lambda found: (found.marker.order, found.comment.id))
    superseded = newest.marker.order > wish.marker.order or (
        wish.written and newest.marker.order == wish.marker.order and not same_text(newest.comment.body, wish.body)
    )
    if wish.presence is Presence.UNWANTED and not superseded:
        return Delete(ours[-1].comment)
    body = newest.comment.body if superseded else wish.body
    if not same_text(kept.body, body):
        return Update(kept, body)
    if len(ours) > 1:
        return Delete(ours[-1].comment)
    return Rest(kept, superseded)


def settle(client: Client, thread: Thread, wish: Wish) -> Settled:
    """Take steps until the wish is met or superseded.

    A token without the rights, or a pull request that it may not see, is an answer (`not_allowed`). Raises
    GitHubError for everything else that cannot be established.
    """
    taken: set[type[Step]] = set()
    notes: list[Message] = []
    overtaken, has_just_written = False, False
    try:
        for _ in range(ROUNDS):
            comments = tuple(_comment(value) for value in client.pages(thread.path))
            if has_just_written:
                ours = _ours(comments, wish)
                overtaken |= not ours or not same_text(ours[0].comment.body, wish.body)
            step = decide(comments, wish)
            if isinstance(step, Rest):
                url = step.kept.url if step.kept else ""
                return Settled(_done(step, taken), url, client.request_count, overtaken, tuple(notes))
            has_just_written = False
            is_own = not isinstance(step, Update) or step.body == wish.body
            try:
                author = _take(client, thread, step, wish)
            except (Postponed, _Moved):
                continue
            except ReplyLost:
                taken |= {type(step)} if is_own else set()
                continue
            if is_own:
                taken.add(type(step))
                has_just_written = not isinstance(step, Delete)
                wish = replace(wish, written=wish.written or has_just_written)
            if author.casefold() != wish.author.casefold():
                notes.append(message("comment-author", found=author, wanted=wish.author))
                wish = replace(wish, author=author)
    except (NotAllowed, Gone) as refused:
        return Settled(Done.NOT_ALLOWED, requests=client.request_count, notes=(*notes, *refused.problems))
    raise GitHubError(message("comment-unsettled", number=thread.number, rounds=ROUNDS))


def author_of(client: Client) -> str:
    """Whom comments written with this token are by, as far as the token may ask. Raises GitHubError."""
    try:
        return text_at(client.get("/user"), "login") or ACTIONS
    except (NotAllowed, Gone):
        return ACTIONS


def same_text(one: str, other: str) -> bool:
    """Whether two bodies are the same, whatever a server makes of line ends and trailing space."""
    return one.replace("\r\n", "\n").rstrip() == other.replace("\r\n", "\n").rstrip()


@dataclass(frozen=True, slots=True)
class _Ours:
    comment: Comment
    marker: Marker


def _ours(comments: Iterable[Comment], wish: Wish) -> tuple[_Ours, ...]:
    """By the lowest id first."""
    found = ((comment, comment.marker) for comment in comments if comment.author.casefold() == wish.author.casefold())
    ours = (_Ours(comment, marker) for comment, marker in found if marker is not None and marker.key == wish.marker.key)
    return tuple(sorted(ours, key=lambda one: one.comment.id))


def _take(client: Client, thread: Thread, step: Create | Update | Delete, wish: Wish) -> str:
    """One step; the author of what it made or changed. Raises _Moved where it is to be decided anew."""
    if isinstance(step, Create):
        return text_at(client.post(thread.path, {"body": wish.body}), "user", "login") or wish.author
    path = thread.comment_path(step.comment)
    try:
        if _comment(client.get(path)) != step.comment:
            raise _Moved
        if isinstance(step, Update):
            client.patch(path, {"body": step.body})
        else:
            client.delete(path)
    except Gone as gone:
        raise _Moved from gone
    return step.comment.author


def _done(step: Rest, taken: Set[type[Step]]) -> Done:
    if step.superseded:
        return Done.SUPERSEDED
    for kind, done in ((Create, Done.CREATED), (Update, Done.UPDATED)):
        if kind in taken:
            return done
    if step.kept is not None:
        return Done.UNCHANGED
    return Done.DELETED if Delete in taken else Done.ABSENT


def _comment(value: object) -> Comment:
    return Comment(
        id=number_at(value, "id") or 0,
        author=text_at(value, "user", "login"),
        body=text_at(value, "body"),
        url=text_at(value, "html_url"),
    )
