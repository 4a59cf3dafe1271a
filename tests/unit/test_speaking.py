"""A Chinese reader's path: terminal, reports, errors and findings in Chinese; what machines read stays English."""

from __future__ import annotations

import json
import re
import string
from pathlib import Path

import pytest

from driftgate.messages.english import ENGLISH
from driftgate.messages.languages import language_of
from driftgate.storage.document import read_results
from support.commandline import call, process
from support.languages import NAMES, WORD
from support.project import two_stages

CHINESE = {"LANG": "zh_CN.UTF-8", "LC_ALL": ""}
CJK = re.compile("[\u4e00-\u9fff]")
#: Three English words in a row are prose; names of checks and of tools have fewer.
PROSE = re.compile(r"\b[a-z]{2,}(?: [a-z']{2,}){2,}")
#: Words of the user's, of code and of names, which no language changes.
CODE = re.compile(r"`[^`]*`|\b[\w.]+/[\w./-]+|<[^>]*>|&nbsp;")


#: Operators, codes, folders and slugs of the demo's versions.
OF_THE_DEMO = {
    *("Conv", "DequantizeLinear", "Gemm", "Input", "Output", "Relu", "calibration", "not", "representative", "ERROR"),
    *("baseline", "bc", "board", "digits", "int", "json", "main", "origin", "out", "quantized", "release", "top"),
}
#: A mark of English writing between Chinese words.
ENGLISH_MARK = re.compile("[\u4e00-\u9fff）] ?[,;:(.](?: |$)|[,;:] [\u4e00-\u9fff（]", re.M)


def english_in(said: str) -> list[str]:
    """English prose in a text that should be Chinese."""
    return PROSE.findall(CODE.sub(" ", said))


@pytest.mark.parametrize(
    ("asked", "environment", "spoken"),
    [
        ("auto", {}, "en"),
        ("auto", {"LANG": "C.UTF-8"}, "en"),
        ("auto", {"LANG": "de_DE.UTF-8"}, "en"),
        ("auto", {"LANG": "zh_CN.UTF-8"}, "zh"),
        ("auto", {"LANG": "zh_TW"}, "zh"),
        ("auto", {"LANG": "zh_CN.UTF-8", "LC_ALL": "C"}, "en"),
        ("auto", {"LANG": "C", "LC_MESSAGES": "zh_CN.utf8"}, "zh"),
        ("auto", {"LANG": "zh_CN.UTF-8", "LC_ALL": ""}, "zh"),
        ("en", {"LANG": "zh_CN.UTF-8"}, "en"),
        ("zh", {}, "zh"),
    ],
)
def test_the_language_is_the_one_that_is_asked_for_else_that_of_the_locale(
    asked: str, environment: dict[str, str], spoken: str
) -> None:
    assert language_of(asked, environment) == spoken


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The demo's reports and what the terminal said, for a Chinese reader."""
    folder = tmp_path_factory.mktemp("zh")
    told = process("demo", "--fault", "calibration-range", "--out", "out", folder=folder, environment=CHINESE)
    assert (told.code, told.err) == (1, "")
    return folder / "out", told.out


@pytest.mark.parametrize("report", ["terminal", "summary.md", "comment.md"])
def test_no_english_sentence_is_left_in_what_a_person_reads(report: str, shown: tuple[Path, str]) -> None:
    out, terminal = shown
    said = terminal if report == "terminal" else (out / report).read_text("utf-8")
    assert english_in(said) == []
    assert len(CJK.findall(said)) > 200
    assert "校准" in said


@pytest.mark.parametrize("report", ["summary.md", "comment.md"])
def test_no_english_word_is_left_but_names(report: str, shown: tuple[Path, str]) -> None:
    lines = (shown[0] / report).read_text("utf-8").splitlines()
    said = CODE.sub(" ", "\n".join(line for line in lines if "CPUExecutionProvider" not in line))  # a machine's name
    assert sorted(set(WORD.findall(said)) - NAMES) == []


@pytest.mark.parametrize("report", ["terminal", "summary.md", "comment.md"])
def test_no_english_mark_stands_between_chinese_words(report: str, shown: tuple[Path, str]) -> None:
    out, terminal = shown
    assert ENGLISH_MARK.findall(terminal if report == "terminal" else (out / report).read_text("utf-8")) == []


def test_versions_and_gates_are_told_in_chinese(shown: tuple[Path, str], tmp_path: Path) -> None:
    out, _ = shown
    assert call("demo", "--out", tmp_path / "main").code == 0
    told = process("compare", str(tmp_path / "main"), str(out), environment=CHINESE)
    assert (told.code, told.err) == (1, "")
    config = tmp_path / "driftgate.yaml"
    config.write_text(
        "version: 1\nsubjects: {digits: {artifacts: {onnx: a.onnx, optimized_float: b.onnx}, samples: {raw: c.npz}}}\n"
        "policies: {release: {samples: 9, regressions: fail, same-commit: true}}\n"
    )
    gated = process("gate", str(out), "-c", str(config), "--policy", "release", environment=CHINESE)
    assert (gated.code, gated.err) == (1, "")
    for said in (told.out, gated.out):
        assert ENGLISH_MARK.findall(said) == []
        assert sorted(set(WORD.findall(CODE.sub(" ", said))) - NAMES - OF_THE_DEMO) == []


def test_what_machines_read_is_english(shown: tuple[Path, str], tmp_path: Path) -> None:
    out, _ = shown
    assert call("demo", "--fault", "calibration-range", "--out", tmp_path / "en").code == 1
    for name in ("junit.xml", "driftgate.log", "results.json"):
        assert not CJK.search((out / name).read_text("utf-8")), name
    ours, theirs = (json.loads((folder / "results.json").read_bytes()) for folder in (out, tmp_path / "en"))
    assert (ours["tool"].pop("language"), theirs["tool"].pop("language")) == ("zh", "en")
    assert ours["judgement"] == theirs["judgement"]
    explained = process("explain", str(out), "--json", environment=CHINESE)
    assert not CJK.search(explained.out)


def test_a_configuration_error_and_a_wrong_command_are_said_in_chinese(tmp_path: Path) -> None:
    config = two_stages(tmp_path).write(policies={"release": {"frobnicate": 1}})
    told = process("check", "-c", str(config), environment=CHINESE)
    assert (told.code, told.out) == (2, "")
    assert english_in(told.err.replace(str(tmp_path), "")) == []
    assert CJK.search(told.err)
    assert "frobnicate" in told.err


def test_reasons_within_reasons_are_of_one_language(tmp_path: Path) -> None:
    """A stage that cannot run, whose reason is a message of its own."""
    made = two_stages(tmp_path)
    made.artifacts["pytorch"] = {"backend": "torch", "python": ["sh", "-c", "exit 3"], "load": "net:load"}
    told = process("check", "-c", str(made.write()), "--out", str(tmp_path / "out"), environment=CHINESE)
    assert told.code == 2
    assert english_in(told.out.replace(str(tmp_path), "")) == []


def test_the_command_line_outranks_the_configuration_and_that_the_locale(tmp_path: Path) -> None:
    made = two_stages(tmp_path, shift=0.5)
    chinese = made.write(defaults={"lang": "zh"})
    for arguments, environment, spoken in (
        ((), {}, "zh"),
        (("--lang", "en"), {}, "en"),
        ((), {"DRIFTGATE_LANG": "en"}, "en"),
        ((), {"DRIFTGATE_LANG": "auto", "LANG": "C"}, "zh"),
    ):
        out = tmp_path / "out"
        told = process(*arguments, "check", "-c", str(chinese), "--out", str(out), environment=environment)
        assert told.code == 1
        assert read_results(out).tool.language == spoken
        assert bool(CJK.search((out / "summary.md").read_text("utf-8"))) is (spoken == "zh")


def test_a_report_made_anew_speaks_as_it_is_asked(shown: tuple[Path, str], tmp_path: Path) -> None:
    out, _ = shown
    assert process("--lang", "zh", "report", str(out), "--out", str(tmp_path / "a")).code == 1
    assert CJK.search((tmp_path / "a" / "summary.md").read_text("utf-8"))
    assert process("report", str(out), "--out", str(tmp_path / "b"), environment={"LANG": "C", "LC_ALL": ""}).code == 1
    assert not CJK.search((tmp_path / "b" / "summary.md").read_text("utf-8"))


def test_prose_is_found_where_there_is_some() -> None:
    """What these tests look for is what the English catalogue has."""
    long = [said for said in ENGLISH.values() if len(said.split()) > 8]
    words = [" ".join(part for part, *_ in string.Formatter().parse(said)) for said in long]
    assert sum(bool(english_in(said)) for said in words) > 0.9 * len(words)
