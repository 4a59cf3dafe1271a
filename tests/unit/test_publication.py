"""The action's publishing step: which reports it finds, what it asks the verb for, and what its end means."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from driftgate.action import PUBLICATION, RESULTS
from driftgate.publication import reports, run
from support.runnerreads import commands_in, outputs_in

#: A stand-in for `driftgate comment`: the real one, against a GitHub on the loopback interface, is tests/act.
ADDRESS = "https://github.com/acme/models/pull/7#issuecomment-1001"
VERB = "import json, os, sys; print(json.dumps([sys.argv[1:], os.environ.get('GITHUB_TOKEN')]));"


@dataclass(frozen=True, slots=True)
class Step:
    """What a step left behind: its exit code and log, and the verb's arguments and token, once for each report."""

    code: int
    printed: str
    asked: tuple[tuple[list[str], str | None], ...]
    address: str | None


def report(folder: Path, key: object = "gate-0a1b2c3d") -> Path:
    folder.mkdir(parents=True)
    (folder / RESULTS).write_text("{}")
    (folder / PUBLICATION).write_text(json.dumps({"key": key}))
    return folder


def publish(folder: Path, capfd: pytest.CaptureFixture[str], verb: str = "", **inputs: str) -> Step:
    given = {"report": "driftgate-out", "comment": "auto", "delete_when_green": "false"} | inputs
    environment = {
        "GITHUB_WORKSPACE": str(folder),
        "GITHUB_OUTPUT": str(folder / "output"),
        "GITHUB_TOKEN": "ghs_actions",
    } | {f"DRIFTGATE_{name.upper()}": value for name, value in given.items()}
    code = run(environment, sys.stdout, (sys.executable, "-c", VERB + verb))
    printed = capfd.readouterr().out
    output = folder / "output"
    return Step(
        code=code,
        printed=printed,
        asked=tuple(tuple(json.loads(line)) for line in printed.splitlines() if line.startswith("[[")),
        address=outputs_in(output.read_text("utf-8")).get("comment-url") if output.exists() else None,
    )


def test_a_report_is_published_with_all_that_is_known_of_it(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    out = report(tmp_path / "driftgate-out")
    done = publish(
        tmp_path,
        capfd,
        f"print('commented on #7: {ADDRESS} (3 requests)')",
        delete_when_green="true",
        template="ci/comment.md.j2",
        archive_url="https://github.com/acme/models/actions/runs/1/artifacts/2",
        archive_digest="ab" * 32,
    )
    assert done.code == 0
    assert done.address == ADDRESS
    arguments = [
        *("comment", str(out), "--mode=auto", "--delete-when-green", "--key=gate-0a1b2c3d"),
        *("--template=ci/comment.md.j2", "--archive-url=https://github.com/acme/models/actions/runs/1/artifacts/2"),
        f"--archive-digest={'ab' * 32}",
    ]
    assert done.asked == ((arguments, "ghs_actions"),)


@pytest.mark.parametrize(
    ("mode", "level", "code"), [("auto", "warning", 0), ("on-failure", "warning", 0), ("always", "error", 2)]
)
def test_a_comment_that_cannot_be_made_fails_the_step_only_where_it_must_be(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], mode: str, level: str, code: int
) -> None:
    report(tmp_path / "driftgate-out")
    done = publish(tmp_path, capfd, "sys.exit(2)", comment=mode)
    assert done.code == code
    assert f"::{level} title=driftgate::the comment could not be published (exit code 2)" in done.printed
    assert done.address == ""


@pytest.mark.parametrize(("mode", "level", "code"), [("auto", "notice", 0), ("always", "error", 2)])
def test_without_a_report_there_is_nothing_to_publish(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], mode: str, level: str, code: int
) -> None:
    done = publish(tmp_path, capfd, comment=mode)
    assert (done.code, done.asked) == (code, ())
    assert f"::{level} title=driftgate::no report to publish below" in done.printed


def test_every_report_of_a_download_is_published_under_its_own_key(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """download-artifact makes a folder for each of several artifacts, and none for a single one."""
    for name in ("b", "a"):
        report(tmp_path / "reports" / name, key=name)
    (tmp_path / "reports" / "else").mkdir()
    done = publish(tmp_path, capfd, "sys.exit('/b' in sys.argv[2])", report="reports")

    asked = [(arguments[1], arguments[-1]) for arguments, _ in done.asked]
    assert asked == [(str(tmp_path / "reports" / name), f"--key={name}") for name in ("a", "b")]
    assert done.code == 0
    assert done.printed.count("::warning") == 1


@pytest.mark.parametrize("key", [7, None, ["a"], "", "a\0b", "a b", "\ud800", "x" * 1000, "a\n--login=x"])
def test_a_key_of_another_form_counts_as_none(tmp_path: Path, key: object) -> None:
    assert [found.key for found in reports(report(tmp_path / "out", key))] == [""]


@pytest.mark.parametrize("content", ["", "[]", "null", "[" * 100_000])
def test_a_file_of_another_form_has_no_key(tmp_path: Path, content: str) -> None:
    out = report(tmp_path / "out")
    (out / PUBLICATION).write_text(content)
    assert [found.key for found in reports(out)] == [""]


def test_the_runner_takes_no_command_from_what_the_verb_prints(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    report(tmp_path / "driftgate-out")
    done = publish(tmp_path, capfd, "print('::set-env name=PATH::/evil'); print('::error::no', end='')")
    stop = next(line for line in done.printed.splitlines() if line.startswith("::stop-commands::"))
    resume = f"\n::{stop.removeprefix('::stop-commands::')}::\n"
    before, _, rest = done.printed.partition(stop)
    quiet, _, after = rest.partition(resume)
    assert "::set-env" in quiet
    assert "::error" in quiet
    assert commands_in(before) + commands_in(after) == []
