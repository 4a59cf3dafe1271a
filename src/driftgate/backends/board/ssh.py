"""A board over SSH, directly, behind jump hosts or through a proxy command."""

from __future__ import annotations

import logging
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread

import paramiko
from cryptography.exceptions import UnsupportedAlgorithm
from paramiko.packet import Packetizer

from driftgate.backends.board import knownhosts
from driftgate.backends.board.aliases import Aliases
from driftgate.backends.board.streams import BACKLOG_BYTES
from driftgate.backends.board.transport import Host, Lost, Transport
from driftgate.backends.board.wire import Stream, Wire
from driftgate.errors import BackendError
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

#: paramiko writes what goes wrong, with tracebacks, to its log; everything is raised as well.
LOG = "driftgate.board.ssh"
logging.getLogger(LOG).addHandler(logging.NullHandler())
logging.getLogger(LOG).propagate = False


class Packets(Packetizer):
    """New keys as seldom as OpenSSH asks for them with AES (RFC 4344, 3.2), not every 512 MB: paramiko can block
    itself when a channel closes in the middle of that."""

    REKEY_BYTES = 1 << 36


def open_ssh(host: Host) -> Transport:
    """Connect and sign in. Raises Lost where that may succeed another time, BackendError where it cannot."""
    aliases = Aliases()
    return SshTransport(host, _linked(host, aliases), aliases)


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
        self._starting: set[paramiko.Channel] = set()

    def open(self) -> None:
        """Connect, check the key of the host, sign in and watch over the connection."""
        if self.host.jump is not None:
            self._before = _linked(self.host.jump, self.aliases)
        self._deadline = time.monotonic() + self.host.connect_seconds
        self._wire = self._connected()
        self.transport = self._greeted(self._wire)
        self._check_key(self.transport)
        SignIn(self.host, self.transport, self._left, self.lost).do()
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
        return self.transport is None or not self.transport.is_active() or bool(self._wire and self._wire.ended_by)

    def lost(self, doing: str, reason: object = "") -> Lost:
        """What to raise when it is gone, or when something on it did not work."""
        ended_by = self._wire.ended_by if self._wire is not None else ""
        words = ended_by or str(reason) or type(reason).__name__
        return Lost(f"{doing}, {self.host.name}", self.aliases.applied(words))

    def session(self, command: str) -> paramiko.Channel:
        """A command that was started."""
        if self.transport is None or self.has_ended():
            raise self.lost("starting a command", "the connection is closed")
        channel: paramiko.Channel | None = None
        try:
            channel = self.transport.open_session(timeout=self.host.connect_seconds)
            channel.settimeout(POLL_SECONDS)
            self._starting.add(channel)
            channel.exec_command(command)
        except paramiko.ChannelException as error:
            raise self.lost("starting a command", f"no further session is let in: {error.text}") from None
        except (paramiko.SSHException, EOFError, OSError) as error:
            raise self.lost("starting a command", error) from None
        finally:
            self._starting.discard(channel) if channel is not None else None
        return channel

    def tunnel(self, host: Host) -> tuple[Stream, Callable[[], int]]:
        """A stream through this host to another, and how much of what is sent waits."""
        if self.transport is None or self._wire is None:
            raise self.lost("connecting")
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
        return channel, self._wire.queued

    def _left(self) -> float:
        """Seconds that are left for connecting. Raises Lost when there are none."""
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise self.lost("connecting", f"no answer within {self.host.connect_seconds:g} s")
        return left

    def _connected(self) -> Wire:
        self.aliases.add(self.host.address, self.host.name)
        self.aliases.add_secret(self.host.password or "")
        if self._before is not None:
            return Wire(*self._before.tunnel(self.host))
        connection = self._through_proxy() if self.host.proxy else self._direct()
        return Wire(connection, lambda: _queued_bytes(connection))

    def _direct(self) -> socket.socket:
        try:
            found = socket.getaddrinfo(self.host.address, self.host.port, type=socket.SOCK_STREAM)
        except OSError as error:
            raise self.lost("looking up the address", error.strerror or "it is unknown") from None
        for *_, address in found:
            self.aliases.add(str(address[0]), self.host.name)
        failure = ""
        for family, kind, protocol, _, address in found:
            connection = socket.socket(family, kind, protocol)
            try:
                connection.settimeout(self._left())
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
                    command, stdin=theirs, stdout=theirs, stderr=subprocess.DEVNULL, start_new_session=True
                )
        except OSError as error:
            ours.close()
            reason = error.strerror or type(error).__name__
            raise BackendError(message("board-proxy", board=self.host.name, reason=reason)) from None
        return ours

    def _greeted(self, wire: Wire) -> paramiko.Transport:
        """The transport after the exchange of keys."""
        transport = paramiko.Transport(
            wire,
            default_window_size=BACKLOG_BYTES,
            default_max_packet_size=PACKET_BYTES,
            packetizer_class=Packets,
        )
        self.transport = transport
        transport.set_log_channel(LOG)
        transport.banner_timeout = transport.handshake_timeout = self._left()
        options = transport.get_security_options()
        options.ciphers = [*(name for name in CIPHERS if name in options.ciphers), *_others(options.ciphers, CIPHERS)]
        known = [kind for key in self._known_keys() for kind in RSA.get(key.kind, (key.kind,))]
        options.key_types = sorted(options.key_types, key=lambda kind: kind not in known)
        agreed = Event()
        transport.start_client(event=agreed)
        agreed.wait(self._left())
        if not transport.is_active():
            error = transport.get_exception()
            if isinstance(error, paramiko.ssh_exception.IncompatiblePeer):
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
        for channel in tuple(self._starting):  # one that began just when the connection ended waits for ever
            channel.event.set()


class SignIn:
    """What a host offers to be let in with: nothing, its key, the agent's keys, its password, in this order."""

    def __init__(
        self,
        host: Host,
        transport: paramiko.Transport,
        left: Callable[[], float],
        lost: Callable[[str, object], Lost],
    ) -> None:
        self._host = host
        self._transport = transport
        self._left = left
        self._lost = lost
        self._problems: list[Message] = []
        self._refused: list[str] = []
        self._allowed: tuple[str, ...] = ()

    def do(self) -> None:
        """Be let in. Raises BackendError where the host refuses all of it, or a key cannot be used."""
        user = self._host.user
        own_key = self._own_key()
        if self._is_let_in("none", lambda: self._transport.auth_none(user)):
            return
        for name, key in self._keys(own_key):
            if self._is_let_in(name, lambda key=key: self._transport.auth_publickey(user, key)):  # type: ignore[misc]
                return
        password = self._host.password
        if password is not None and self._is_let_in(
            "password", lambda: self._transport.auth_password(user, password)
        ):
            return
        raise self._refusal()

    def _keys(self, own_key: paramiko.PKey | None) -> Iterator[tuple[str, paramiko.PKey]]:
        if own_key is not None:
            yield "key", own_key
        if not self._host.uses_agent:
            return
        try:
            agent = paramiko.Agent()
        except (paramiko.SSHException, OSError):  # no agent that can be spoken to
            return
        try:
            for key in agent.get_keys()[:AGENT_KEYS]:
                yield "agent", key
        finally:
            agent.close()

    def _own_key(self) -> paramiko.PKey | None:
        """The key of the file; one with a passphrase is left to the agent, and named if nothing else is let in."""
        path = self._host.key
        if path is None:
            return None
        try:
            return paramiko.PKey.from_path(path)
        except (TypeError, paramiko.PasswordRequiredException):
            self._problems.append(message("board-key-passphrase", board=self._host.name))
            return None
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise BackendError(message("board-key-unreadable", board=self._host.name, reason=reason)) from None
        except (ValueError, paramiko.SSHException, UnsupportedAlgorithm, paramiko.UnknownKeyType):
            raise BackendError(message("board-key-form", board=self._host.name)) from None

    def _is_let_in(self, name: str, attempt: Callable[[], Sequence[str]]) -> bool:
        """Whether one attempt is enough. Raises Lost where the connection ends."""
        self._transport.auth_timeout = self._left()
        try:
            further = attempt()
        except paramiko.BadAuthenticationType as error:
            self._allowed = tuple(error.allowed_types)
        except (paramiko.SSHException, EOFError, OSError) as error:
            if not self._transport.is_active():
                raise self._end(error) from None
            self._left()
            if not isinstance(error, paramiko.AuthenticationException):  # this key, this agent
                self._problems.append(message("board-sign-in-failed", board=self._host.name, method=name))
        else:
            if not further:
                return True
            self._allowed = tuple(further)
        self._refused.append(name)
        return False

    def _end(self, error: Exception) -> DriftgateError | Lost: ...

    def _refusal(self) -> BackendError: ...
