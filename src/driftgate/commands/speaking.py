"""How verbs speak: consoles, progress, the log, errors and exit codes."""

from __future__ import annotations

import functools
import io
import logging
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from driftgate.errors import DriftgateError
from driftgate.escaping.terminal import block, inert
from driftgate.masking.aliases import Aliases
from driftgate.masking.masks import Mask, mask_of
from driftgate.messages.languages import AUTO, asked
from driftgate.messages.message import Message, message
from driftgate.messages.text import ENGLISH_LANGUAGE, in_language, speak, text
from driftgate.pipeline import Breakable
from driftgate.pipeline import Progress as Advance

if TYPE_CHECKING:
    from driftgate.settings.load import Config

EXIT_ERROR = 2
LOG = logging.getLogger("driftgate")
_FORMAT = "%(asctime)s %(levelname)s %(message)s"

verbose_option = click.option("-v", "--verbose", is_flag=True, help="Tell on stderr what is being done.")


class _Console(Console):
    """A console whose reader may leave: the rest is dropped, and the exit code is still that of the verb."""

    def on_broken_pipe(self) -> None:
        """Called by rich where nobody reads any more."""
        self.quiet = True
        _drop_output()


def _drop_output() -> None:
    """Let stdout lead nowhere, so that Python does not fail once more when it ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def stdout() -> Console:
    """Where results go."""
    return _Console(highlight=False, soft_wrap=True, emoji=False)


def stderr() -> Console:
    """Where everything else goes."""
    return Console(stderr=True, highlight=False, soft_wrap=True, emoji=False)


def say(said: Message) -> str:
    """A message for a terminal."""
    return text(said, quote=inert)


@contextmanager
def progress(title: Message) -> Iterator[Advance]:
    """A bar on a terminal, nothing elsewhere; call what it yields with (done, total)."""
    console = stderr()
    if not console.is_terminal:
        yield lambda done, total: None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(say(title), total=None)

        def advance(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        yield advance


class _Hiding:
    """The mask of the verb that runs."""

    mask: Mask | None = None


def hide(aliases: Aliases) -> Mask:
    """From now on this verb shows nothing of what these names stand for, nor of the secrets in its environment."""
    _Hiding.mask = mask_of(os.environ, aliases)
    return _Hiding.mask


def configured(config: Config) -> None:
    """From now on this verb hides what the configuration hides, and speaks its language unless another is asked for."""
    hide(config.hidden(os.environ))
    wanted = config.settings.defaults.lang
    if asked() == AUTO and wanted != AUTO:
        speak(wanted)


def hiding() -> Mask:
    """The mask of this verb."""
    return _Hiding.mask or hide(Aliases())


class _Masking(logging.Formatter):
    """Lines of the log without what must not be shown."""

    def format(self, record: logging.LogRecord) -> str:
        return hiding().text(super().format(record))


class LogText:
    """The log of this command, kept until there is a folder to put it in."""

    def __init__(self, *, verbose: bool) -> None:
        self._stream = io.StringIO()
        LOG.setLevel(logging.DEBUG)
        LOG.propagate = False
        LOG.handlers.clear()
        streams = (self._stream, sys.stderr) if verbose else (self._stream,)
        for stream in streams:
            handler = logging.StreamHandler(stream)
            handler.setFormatter(_Masking(_FORMAT))
            LOG.addHandler(handler)

    def content(self) -> bytes:
        """driftgate.log so far, masked."""
        return hiding().text(self._stream.getvalue()).encode("utf-8", "backslashreplace")


def log(said: Message) -> None:
    """One line of the log, which is English in every language."""
    with in_language(ENGLISH_LANGUAGE):
        LOG.info("%s", block(text(said)))


@contextmanager
def stopped_while_waiting() -> Iterator[Breakable]:
    """SIGTERM and Ctrl-C end the work where it waits and nowhere else, so that what there is gets written whole.

    Yields what opens a stretch of waiting: KeyboardInterrupt comes within it, or at its start if a signal came
    before.
    """
    stop = _Stop()
    with _on_signals((signal.SIGTERM, signal.SIGINT), stop.asked_for):
        yield stop.breakable


class _Stop:
    """Whether the work shall end, and whether it may right now."""

    def __init__(self) -> None:
        self._asked = False
        self._waiting = False

    def asked_for(self, number: int, frame: FrameType | None) -> None:
        """The signals' handler."""
        self._asked = True
        if self._waiting:
            self._waiting = False
            raise KeyboardInterrupt

    @contextmanager
    def breakable(self) -> Iterator[None]:
        """A stretch of waiting."""
        self._waiting = True
        try:
            if self._asked:
                raise KeyboardInterrupt
            yield
        finally:
            self._waiting = False


def _at_once(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


@contextmanager
def _on_signals(
    numbers: tuple[signal.Signals, ...], handler: Callable[[int, FrameType | None], None]
) -> Iterator[None]:
    before = [(number, signal.signal(number, handler)) for number in numbers]
    try:
        yield
    finally:
        for number, kept in before:
            signal.signal(number, kept)


def guarded(verb: Callable[..., int]) -> Callable[..., None]:
    """Turns a verb's return value into the exit code, and errors into sentences on stderr with exit code 2."""

    @functools.wraps(verb)
    def run(**options: object) -> None:
        hide(Aliases())
        try:
            with _on_signals((signal.SIGTERM,), _at_once):
                code = verb(**options)
        except DriftgateError as error:
            for problem in error.problems:
                complain(problem)
            code = EXIT_ERROR
        except KeyboardInterrupt:
            complain(message("stopped"))
            code = EXIT_ERROR
        except BrokenPipeError:
            _drop_output()
            code = EXIT_ERROR
        except Exception as error:
            LOG.debug("internal error", exc_info=True)
            complain(message("internal-error", kind=type(error).__name__, reason=str(error)))
            code = EXIT_ERROR
        sys.exit(code)

    return run


def complain(problem: Message) -> None:
    """What went wrong, on stderr and in the log."""
    shown = hiding().value(problem)
    with in_language(ENGLISH_LANGUAGE):
        LOG.error("%s", block(text(shown)))
    stderr().print(f"driftgate: {say(shown)}", markup=False, style="red")
