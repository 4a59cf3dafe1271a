"""The action's own environment: what is kept, what is found there already, what is removed."""

from __future__ import annotations

import base64
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from driftgate import __version__
from driftgate.errors import InstallError, UsageError
from driftgate.installation import (
    IDLE_SECONDS,
    KEPT,
    STAMP,
    Supply,
    fingerprint,
    interpreter,
    is_installed,
    prune,
    read_supply,
    tool_folder,
)

ROOT = Path(__file__).parents[2]
NOW = 1_800_000_000.0


def test_the_environment_is_kept_for_one_state_of_the_source(tmp_path: Path) -> None:
    (tmp_path / "src" / "driftgate").mkdir(parents=True)
    module = tmp_path / "src" / "driftgate" / "gate.py"
    module.write_text("LIMIT = 1\n")
    before = fingerprint(tmp_path)
    (module.parent / "gate.pyc").write_bytes(b"compiled")
    assert fingerprint(tmp_path) == before

    module.write_text("LIMIT = 2\n")
    assert fingerprint(tmp_path) != before


def test_what_cannot_be_installed_is_told_and_not_kept(tmp_path: Path) -> None:
    source, tools = tmp_path / "source", tmp_path / "tools"
    source.mkdir()
    with pytest.raises(InstallError, match=re.escape(str(source))) as caught:
        interpreter(source, tools, os.environ)

    assert [problem.code for problem in caught.value.problems] == ["install-package"]
    assert list(tools.rglob(STAMP)) == []


def test_tools_go_where_the_runner_keeps_them(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.touch()
    kept, job = str(tmp_path / "kept"), str(tmp_path / "job")

    assert tool_folder({"RUNNER_TOOL_CACHE": kept, "RUNNER_TEMP": job}) == Path(kept)
    assert tool_folder({"RUNNER_TOOL_CACHE": str(blocked / "below"), "RUNNER_TEMP": job}) == Path(job)
    with pytest.raises(UsageError):
        tool_folder({})


def test_an_installed_package_of_the_same_content_is_used(tmp_path: Path) -> None:
    site = installed(tmp_path)
    assert is_installed(ROOT, [str(site)])


@pytest.mark.parametrize("change", ["a file is another", "a file is gone", "one file more", "another version"])
def test_an_installed_package_of_other_content_is_not(tmp_path: Path, change: str) -> None:
    site = installed(tmp_path, version="0.0.9" if change == "another version" else __version__)
    module = site / "driftgate" / "cli.py"
    changes: dict[str, Callable[[], object]] = {
        "a file is another": lambda: module.write_text("pass\n"),
        "a file is gone": (site / "driftgate" / "_templates" / "summary.md.j2").unlink,
        "one file more": (site / "driftgate" / "sitecustomize.py").touch,
        "another version": site.exists,
    }
    changes[change]()
    assert not is_installed(ROOT, [str(site)])


def test_a_package_without_its_dependencies_is_not_installed(tmp_path: Path) -> None:
    site = installed(tmp_path, requires=["numpy>=1.26", "onnx>=1.16", 'pytest>=8; extra == "test"'])
    assert not is_installed(ROOT, [str(site)])
    for name in ("numpy", "onnx"):
        distribution(site, name, "9.9")
    assert is_installed(ROOT, [str(site)])


def test_nothing_is_made_where_the_package_is_there(tmp_path: Path) -> None:
    """The interpreter of a runner's image that has driftgate already, as the first step meets it."""
    image = tmp_path / "image"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(image)], check=True, timeout=60)
    (site,) = image.glob("lib/python*/site-packages")
    installed(site.parent, site=site)
    done = first_step(tmp_path, str(image / "bin" / "python"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert str(image / "bin" / "python") in (tmp_path / "output").read_text().splitlines()
    assert list((tmp_path / "tools").iterdir()) == []


def test_old_environments_go_and_the_last_ones_stay(tmp_path: Path) -> None:
    home = environment(tmp_path, "home", days=0)
    recent = [environment(tmp_path, f"recent-{day}", days=day) for day in range(KEPT + 2)]
    old = [environment(tmp_path, f"old-{day}", days=day) for day in (30, 20)]
    prune(home, now=NOW)

    assert all(folder.exists() for folder in (home, *recent)), "somebody may be working in these"
    assert [folder.exists() for folder in old] == [False, False]


def test_the_last_ones_stay_however_old_they_are(tmp_path: Path) -> None:
    home = environment(tmp_path, "home", days=0)
    old = [environment(tmp_path, f"old-{day}", days=day) for day in range(20, 20 + KEPT + 1)]
    prune(home, now=NOW)
    assert [folder.exists() for folder in old] == [True] * KEPT + [False]


def test_an_environment_that_another_runner_makes_is_left_alone(tmp_path: Path) -> None:
    home = environment(tmp_path, "home", days=0)
    old = [environment(tmp_path, f"old-{day}", days=day) for day in range(20, 20 + KEPT + 1)]
    holder = "import fcntl, sys; f = open(sys.argv[1], 'w'); fcntl.flock(f, fcntl.LOCK_EX); print(flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", holder, f"{old[-1]}.lock"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout and other.stdout.readline() == "\n"
        prune(home, now=NOW)
        assert old[-1].exists()
        other.communicate("\n", timeout=30)
    prune(home, now=NOW)
    assert not old[-1].exists()


def test_packages_come_from_one_place(tmp_path: Path) -> None:
    (tmp_path / "wheels").mkdir()
    base = {"GITHUB_WORKSPACE": str(tmp_path)}
    assert read_supply(base) == Supply()
    assert read_supply(base | {"DRIFTGATE_WHEELHOUSE": "wheels"}) == Supply(wheelhouse=tmp_path / "wheels")
    with pytest.raises(UsageError) as both:
        read_supply(base | {"DRIFTGATE_WHEELHOUSE": "wheels", "DRIFTGATE_INDEX_URL": "https://index.example"})
    with pytest.raises(UsageError) as absent:
        read_supply(base | {"DRIFTGATE_WHEELHOUSE": "whales"})
    assert [caught.value.problems[0].code for caught in (both, absent)] == [
        "install-two-sources",
        "install-wheelhouse-absent",
    ]


def test_an_index_is_asked_with_its_password_and_no_log_shows_it(tmp_path: Path) -> None:
    asked: list[tuple[str, str | None]] = []

    class Index(BaseHTTPRequestHandler):
        """Has no package, so the step fails."""

        def do_GET(self) -> None:
            asked.append((self.path, self.headers.get("Authorization")))
            self.send_error(404)

        def log_message(self, format: str, *args: object) -> None:
            """`asked` is the log."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Index) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://ci:s%40cret@127.0.0.1:{server.server_address[1]}/simple"
        # An interpreter that has driftgate already would have nothing to ask for.
        bare = getattr(sys, "_base_executable", sys.executable)
        done = first_step(tmp_path, bare, DRIFTGATE_INDEX_URL=url)
        server.shutdown()

    assert done.returncode == 2
    assert {path.split("/")[1] for path, _ in asked} == {"simple"}
    assert {authorization for _, authorization in asked if authorization} == {
        "Basic " + base64.b64encode(b"ci:s@cret").decode()
    }
    masks = [line.removeprefix("::add-mask::") for line in done.stdout.splitlines() if line.startswith("::add-mask::")]
    assert masks == [url.replace("%", "%25"), "s%2540cret", "s@cret"], "the runner hides these from here on"
    shown = "\n".join(line for line in done.stdout.splitlines() if not line.startswith("::add-mask::"))
    assert "::error title=driftgate::" in shown
    assert "cret" not in shown + done.stderr


def first_step(folder: Path, python: str, **given: str) -> subprocess.CompletedProcess[str]:
    """Run the actions' first step with tools in `folder`/tools and its outputs in `folder`/output."""
    return subprocess.run(
        ["bash", str(ROOT / "src" / "install.sh")],
        env={
            "PATH": os.environ["PATH"],
            "DRIFTGATE_PYTHON": python,
            "RUNNER_TOOL_CACHE": str(folder / "tools"),
            "GITHUB_OUTPUT": str(folder / "output"),
            **given,
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
    )


def installed(
    folder: Path, *, site: Path | None = None, version: str = __version__, requires: list[str] | None = None
) -> Path:
    """A site-packages with what a wheel of this source puts there."""
    site = site or folder / "site"
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "src" / "driftgate", site / "driftgate", ignore=ignored)
    shutil.copytree(ROOT / "templates", site / "driftgate" / "_templates")
    distribution(site, "driftgate", version, requires or [])
    return site


def distribution(site: Path, name: str, version: str, requires: list[str] | None = None) -> None:
    info = site / f"{name}-{version}.dist-info"
    info.mkdir()
    needed = "".join(f"Requires-Dist: {line}\n" for line in requires or [])
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needed}")


def environment(folder: Path, name: str, *, days: float) -> Path:
    """One that was used so many days before NOW; the limit lies beyond the fifth day."""
    assert 5 * 86400 < IDLE_SECONDS < 20 * 86400
    home = folder / name
    home.mkdir()
    (home / STAMP).touch()
    os.utime(home / STAMP, (NOW - days * 86400,) * 2)
    return home
