"""The workflow's build: the user's commands, what goes on to other jobs, and digests of what it was made from."""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from driftgate.building import build
from driftgate.errors import UsageError


class Built:
    """One run of the step in a folder with a.txt and sub/b.txt."""

    def __init__(self, root: Path, commands: str, outputs: str = "") -> None:
        self.out = root / "made"
        workspace = root / "work"
        (workspace / "sub").mkdir(parents=True)
        (workspace / ".git").mkdir()
        (workspace / ".git" / "config").write_text("x")
        (workspace / "a.txt").write_text("a")
        (workspace / "sub" / "b.txt").write_text("b")
        document = root / "provenance.json"
        environment = {
            "PATH": "/usr/bin:/bin",
            "GITHUB_WORKSPACE": str(workspace),
            "GITHUB_RUN_ID": "42",
            "GITHUB_TOKEN": "ghs_secret",
            "DRIFTGATE_SHA": "1" * 40,
            "DRIFTGATE_BUILD": f'cd "{workspace}"\n{commands}',
            "DRIFTGATE_OUTPUTS": outputs,
            "DRIFTGATE_OUT": str(self.out),
            "DRIFTGATE_PROVENANCE": str(document),
        }
        clock = iter((100.0, 107.5))
        self.code = build(environment, sys.stdout, lambda: next(clock))
        self.document: dict[str, Any] = json.loads(document.read_text("utf-8")) if document.exists() else {}

    @property
    def made(self) -> dict[str, str]:
        """Path → text of what goes on."""
        return {
            path.relative_to(self.out).as_posix(): path.read_text() for path in self.out.rglob("*") if path.is_file()
        }


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def test_new_and_changed_files_go_on_with_their_digests(tmp_path: Path) -> None:
    done = Built(tmp_path, "mkdir -p out/deep; echo -n c > out/deep/c.bc; echo -n A > a.txt; echo -n b > sub/b.txt")
    assert done.code == 0
    assert done.made == {"out/deep/c.bc": "c", "a.txt": "A"}
    assert done.document["inputs"] == {"a.txt": sha256("a"), "sub/b.txt": sha256("b")}
    assert done.document["outputs"] == {"a.txt": sha256("A"), "out/deep/c.bc": sha256("c")}
    assert (done.document["sha"], done.document["run"], done.document["seconds"]) == ("1" * 40, "42", 7.5)


def test_patterns_choose_files_and_folders(tmp_path: Path) -> None:
    done = Built(tmp_path, "mkdir -p m/x; echo 1 > m/x/n.bc; echo 2 > k.hbm; echo 3 > k.log", "m\n\n*.hbm\nsub/b.txt\n")
    assert sorted(done.made) == ["k.hbm", "m/x/n.bc", "sub/b.txt"]


def test_commands_that_fail_are_the_steps_failure(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    done = Built(tmp_path, "echo '::error::planted'; false; echo -n late > late")
    assert (done.code, done.document, done.out.exists()) == (1, {}, False)
    printed = capfd.readouterr().out
    assert printed.index("::stop-commands::") < printed.index("::error::planted")
    assert "ended with exit code 1" in printed


@pytest.mark.parametrize(
    ("commands", "outputs", "said"),
    [
        ("true", "", "made nothing"),
        ("echo > x", "*.bc", "made nothing"),
        ("echo > x", "/etc/passwd", "leads out"),
        ("echo > x", "../*", "leads out"),
        ("ln -s /etc/passwd x", "x", "made nothing"),
    ],
)
def test_a_build_without_outputs_of_its_own_is_an_error(commands: str, outputs: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=said):
        Built(tmp_path, commands, outputs)


def test_commands_see_no_token(tmp_path: Path) -> None:
    done = Built(tmp_path, 'echo -n "${GITHUB_TOKEN:-none}" > seen')
    assert done.made == {"seen": "none"}
