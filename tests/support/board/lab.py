"""A test board: a real sshd in namespaces of its own, with the vendor's stand-ins on it and a link that can be cut.

Needs root, and of Debian's packages openssh-server, openssh-client, iproute2 and nftables (util-linux is always there).
Nothing of it is left when it is closed: the kernel ends the namespaces with the board's first process, which ends when
the process that made the board does, however that dies.
"""

from __future__ import annotations

import atexit
import ctypes
import itertools
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

HERE = Path(__file__).parent
TESTS = HERE.parents[1]
#: Program → the Debian package that has it.
PROGRAMS = {
    "sshd": "openssh-server",
    "ssh": "openssh-client",
    "ssh-keygen": "openssh-client",
    "ip": "iproute2",
    "tc": "iproute2",
    "nft": "nftables",
    "nsenter": "util-linux",
    "unshare": "util-linux",
}
#: All that the board's shell finds.
FOUND = ("sh", "mkdir", "cat", "rm")
LOOK_IN = os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/sbin", "/usr/bin", "/bin"))
#: Programs end in this time, or something is wrong.
PATIENCE_SECONDS = 30.0
DISK_BYTES = 256 << 20
#: Addresses for measuring equipment (RFC 2544), nobody's on any network; four of them for a board.
NETWORK = (198 << 24) + (18 << 16)
NETWORKS = 1 << 15
BURST_BYTES = 16 << 10
QUEUE_MILLISECONDS = 200
NAMESPACES = ("--mount", "--net", "--pid", "--ipc", "--uts", "--fork", "--kill-child")
SSHD = "/usr/sbin/sshd"
SSHD_CONFIG = """\
Port {port}
AddressFamily inet
HostKey /etc/ssh/host_key
AuthorizedKeysFile /etc/ssh/authorized_keys
PermitRootLogin yes
StrictModes no
UsePAM no
UseDNS no
PubkeyAuthentication yes
KbdInteractiveAuthentication no
PasswordAuthentication {by_password}
PermitEmptyPasswords {by_no_password}
PermitTTY yes
PrintMotd no
PrintLastLog no
MaxAuthTries 50
MaxSessions 200
MaxStartups 200
PidFile none
LogLevel VERBOSE
SetEnv PATH=/usr/bin:/bin
{more}"""
DATE = """\
import json, sys, time
ahead = json.load(open("/etc/stand-in.json"))["ahead_seconds"]
print(time.strftime((sys.argv[1:] or ["+%a %b %e %H:%M:%S %Z %Y"])[0][1:], time.localtime(time.time() + ahead)))
"""


class LabError(Exception):
    """The board could not be set up, or does not do what it is told."""


def missing_tools() -> tuple[str, ...]:
    """What a test board needs and this machine does not have, in words."""
    lacking = {f"{name} ({package})" for name, package in PROGRAMS.items() if shutil.which(name, path=LOOK_IN) is None}
    if os.geteuid() != 0:
        lacking.add("the rights of root")
    elif not lacking and subprocess.run((_program("unshare"), "--mount", "--net", "true"), check=False).returncode:
        lacking.add("CAP_SYS_ADMIN and CAP_NET_ADMIN")
    return tuple(sorted(lacking))


def _program(name: str) -> str:
    found = shutil.which(name, path=LOOK_IN)
    if found is None:
        raise LabError(f"{name} is not installed")
    return found


def _run(*command: str, stdin: str = "") -> str:
    done = subprocess.run(
        (_program(command[0]), *command[1:]),
        input=stdin,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    if done.returncode:
        raise LabError(f"{' '.join(command)}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def _reserved() -> tuple[int, socket.socket]:
    """A number that no other board on this machine has, for as long as the socket lives."""
    for number in range(NETWORKS):
        claim = socket.socket(socket.AF_UNIX)
        try:
            claim.bind(f"\0driftgate-board-{number}")
        except OSError:
            claim.close()
        else:
            return number, claim
    raise LabError("no address is left")


def _address(number: int, host: int) -> str:
    return socket.inet_ntoa((NETWORK + 4 * number + host).to_bytes(4, "big"))


class TestBoard:
    """A board as long as its `with` block; with `behind` one that only that other board can reach."""

    __test__ = False
    user = "root"
    work = "/userdata"
    tool = "/usr/hobot/bin/hrt_model_exec"
    date = "/machine/date"

    def __init__(
        self,
        folder: Path,
        march: str = "nash-m",
        *,
        port: int = 22,
        disk_bytes: int = DISK_BYTES,
        behind: TestBoard | None = None,
    ) -> None:
        self.folder = folder / "board"
        self.port = port
        self.key = self.folder / "key"
        self.known_hosts = self.folder / "known_hosts"
        self._disk_bytes = disk_bytes
        self._behind = behind
        self._process: subprocess.Popen[str] | None = None
        self._slow_way: subprocess.Popen[str] | None = None
        self._claim: socket.socket | None = None
        self._pid = 0
        self._number = 0
        self._password: str | None = None
        self._shell = "/usr/bin/sh"
        self._told: dict[str, Any] = {"environment": {"STAND_IN_MARCH": march}, "ahead_seconds": 0, "slow_seconds": 0}
        self._is_cut = False
        self._loss_percent = 0.0
        self._bits_per_second = 0
        self._lock = threading.RLock()

    def __enter__(self) -> TestBoard:
        atexit.register(self.close)
        try:
            self._open()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _open(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._number, self._claim = _reserved()
        if self._behind is None and self.device in (name for _, name in socket.if_nameindex()):
            _run("ip", "link", "delete", self.device)  # of a run that was killed
        _run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "test", "-f", str(self.key))
        (self.folder / "machine").mkdir(exist_ok=True)
        with (self.folder / "machine.log").open("w") as log:
            self._process = subprocess.Popen(
                (_program("unshare"), *NAMESPACES, sys.executable, "-I", str(HERE / "machine.py")),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,  # an interrupt at the terminal is not the board's
            )
        self._pid = self._order(self._plan())["pid"]
        self._write_host_key()
        self.known_hosts.write_text(f"{self._as_known_host} {(self.folder / 'host_key.pub').read_text()}")
        self._write("/etc/ssh/authorized_keys", self.key.with_suffix(".pub").read_text())
        self._write_accounts()
        self._inside("ip", "link", "set", "lo", "up")
        self._near("ip", "link", "add", self.device, "type", "veth", "peer", "eth0", "netns", str(self._pid))
        self._near("ip", "address", "add", f"{_address(self._number, 1)}/30", "dev", self.device)
        self._near("ip", "link", "set", self.device, "up")
        self._inside("ip", "address", "add", f"{self.address}/30", "dev", "eth0")
        self._inside("ip", "link", "set", "eth0", "up")
        self._order(["listen"])

    def close(self) -> None:
        """End everything of the board; a second time nothing happens."""
        atexit.unregister(self.close)
        with self._lock:
            self._end_slow_way()
            if self._process is not None:
                with suppress(LabError):
                    if self._pid:
                        self._near("ip", "link", "delete", self.device)
                self._process.kill()
                self._process.communicate()
                self._process = None
            if self._claim is not None:
                self._claim.close()
                self._claim = None

    # What it is and where

    @property
    def address(self) -> str:
        """Where it is reached; from the board it is behind, where it is behind one."""
        return _address(self._number, 2)

    @property
    def root(self) -> Path:
        """Its work folder, seen from outside; through /proc, so never resolve() it."""
        return self.path(self.work)

    @property
    def boot(self) -> str:
        """The kernel's name for the time since it was started."""
        return self.path("/proc/sys/kernel/random/boot_id").read_text().strip()

    @property
    def device(self) -> str:
        """The near end of its link."""
        return f"drift{self._number}"

    @property
    def _as_known_host(self) -> str:
        return self.address if self.port == 22 else f"[{self.address}]:{self.port}"

    def path(self, name: str) -> Path:
        """A path of the board, seen from outside."""
        return Path(f"/proc/{self._pid}/root") / name.lstrip("/")

    def log(self) -> str:
        """What its sshd wrote."""
        return self.path("/machine/sshd.log").read_text(errors="replace")

    def processes(self) -> list[str]:
        """The command lines that run on it besides its first process and sshd."""
        return [line for line, name in self._running() if not name.startswith("sshd")]

    def sessions(self) -> int:
        """How many processes of sshd serve connections."""
        return max(0, sum(name.startswith("sshd") for _, name in self._running()) - 1)

    def _running(self) -> Iterator[tuple[str, str]]:
        for process in self.path("/proc").glob("[0-9]*"):
            if process.name == "1":
                continue
            with suppress(OSError):
                line = (process / "cmdline").read_bytes().rstrip(b"\0").replace(b"\0", b" ").decode(errors="replace")
                if line:  # a process that ended has none
                    yield line, (process / "comm").read_text().strip()

    # How it lets in

    def password(self, word: str) -> None:
        """The account has a password, and is let in with it as well."""
        with self._lock:
            self._password = word
            self._write_accounts()
            self._order(["listen"])

    def no_password(self) -> None:
        """The account has an empty password, and is let in without a key."""
        self.password("")

    def keys_only(self) -> None:
        """The account is let in with its key alone, as it was at first."""
        with self._lock:
            self._password = None
            self._write_accounts()
            self._order(["listen"])

    def new_host_key(self) -> None:
        """It has another host key than `known_hosts` says."""
        with self._lock:
            self._write_host_key()
            self._order(["listen"])

    def banner(self, text: str | None) -> None:
        """Its login shell prints this before every command."""
        with self._lock:
            self._shell = "/usr/bin/sh"
            if text is not None:
                self._shell = "/machine/noisy"
                self._write("/machine/noise", text)
                self._write("/machine/noisy", '#!/usr/bin/sh\ncat /machine/noise\nexec /usr/bin/sh "$@"\n', 0o755)
            self._write_accounts()

    # What happens to it

    def drop_connections(self) -> None:
        """Every connection ends at once; what was started through it stays."""
        self._order(["drop"])

    def reboot(self, seconds: float = 1.0) -> None:
        """Everything on it dies and /tmp is lost, before this returns; sshd is back after `seconds`."""
        self._order(["reboot", seconds])

    def full(self) -> None:
        """Its disk has no byte left."""
        filler = self.path("/disk/filler").open("ab")
        with filler:
            while free := os.statvfs(filler.fileno()).f_bavail * os.statvfs(filler.fileno()).f_frsize:
                os.posix_fallocate(filler.fileno(), os.fstat(filler.fileno()).st_size, free)

    def room(self) -> None:
        """Its disk has room again."""
        self.path("/disk/filler").unlink(missing_ok=True)

    def clock(self, seconds_ahead: float) -> None:
        """What its `date` (which no PATH has, see `date`) and the tool's log lines say."""
        self._tell(ahead_seconds=seconds_ahead)

    def fault(self, name: str) -> None:
        """How the tool misbehaves from its next call on: die, hang, silent, garbage, memory, or not at all."""
        self._tell(environment={**self._told["environment"], "STAND_IN_FAULT": name})

    def environment(self, **variables: str) -> None:
        """More variables for the tool, such as STAND_IN_HBRT."""
        self._tell(environment={**self._told["environment"], **variables})

    def slow(self, seconds: float) -> None:
        """Every infer takes this much longer, those that are waiting already too."""
        self._tell(slow_seconds=seconds)

    # What happens to the link

    def cut(self) -> None:
        """Packets vanish, either way; connections do not notice."""
        self._is_cut = True
        self._filter()

    def heal(self) -> None:
        """Packets arrive again."""
        self._is_cut = False
        self._filter()

    def loss(self, percent: float) -> None:
        """Some packets vanish, as many either way; 0: none."""
        self._loss_percent = percent
        self._filter()

    def rate(self, bits_per_second: int) -> None:
        """As much passes, either way; 0: as much as can."""
        self._bits_per_second = bits_per_second
        self._shape()

    def latency(self, milliseconds: float) -> None:
        """An answer comes this much later, half of it on either way; 0: at once."""
        with self._lock:
            self._end_slow_way()
            if not milliseconds:
                return
            near, name = _address(self._number, 1), f"slow{self._number}"
            command = (sys.executable, "-I", str(HERE / "delay.py"), f"/proc/{self._pid}", name, str(milliseconds / 2))
            self._slow_way = subprocess.Popen(
                (*self._entering_near, *command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                start_new_session=True,
            )
            assert self._slow_way.stdout is not None
            if not self._slow_way.stdout.readline():
                raise LabError("no slow way: is there /dev/net/tun?")
            self._near("ip", "link", "set", name, "up")
            self._inside("ip", "link", "set", name, "up")
            self._shape()
            self._inside("ip", "route", "replace", f"{near}/32", "dev", name, "src", self.address)
            self._near("ip", "route", "replace", f"{self.address}/32", "dev", name, "src", near)

    def _end_slow_way(self) -> None:
        """Its devices go with it, and with them its routes."""
        if self._slow_way is not None:
            self._slow_way.kill()
            self._slow_way.communicate()
            self._slow_way = None

    def _filter(self) -> None:
        with self._lock:
            rule = "drop" if self._is_cut else f"numgen random mod 10000 < {round(100 * self._loss_percent)} drop"
            rules = ["flush ruleset"]
            for hook, side in (("prerouting", "iifname"), ("postrouting", "oifname")):
                place = f"type filter hook {hook} priority -300"
                rules.append(f'table ip {hook} {{\nchain packets {{\n{place}\n{side} "lo" accept\n{rule}\n}}\n}}')
            is_used = self._is_cut or self._loss_percent
            self._inside("nft", "-f", "-", stdin="\n".join(rules if is_used else rules[:1]))
            self._shape()

    def _shape(self) -> None:
        """The rate at every device; where packets count, each is one for the kernel too, not one of a bunch."""
        with self._lock:
            bunch = "1" if self._loss_percent or self._bits_per_second else "65535"
            at = ("root", "handle", "1:", "tbf", "rate", f"{self._bits_per_second}bit", "burst", str(BURST_BYTES))
            slow = [f"slow{self._number}"] if self._slow_way is not None else []
            for run, devices in ((self._near, [self.device, *slow]), (self._inside, ["eth0", *slow])):
                run("ip", "link", "set", "dev", devices[0], "gso_max_segs", bunch)
                for device in devices:
                    if self._bits_per_second:
                        run("tc", "qdisc", "replace", "dev", device, *at, "latency", f"{QUEUE_MILLISECONDS}ms")
                    elif " tbf " in run("tc", "qdisc", "show", "dev", device):
                        run("tc", "qdisc", "delete", "dev", device, "root")

    # How that is done

    @property
    def _entering_near(self) -> tuple[str, ...]:
        """How a command is started where the near end of the link is."""
        if self._behind is None:
            return ()
        return (_program("nsenter"), f"--net=/proc/{self._behind._pid}/ns/net")

    def _near(self, *command: str) -> str:
        return _run(*self._entering_near, *command) if self._behind else _run(*command)

    def _inside(self, *command: str, stdin: str = "") -> str:
        entered = (f"--net=/proc/{self._pid}/ns/net", _program(command[0]), *command[1:])
        return _run("nsenter", *entered, stdin=stdin)

    def _order(self, order: object) -> dict[str, Any]:
        """Tell the board's first process something. Raises LabError."""
        with self._lock:
            process = self._process
            if process is None or process.stdin is None or process.stdout is None:
                raise LabError("the board is closed")
            with suppress(BrokenPipeError):
                print(json.dumps(order), file=process.stdin, flush=True)
            answer = process.stdout.readline()
            made: dict[str, Any] = json.loads(answer) if answer else {"error": "the board ended"}
            if "error" in made:
                raise LabError(f"{made['error']}: {(self.folder / 'machine.log').read_text()}")
            return made

    def _write(self, name: str, text: str, mode: int = 0o644) -> None:
        """A file of the board, replaced at once."""
        path = self.path(name)
        new = path.with_name(f".{path.name}.new")
        new.write_text(text)
        new.chmod(mode)
        new.replace(path)

    def _tell(self, **changes: Any) -> None:
        with self._lock:
            self._told.update(changes)
            self._write("/etc/stand-in.json", json.dumps(self._told))

    def _write_accounts(self) -> None:
        """The account, its password and how sshd asks for it."""
        self._write("/etc/passwd", f"root:x:0:0:root:/root:{self._shell}\nsshd:x:65532:65534::/run/sshd:/bin/false\n")
        self._write("/etc/group", "root:x:0:\nnogroup:x:65534:\n")
        field = "*" if self._password is None else _hashed(self._password)
        self._write("/etc/shadow", f"root:{field}:19000:0:99999:7:::\nsshd:*:19000:0:99999:7:::\n", 0o600)
        settings = {
            "port": self.port,
            "by_password": "no" if self._password is None else "yes",
            "by_no_password": "yes" if self._password == "" else "no",
            "more": "PerSourcePenalties no\n" if _sshd_version() >= (9, 8) else "",
        }
        self._write("/etc/ssh/sshd_config", SSHD_CONFIG.format(**settings))

    def _write_host_key(self) -> None:
        private = self.folder / "host_key"
        for path in (private, private.with_suffix(".pub")):
            path.unlink(missing_ok=True)
        _run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "board", "-f", str(private))
        self._write("/etc/ssh/host_key", private.read_text(), 0o600)

    def _plan(self) -> dict[str, Any]:
        """What the board's first process makes."""
        shown: list[tuple[str, str]] = []
        base = Path(sys.base_prefix).resolve()
        python = str(Path(sys.executable).resolve())
        copied = [(str(Path(_program(name)).resolve()), f"/usr/bin/{name}") for name in FOUND]
        copied += [(_program("sshd"), SSHD), (str(HERE / "hrt_model_exec.py"), "/machine/hrt_model_exec.py")]
        copied += [(name, name) for name in ("/etc/ld.so.cache",) if Path(name).is_file()]
        if base == Path("/usr"):
            copied.append((python, "/machine/python"))
            python = "/machine/python"
        else:
            shown.append((str(base), str(base)))
        seen = [Path("/usr/lib"), *([] if base == Path("/usr") else [base])]
        places, count = [], itertools.count()
        for path in dict.fromkeys(Path(entry).resolve() for entry in (str(TESTS), *sys.path) if entry):
            if any(path.is_relative_to(one) for one in seen):
                places.append(str(path))
            elif path.is_dir():
                places.append(f"/machine/path{next(count)}")
                shown.append((str(path), places[-1]))
        told = f"PYTHONPATH={os.pathsep.join(places)} PYTHONDONTWRITEBYTECODE=1"
        tool = f'#!/usr/bin/sh\n{told} exec {python} -s /machine/hrt_model_exec.py "$@"\n'
        date = f'#!/usr/bin/sh\nexec {python} -I -S /machine/date.py "$@"\n'
        return {
            "root": str((self.folder / "machine").resolve()),
            "port": self.port,
            "work": self.work,
            "disk_bytes": self._disk_bytes,
            "sshd": [SSHD, "-D", "-f", "/etc/ssh/sshd_config", "-E", "/machine/sshd.log"],
            "shown": shown,
            "copied": copied,
            "written": [
                ("/etc/nsswitch.conf", "passwd: files\ngroup: files\nshadow: files\n", 0o644),
                ("/etc/stand-in.json", json.dumps(self._told), 0o644),
                ("/machine/date.py", DATE, 0o644),
                (self.date, date, 0o755),
                (self.tool, tool, 0o755),
            ],
        }


def _hashed(word: str) -> str:
    """The field of a shadow file; empty for no password."""
    if not word:
        return ""
    library = ctypes.CDLL("libcrypt.so.1")
    library.crypt.restype = ctypes.c_char_p
    made: bytes = library.crypt(word.encode(), b"$6$driftgate$")
    return made.decode()


def _sshd_version() -> tuple[int, int]:
    told = subprocess.run((_program("ssh"), "-V"), capture_output=True, text=True, check=True).stderr
    found = re.search(r"OpenSSH_(\d+)\.(\d+)", told)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def wait_until(is_so: Callable[[], bool], *, seconds: float = 10.0) -> bool:
    """Whether something comes true in time."""
    end = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def ssh_command(board: TestBoard, *options: str) -> Sequence[str]:
    """The command that opens a session with `ssh`, without anything of the account that runs it."""
    given = {
        "BatchMode": "yes",
        "IdentitiesOnly": "yes",
        "IdentityFile": str(board.key),
        "UserKnownHostsFile": str(board.known_hosts),
        "GlobalKnownHostsFile": "/dev/null",
        "StrictHostKeyChecking": "yes",
        "ConnectTimeout": "5",
        "KexAlgorithms": "curve25519-sha256",  # the default takes twice as long
        "Port": str(board.port),
    }
    told = itertools.chain.from_iterable(("-o", f"{name}={value}") for name, value in given.items())
    return (_program("ssh"), "-F", "none", *options, *told, f"{board.user}@{board.address}")
