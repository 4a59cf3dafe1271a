"""An HTTP server on the loopback interface: a GitHub, or another host that only listens."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from urllib.parse import parse_qsl, urlsplit

from support.github.exchange import Logged, Reply, Request
from support.github.faults import Fault, Treatment
from support.github.world import World

MOST_REQUESTS = 20_000
MOST_BYTES = 1 << 20
IDLE_SECONDS = 20
RESET = struct.pack("ii", 1, 0)  # SO_LINGER: closing sends RST

#: Called with every request before it is served; may wait.
Gate = Callable[[Request], None]


class Loopback:
    """A server that runs within `with`; `log` has what it served, `problems` what should not have happened."""

    def __init__(self, base_path: str = "") -> None:
        self.base_path = base_path
        self.log: list[Logged] = []
        self.problems: list[str] = []
        self._server = _Server(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    @property
    def address(self) -> str:
        """Scheme, host and port."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def url(self) -> str:
        """The address with the base path."""
        return self.address + self.base_path

    @property
    def lines(self) -> list[str]:
        """Method, path and status of what was served."""
        return [logged.line for logged in self.log]

    def __enter__(self) -> Loopback:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(IDLE_SECONDS)

    def serve(self, request: Request) -> Reply | None:
        """What this host answers: nothing but 200."""
        return Reply(200, {})

    def served(self, request: Request) -> Reply | None:
        """Serve and log one request."""
        reply = self.serve(request)
        self.log.append(Logged(request, reply))
        return reply


class GitHub(Loopback):
    """A GitHub with a world behind it; requests are served one at a time, faults in the order they were planned."""

    def __init__(self, world: World | None = None, base_path: str = "", gate: Gate | None = None) -> None:
        super().__init__(base_path)
        self.world = world or World()
        self.faults: list[Fault] = []
        self.checks: list[Callable[[Request, Reply], None]] = []
        self._gate = gate
        self._lock = threading.Lock()

    def __enter__(self) -> GitHub:
        super().__enter__()
        return self

    def plan(self, method: str, pattern: str, *treatments: Treatment) -> None:
        """The next requests of this kind are treated so, one after the other."""
        self.faults += [Fault(method, pattern, treatment) for treatment in treatments]

    def serve(self, request: Request) -> Reply | None:
        """As GitHub does, and with what is planned to go wrong."""
        if self._gate is not None:
            self._gate(request)
        with self._lock:
            return self._treated(request)

    def _treated(self, request: Request) -> Reply | None:
        def usual() -> Reply:
            return self.world.answer(request, self.url)

        fault = next((fault for fault in self.faults if fault.takes(request)), None)
        if fault is None:
            reply: Reply | None = usual()
        else:
            fault.times -= 1
            reply = fault.treatment(usual)
        if reply is not None:
            for check in self.checks:
                check(request, reply)
        return reply


class Storage(Loopback):
    """The other host, on which a GitHub keeps the archives of artifacts. It must never see a token."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self._world = world

    def __enter__(self) -> Storage:
        super().__enter__()
        return self

    def serve(self, request: Request) -> Reply | None:
        """The archive of the number that the path names."""
        if "authorization" in request.headers:
            self.problems.append(f"a token came along: {request.path}")
        number = request.path.strip("/").removesuffix(".zip")
        found = next((one for one in self._world.past.uploads if str(one.id) == number), None)
        if found is None:
            return Reply(404, {})
        return Reply(200, raw=found.content, headers={"Content-Type": "application/zip"})


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64


def _handler(host: Loopback) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = IDLE_SECONDS

        def handle_one_request(self) -> None:
            try:
                super().handle_one_request()
            except (ConnectionError, TimeoutError):
                self.close_connection = True

        def _serve(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            if length > MOST_BYTES or len(host.log) > MOST_REQUESTS:
                host.problems.append(f"too much: {length} bytes, {len(host.log)} requests")
                self.close_connection = True
                return
            parts = urlsplit(self.path)  # a proxy gets a whole address
            if not parts.path.startswith(host.base_path):
                host.problems.append(f"{self.path} is outside of {host.base_path}")
            request = Request(
                method=self.command,
                path=parts.path.removeprefix(host.base_path),
                query=dict(parse_qsl(parts.query)),
                headers={name.lower(): value for name, value in self.headers.items()},
                body=self.rfile.read(length),
            )
            try:
                reply = host.served(request)
            except Exception as error:
                host.problems.append(f"{self.command} {self.path}: {error}")
                reply = None
            if reply is None:
                self.close_connection = True
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
                self.connection.close()
                return
            self._send(reply)

        def _send(self, reply: Reply) -> None:
            date = (
                formatdate(host.world.clock.now, usegmt=True) if isinstance(host, GitHub) else formatdate(usegmt=True)
            )
            headers = {
                "Date": date,
                "Content-Type": "application/json; charset=utf-8",
                "Content-Length": str(len(reply.body)),
                **reply.headers,
            }
            head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
            body = reply.body if reply.whole else reply.body[: len(reply.body) // 2]
            self.close_connection = not reply.whole
            self.wfile.write(f"HTTP/1.1 {reply.status} Answer\r\n{head}\r\n".encode() + body)

        do_GET = do_POST = do_PATCH = do_DELETE = _serve  # noqa: N815

        def log_message(self, format: str, *args: object) -> None:
            """The log is `Loopback.log`."""

    return Handler
