"""The board's own first process: makes its file system, starts its sshd, and reboots it when told to.

Run in namespaces of its own; orders come as lines of JSON on stdin, each is answered with one. With the end of stdin
it ends, and the kernel ends everything else on the board with it.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

READ_ONLY, BIND, RECURSIVE, PRIVATE, REMOUNT = 1, 4096, 16384, 1 << 18, 32
NODES = ("null", "zero", "full", "random", "urandom", "tty")
FOLDERS = ("usr/bin", "usr/sbin", "etc/ssh", "proc", "sys", "dev", "tmp", "run/sshd", "root", "disk", "machine")
LIBRARIES = ("/usr/lib", "/usr/lib64", "/usr/lib32", "/usr/libx32", "/lib", "/lib64", "/lib32", "/libx32")
BOOT = Path("/proc/sys/kernel/random/boot_id")
BEAT_SECONDS = 0.05
LISTEN_SECONDS = 10.0


def mount(source: str, target: Path, kind: str = "", flags: int = 0, data: str = "") -> None:
    """mount(2)."""
    library = ctypes.CDLL(None, use_errno=True)
    if library.mount(source.encode(), str(target).encode(), kind.encode(), flags, data.encode()):
        number = ctypes.get_errno()
        raise OSError(number, f"mount {source} on {target}: {os.strerror(number)}")


def show(source: Path, target: Path) -> None:
    """Lay a file or a folder of this machine over one of the board, where it cannot be written."""
    if source.is_dir():
        target.mkdir(parents=True, exist_ok=True)
    else:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.touch()
    mount(str(source), target, flags=BIND)
    mount("", target, flags=BIND | REMOUNT | READ_ONLY)


def furnish(root: Path, plan: Mapping[str, Any]) -> None:
    """The board's file system at `root`."""
    mount("", Path("/"), flags=RECURSIVE | PRIVATE)
    mount("tmpfs", root, "tmpfs", data="mode=755,size=64m")
    for folder in (
        "usr/bin",
        "usr/sbin",
        "etc/ssh",
        "proc",
        "sys",
        "dev",
        "tmp",
        "run/sshd",
        "root",
        "disk",
        "machine",
    ):
        (root / folder).mkdir(parents=True)
    for library in map(Path, LIBRARIES):
        if library.is_symlink():
            (root / library.relative_to("/")).symlink_to(library.readlink())
        elif library.is_dir():
            show(library, root / library.relative_to("/"))
    for name in ("bin", "sbin"):
        (root / name).symlink_to(f"usr/{name}")
    for node in NODES:
        (root / "dev" / node).touch()
        mount(f"/dev/{node}", root / "dev" / node, flags=BIND)
    for link, number in (("fd", ""), ("stdin", "/0"), ("stdout", "/1"), ("stderr", "/2")):
        (root / "dev" / link).symlink_to(f"/proc/self/fd{number}")
    mount("proc", root / "proc", "proc")
    mount("/sys", root / "sys", flags=BIND)
    mount("tmpfs", root / "tmp", "tmpfs", data="mode=1777,size=64m")
    mount("tmpfs", root / "disk", "tmpfs", data=f"mode=755,size={plan['disk_bytes']}")
    (root / "disk" / "work").mkdir()
    work = root / str(plan["work"]).lstrip("/")
    work.mkdir(parents=True)
    mount(str(root / "disk" / "work"), work, flags=BIND)
    for source, target in plan["shown"]:
        show(Path(source), root / target.lstrip("/"))
    for source, target in plan["copied"]:
        copy = root / target.lstrip("/")
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, copy)
    for target, text, mode in plan["written"]:
        path = root / target.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(mode)


class Machine:
    """What runs on the board."""

    def __init__(self, sshd: Sequence[str], port: int) -> None:
        self._sshd = sshd
        self._port = port
        self._listener: subprocess.Popen[bytes] | None = None
        self._starts_at: float | None = None

    def listen(self) -> None:
        """Start sshd, anew where it runs: sessions stay, what it reads is read again."""
        self._stop()
        self._listener = subprocess.Popen(self._sshd, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        self._starts_at = None
        end = time.monotonic() + LISTEN_SECONDS
        while not self._is_listening():
            if self._listener.poll() is not None or time.monotonic() > end:
                raise OSError("sshd does not start")
            time.sleep(0.005)

    def _stop(self) -> None:
        if self._listener is not None:
            self._listener.kill()
            self._listener.wait()
            self._listener = None

    def _is_listening(self) -> bool:
        """Whether the kernel has a socket in state LISTEN (0A) on the port."""
        rows = (line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:])
        return any(row[3] == "0A" and int(row[1].rpartition(":")[2], 16) == self._port for row in rows)

    def drop(self) -> None:
        """Kill what serves the connections, not what runs behind them."""
        kept = {os.getpid(), self._listener.pid if self._listener else 0}
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if int(process.name) not in kept and (process / "comm").read_text().startswith("sshd"):
                    os.kill(int(process.name), signal.SIGKILL)

    def reboot(self, seconds: float) -> None:
        """Everything dies and /tmp is lost at once; sshd comes back later."""
        self._listener = None
        with suppress(ProcessLookupError):
            os.kill(-1, signal.SIGKILL)
        with suppress(ChildProcessError):
            while True:
                os.waitpid(-1, 0)
        for entry in Path("/tmp").iterdir():
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)
            else:
                entry.unlink()
        Path("/machine/boot").write_text(f"{uuid.uuid4()}\n")
        self._starts_at = time.monotonic() + seconds

    def beat(self) -> None:
        """Start what is due, bury what has died."""
        if self._starts_at is not None and time.monotonic() >= self._starts_at:
            self.listen()
        for process in Path("/proc").glob("[0-9]*"):
            if self._listener is not None and int(process.name) == self._listener.pid:
                continue
            with suppress(OSError):
                os.waitpid(int(process.name), os.WNOHANG)


def main() -> None:
    """Until stdin ends."""
    plan = json.loads(sys.stdin.buffer.raw.readline())  # type: ignore[union-attr]
    outside = int(Path("/proc/self").readlink().name)  # that /proc is still the one of the namespace above
    root = Path(plan["root"])
    furnish(root, plan)
    os.chroot(root)
    os.chdir("/")
    Path("/machine/boot").write_text(f"{uuid.uuid4()}\n")
    mount("/machine/boot", BOOT, flags=BIND)
    socket.sethostname("board")
    machine = Machine(plan["sshd"], plan["port"])
    orders: Mapping[str, Callable[..., None]] = {
        "listen": machine.listen,
        "drop": machine.drop,
        "reboot": machine.reboot,
    }
    print(json.dumps({"pid": outside}), flush=True)
    while True:
        if select.select([0], [], [], BEAT_SECONDS)[0]:
            line = sys.stdin.buffer.raw.readline()  # type: ignore[union-attr]
            if not line:
                return
            name, *arguments = json.loads(line)
            try:
                orders[name](*arguments)
                print(json.dumps({}), flush=True)
            except OSError as error:
                print(json.dumps({"error": str(error)}), flush=True)
        machine.beat()


if __name__ == "__main__":
    main()
