"""A board over SSH, directly, behind jump hosts or through a proxy command."""

from __future__ import annotations

import logging
import math
import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Event, Thread, Timer
from types import TracebackType
from typing import cast

import paramiko
from cryptography.exceptions import UnsupportedAlgorithm
from paramiko.packet import Packetizer
from paramiko.pkey import UnknownKeyType
from paramiko.ssh_exception import IncompatiblePeer

from driftgate.backends.board import knownhosts
from driftgate.backends.board.running import ENDING, STALLED_SECONDS, done
from driftgate.backends.board.streams import BACKLOG_BYTES, TAIL_BYTES, Tail
from driftgate.backends.board.transport import Done, Host, Lost, Transport
from driftgate.backends.board.wire import Stream, Wire
from driftgate.errors import BackendError
from driftgate.masking.aliases import Aliases
from driftgate.messages.message import Message, message

#: The fastest first, as far as paramiko and the board have them; the others follow in paramiko's order.
CIPHERS = ("aes128-gcm@openssh.com", "aes128-ctr", "aes256-gcm@openssh.com", "aes256-ctr")
PACKET_BYTES = 1 << 18  # what a board may send in one; OpenSSH sends less
WRITE_BYTES = 1 << 15  # OpenSSH takes no more in one

POLL_SECONDS = 0.25
LAST_WORDS_SECONDS = 0.5
SILENT_PERIODS = 3  # keep-alives without an answer

#: OpenSSH ends a connection after six refused attempts; the password must be among them.
AGENT_KEYS = 4

NO_CODE = 255  # as `ssh` says where a command has none: its shell itself was killed
RSA = {"ssh-rsa": ("rsa-sha2-512", "rsa-sha2-256")}
FORBIDDEN = 1  # SSH_OPEN_ADMINISTRATIVELY_PROHIBITED

#: paramiko writes what goes wrong, with tracebacks, to its log; all of it is raised as well, without addresses.
LOG = "driftgate.board.ssh"
logging.getLogger(LOG).disabled = True


class Packets(Packetizer):
    """New keys as seldom as OpenSSH asks for them with AES (RFC 4344, 3.2), not every 512 MB: paramiko can block
    itself when a channel closes in the middle of that."""

    REKEY_BYTES = 1 << 36


def open_ssh(host: Host) -> Transport:
    """Connect and sign in. Raises Lost where that may succeed another time, BackendError where it cannot."""
    return SshTransport(_linked(host, Aliases()))


class Link:
    """One signed-in connection, with the connection to a jump host or the proxy's process that it goes through."""

    def __init__(self, host: Host, aliases: Aliases) -> None:
        self.host = host
        self.aliases = aliases
        self.transport: paramiko.Transport | None = None
        self._before: Link | None = None
        self._proxy: subprocess.Popen[bytes] | None = None
        self._wire: Wire | None = None
        self._deadline = 0.0
        self._is_closing = Event()

    def open(self) -> None:
        """Connect, check the key of the host, sign in and watch over the connection."""
        if self.host.jump is not None:
            self._before = _linked(self.host.jump, self.aliases)
        self._deadline = time.monotonic() + self.host.connect_seconds
        self._wire = self._connected()
        self.transport = self._greeted(self._wire)
        self._check_key(self.transport)
        SignIn(self, self.transport).do()
        self._wire.expect(SILENT_PERIODS * self.host.keepalive_seconds)
        Thread(target=self._keep_alive, args=(self.transport,), daemon=True).start()

    def close(self) -> None:
        """Close it and everything it goes through."""
        self._is_closing.set()
        if self.transport is not None:
            self.transport.close()
        if self._wire is not None:
            self._wire.close()
        if self._proxy is not None:
            with suppress(ProcessLookupError, PermissionError):  # nobody of the group is left
                os.killpg(self._proxy.pid, signal.SIGKILL)
            self._proxy.wait()
        if self._before is not None:
            self._before.close()

    def has_ended(self) -> bool:
        """Whether nothing can come over it any more."""
        is_active = self.transport is not None and self.transport.is_active()
        return not is_active or (self._wire is not None and self._wire.ended_by != "")

    def was_dismissed(self) -> bool:
        """Whether the host itself ended it, with words."""
        return self._wire is not None and self._wire.ended_by == ""

    def lost(self, doing: str, reason: object) -> Lost:
        """What to raise when it is gone, or when something on it did not work."""
        ended_by = self._wire.ended_by if self._wire is not None else ""
        words = ended_by or str(reason) or "the connection ended"
        return Lost(f"{doing}, {self.host.name}", self.aliases.applied(words))

    def session(self, command: str) -> paramiko.Channel:
        """A command that was started."""
        if self.transport is None or self.has_ended():
            raise self.lost("starting a command", "the connection is closed")
        try:
            channel = self.transport.open_session(timeout=self.host.connect_seconds)
            channel.settimeout(POLL_SECONDS)
            giving_up = Timer(self.host.connect_seconds, channel.event.set)  # paramiko waits for the answer for ever
            giving_up.start()
            try:
                channel.exec_command(command)
            finally:
                giving_up.cancel()
        except paramiko.ChannelException as error:
            raise self.lost("starting a command", f"no further session is let in: {error.text}") from None
        except (paramiko.SSHException, EOFError, OSError) as error:
            raise self.lost("starting a command", error) from None
        return channel

    def tunnel(self, host: Host) -> Stream:
        """A stream through this host to another."""
        if self.transport is None:
            raise self.lost("connecting", "the connection is closed")
        self.aliases.add(host.address, host.name)
        try:
            channel = self.transport.open_channel(
                "direct-tcpip", (host.address, host.port), ("127.0.0.1", 0), timeout=host.connect_seconds
            )
        except paramiko.ChannelException as error:
            if error.code == FORBIDDEN:
                raise BackendError(message("board-jump-forbidden", board=host.name, jump=self.host.name)) from None
            raise Lost(f"connecting from {self.host.name} to {host.name}", self.aliases.applied(error.text)) from None
        except (paramiko.SSHException, EOFError, OSError) as error:
            raise self.lost(f"connecting to {host.name} through", error) from None
        return channel

    def seconds_left(self) -> float:
        """Seconds that are left for connecting. Raises Lost when there are none."""
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise self.lost("connecting", f"no answer within {self.host.connect_seconds:g} s")
        return left

    def _connected(self) -> Wire:
        self.aliases.add(self.host.address, self.host.name)
        self.aliases.add_secret(self.host.password or "")
        if self._before is not None:
            return Wire(self._before.tunnel(self.host))
        return Wire(self._through_proxy() if self.host.proxy else self._direct())

    def _direct(self) -> socket.socket:
        try:
            found = socket.getaddrinfo(self.host.address, self.host.port, type=socket.SOCK_STREAM)
        except OSError as error:
            raise self.lost("looking up the address", error.strerror or "it is unknown") from None
        for *_, address in found:
            self.aliases.add(str(address[0]), self.host.name)
        failure = ""
        for family, kind, protocol, _, address in found:
            left = self.seconds_left()
            connection = socket.socket(family, kind, protocol)
            try:
                connection.settimeout(left)
                connection.connect(address)
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            except TimeoutError:
                connection.close()
                failure = f"no answer within {self.host.connect_seconds:g} s"
            except OSError as error:
                connection.close()
                failure = error.strerror or type(error).__name__
            else:
                return connection
        raise self.lost("connecting", failure)

    def _through_proxy(self) -> socket.socket:
        """The proxy command's stdin and stdout are one end of a pair of sockets. `%h`, `%p` and `%r` are as for ssh's
        ProxyCommand."""
        values = {"%%": "%", "%h": self.host.address, "%p": str(self.host.port), "%r": self.host.user}
        command = [_substituted(word, values) for word in self.host.proxy]
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                self._proxy = subprocess.Popen(
                    command,
                    stdin=theirs.fileno(),
                    stdout=theirs.fileno(),
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                )
        except OSError as error:
            ours.close()
            reason = error.strerror or type(error).__name__
            raise BackendError(message("board-proxy", board=self.host.name, reason=reason)) from None
        return ours

    def _greeted(self, wire: Wire) -> paramiko.Transport:
        """The transport after the exchange of keys."""
        transport = paramiko.Transport(
            cast(socket.socket, wire),  # it is documented to take anything with these methods
            default_window_size=BACKLOG_BYTES,
            default_max_packet_size=PACKET_BYTES,
            packetizer_class=Packets,
        )
        self.transport = transport
        transport.set_log_channel(LOG)
        transport.banner_timeout = transport.handshake_timeout = self.seconds_left()
        options = transport.get_security_options()
        options.ciphers = sorted(options.ciphers, key=lambda name: (*CIPHERS, name).index(name))
        known = [kind for key in self._known_keys() for kind in RSA.get(key.kind, (key.kind,))]
        options.key_types = sorted(options.key_types, key=lambda kind: kind not in known)
        agreed = Event()
        transport.start_client(event=agreed)
        agreed.wait(self.seconds_left())
        if not transport.is_active():
            error = transport.get_exception()
            if isinstance(error, IncompatiblePeer):
                reason = self.aliases.applied(str(error))
                raise BackendError(message("board-algorithms", board=self.host.name, reason=reason)) from None
            raise self.lost("greeting", error or "the other side closed it")
        if not agreed.is_set():
            raise self.lost("greeting", f"no answer within {self.host.connect_seconds:g} s")
        return transport

    def _known_keys(self) -> tuple[knownhosts.KnownKey, ...]:
        path = self.host.known_hosts or Path.home() / ".ssh" / "known_hosts"
        try:
            known = knownhosts.parse(path.read_text("utf-8", errors="replace"))
        except FileNotFoundError:
            known = ()
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise BackendError(message("board-known-hosts", board=self.host.name, reason=reason)) from None
        return knownhosts.keys_of(known, self.host.address, self.host.port)

    def _check_key(self, transport: paramiko.Transport) -> None:
        try:
            blob = transport.get_remote_server_key().asbytes()
        except paramiko.SSHException as error:
            raise self.lost("greeting", error) from None
        known = self._known_keys()
        if any(key.blob == blob and key.is_revoked for key in known):
            raise BackendError(self._key_problem("board-key-revoked", transport, blob))
        if any(key.blob == blob for key in known):
            return
        is_known = any(not key.is_revoked for key in known)
        raise BackendError(self._key_problem("board-key-changed" if is_known else "board-key-unknown", transport, blob))

    def _key_problem(self, code: str, transport: paramiko.Transport, blob: bytes) -> Message:
        kind = transport.get_remote_server_key().get_name()
        return message(
            code, board=self.host.name, kind=kind, fingerprint=knownhosts.fingerprint(blob), port=self.host.port
        )

    def _keep_alive(self, transport: paramiko.Transport) -> None:
        """Ask for a sign of life every period. The wire ends itself when nothing is heard."""
        while not self._is_closing.wait(self.host.keepalive_seconds) and transport.is_active():
            with suppress(paramiko.SSHException, EOFError, OSError):
                transport.global_request("keepalive@openssh.com", wait=True)


class SignIn:
    """What a host is offered to be let in: nothing, its key, the agent's keys, its password, in this order."""

    def __init__(self, link: Link, transport: paramiko.Transport) -> None:
        self._link = link
        self._host = link.host
        self._transport = transport
        self._refused: list[str] = []
        self._allowed: tuple[str, ...] = ()
        self._problems: list[Message] = []

    def do(self) -> None:
        """Be let in. Raises Lost where the connection ends, BackendError where all is refused."""
        own_key = self._own_key()  # before anything is tried: a file that is no key is an error of its own
        if not any(self._is_let_in(name, attempt) for name, attempt in self._attempts(own_key)):
            raise self._refusal()

    def _attempts(self, own_key: paramiko.PKey | None) -> Iterator[tuple[str, Callable[[], Sequence[str]]]]:
        user = self._host.user
        yield "none", partial(self._transport.auth_none, user)
        if own_key is not None:
            yield "key", partial(self._transport.auth_publickey, user, own_key)
        if self._host.uses_agent:
            for key in self._agent_keys():
                yield "agent", partial(self._transport.auth_publickey, user, key)
        if self._host.password is not None:
            yield "password", partial(self._transport.auth_password, user, self._host.password)

    def _is_let_in(self, name: str, attempt: Callable[[], Sequence[str]]) -> bool:
        """Whether an attempt was enough; where a host wants two things, the first alone is not."""
        self._transport.auth_timeout = self._link.seconds_left()
        try:
            self._allowed = tuple(attempt())
            is_enough = not self._allowed
        except paramiko.BadAuthenticationType as error:
            self._allowed = tuple(error.allowed_types)
            is_enough = False
        except (paramiko.SSHException, EOFError, OSError) as error:
            if not self._transport.is_active():
                raise self._refusal() if self._link.was_dismissed() else self._link.lost("signing in", error) from None
            self._link.seconds_left()
            is_enough = False
        if not is_enough and name not in self._refused:
            self._refused.append(name)
        return is_enough

    def _own_key(self) -> paramiko.PKey | None:
        """The key of the file. One with a passphrase is left to the agent, and spoken of if nobody is let in."""
        if self._host.key is None:
            return None
        try:
            return paramiko.PKey.from_path(self._host.key)
        except (TypeError, paramiko.PasswordRequiredException):
            self._problems.append(message("board-key-passphrase", board=self._host.name))
            return None
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise BackendError(message("board-key-unreadable", board=self._host.name, reason=reason)) from None
        except (ValueError, paramiko.SSHException, UnknownKeyType, UnsupportedAlgorithm):
            raise BackendError(message("board-key-form", board=self._host.name)) from None

    def _agent_keys(self) -> Iterator[paramiko.PKey]:
        try:
            agent = paramiko.Agent()
        except (paramiko.SSHException, OSError):  # there is none that can be spoken to
            return
        try:
            yield from agent.get_keys()[:AGENT_KEYS]
        finally:
            agent.close()

    def _refusal(self) -> BackendError:
        refused = message(
            "board-sign-in", board=self._host.name, tried=tuple(self._refused), allowed=self._allowed or ("?",)
        )
        return BackendError(*self._problems, refused)


class SshChannel:
    """See Channel."""

    def __init__(self, link: Link, channel: paramiko.Channel) -> None:
        self._link = link
        self._channel = channel
        self._ahead = memoryview(b"")
        self._tail = Tail()
        self._drain = Thread(target=self._read_errors, daemon=True)
        self._drain.start()

    def write(self, data: bytes) -> None:
        """See Channel."""
        view = memoryview(data)
        stalled = time.monotonic() + STALLED_SECONDS
        while view:
            try:
                taken = self._channel.send(view[:WRITE_BYTES].tobytes())
            except TimeoutError:
                if time.monotonic() > stalled:
                    reason = f"it took nothing for {STALLED_SECONDS:g} s"
                    raise self._link.lost("writing to a command", reason) from None
                continue
            except (paramiko.SSHException, EOFError, OSError):
                taken = 0
            if not taken:
                raise self._link.lost("writing to a command", "it reads no more")
            view = view[taken:]
            stalled = time.monotonic() + STALLED_SECONDS
        if self._link.has_ended():  # paramiko drops what it cannot send any more, and says nothing
            raise self._link.lost("writing to a command", "the connection is closed")

    def end_input(self) -> None:
        """See Channel."""
        try:
            self._channel.shutdown_write()
        except (paramiko.SSHException, EOFError, OSError) as error:
            raise self._link.lost("writing to a command", error) from None

    def read(self, size: int, *, seconds: float) -> bytes:
        """See Channel."""
        if not self._ahead:
            self._ahead = memoryview(self._received(seconds))
        taken, self._ahead = self._ahead[:size].tobytes(), self._ahead[size:]
        return taken

    def wait(self, *, seconds: float) -> int:
        """See Channel."""
        has_ended = any(self._channel.status_event.wait(POLL_SECONDS) for _ in _polls(seconds))
        code = self._channel.exit_status
        if code >= 0:
            return code
        if self._link.has_ended():
            raise self._link.lost("waiting for a command", "the connection is closed")
        if not has_ended:
            raise self._link.lost("waiting for a command", f"it did not end within {seconds:.3g} s")
        return NO_CODE

    def errors(self) -> bytes:
        """See Command; addresses are replaced by the names of boards, for these words reach reports."""
        self._see_its_end()
        words = self._tail.content().decode("utf-8", errors="surrogateescape")
        return self._link.aliases.applied(words).encode("utf-8", errors="surrogateescape")

    def last_words(self) -> str:
        """See Channel; addresses are replaced here too."""
        self._see_its_end()
        return self._link.aliases.applied(self._tail.words())

    def close(self) -> None:
        """See Channel."""
        with suppress(paramiko.SSHException, EOFError, OSError):
            self._channel.close()

    def _received(self, seconds: float) -> bytes:
        """All that came, for paramiko moves what it keeps each time some of it is taken."""
        for _ in _polls(seconds):
            try:
                data: bytes = self._channel.recv(BACKLOG_BYTES)
            except TimeoutError:
                continue
            except (paramiko.SSHException, EOFError, OSError) as error:
                raise self._link.lost("reading from a command", error) from None
            if not data and not self._channel.eof_received and self._link.has_ended():
                raise self._link.lost("reading from a command", "the connection is closed")
            return data
        raise self._link.lost("reading from a command", f"it wrote nothing for {seconds:.3g} s")

    def _see_its_end(self) -> None:
        if self._channel.exit_status_ready():
            self._drain.join(LAST_WORDS_SECONDS)

    def _read_errors(self) -> None:
        """stdout and stderr share a window: what nobody reads of one ends the other."""
        while True:
            try:
                data = self._channel.recv_stderr(TAIL_BYTES)
            except TimeoutError:
                continue
            except (paramiko.SSHException, EOFError, OSError):
                return
            if not data:
                return
            self._tail.add(data)


def _polls(seconds: float) -> range:
    """So many polls are that time while this machine is awake. One that slept, as laptops and virtual machines do, has
    its deadlines behind it before it has read what came."""
    return range(max(1, math.ceil(seconds / POLL_SECONDS)))


class SshTransport:
    """See Transport."""

    def __init__(self, link: Link) -> None:
        self._link = link

    @property
    def name(self) -> str:
        """See Transport."""
        return self._link.host.name

    def start(self, command: str) -> SshChannel:
        """See Transport."""
        return SshChannel(self._link, self._link.session(command + ENDING))

    def run(self, command: str, *, stdin: bytes = b"", seconds: float) -> Done:
        """See Transport."""
        return done(self.start(command), stdin, seconds=seconds)

    def __enter__(self) -> SshTransport:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._link.close()


def _linked(host: Host, aliases: Aliases) -> Link:
    link = Link(host, aliases)
    try:
        link.open()
    except BaseException:
        link.close()
        raise
    return link


def _substituted(word: str, values: Mapping[str, str]) -> str:
    pattern = "|".join(map(re.escape, values))
    return re.sub(pattern, lambda found: values[str(found[0])], word)
