"""The error tree: everything that means "could not be established" and ends the command with exit code 2.

    DriftgateError
     ├─ UsageError        the command line asks for something that cannot be done
     ├─ ConfigError       driftgate.yaml or a policy is wrong; all problems together
     ├─ SampleError       the data set: manifest, feeds or labels
     ├─ ArtifactError     an artifact cannot be read, or is not for this backend
     │   └─ LoadRefused   a readable artifact that the runtime meant for it refuses to load: a FAIL
     ├─ BackendError      a stage's tool or worker is absent, died, hung or answered nonsense
     ├─ InstallError      the action could not install the package
     ├─ StorageError      a document, recording or output folder cannot be read or written
     ├─ GitHubError       GitHub did not give or take what was asked of it
     │   ├─ NotAllowed    the token may not do it
     │   ├─ Gone          what was asked for is not there, or the token may not see it
     │   ├─ Postponed     a write was refused for now: look again before doing it
     │   └─ ReplyLost     nobody knows whether a write was done: look before doing it again
     └─ MergeConflict     two shards say different things about the same fact

A failed check is an outcome and never an exception.
"""

from __future__ import annotations

from driftgate.messages.message import Message
from driftgate.messages.text import ENGLISH_LANGUAGE, in_language, text


class DriftgateError(Exception):
    """Carries one message or more; several problems of one kind are reported together."""

    def __init__(self, *problems: Message) -> None:
        super().__init__(*problems)
        self.problems = problems

    def __str__(self) -> str:
        """In English, whatever the reader's language is: for tracebacks and logs. People are told the problems."""
        with in_language(ENGLISH_LANGUAGE):
            return "\n".join(text(problem) for problem in self.problems)


class UsageError(DriftgateError):
    """The command line asks for something that cannot be done."""


class ConfigError(DriftgateError):
    """The settings are wrong."""


class SampleError(DriftgateError):
    """The data set is wrong."""


class ArtifactError(DriftgateError):
    """An artifact cannot be read, or belongs to another backend."""


class LoadRefused(ArtifactError):
    """The runtime meant for a readable artifact refuses it."""


class BackendError(DriftgateError):
    """The tool or worker of a stage did not do its work."""


class InstallError(DriftgateError):
    """The action's environment could not be made."""


class StorageError(DriftgateError):
    """Something on disk cannot be read or written."""


class GitHubError(DriftgateError):
    """GitHub's API or the environment of a run is not what it must be."""


class NotAllowed(GitHubError):
    """The token may not do what was asked."""


class Gone(GitHubError):
    """What was asked for is not there, or not there for this token."""


class Postponed(GitHubError):
    """A write was not done; the wait that GitHub asked for is over."""


class ReplyLost(GitHubError):
    """A write was sent and no reply came that tells whether it was done."""


class MergeConflict(DriftgateError):
    """Two shards disagree about one fact."""
