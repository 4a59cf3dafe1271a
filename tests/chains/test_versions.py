"""Versions of the embedded demo, built and run: a better score with a worse INT8, another toolchain, other samples.

Each step changes one thing, and the comparison says that thing and no other.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from jsonschema import Draft202012Validator
from numpy.typing import NDArray
from scipy.stats import binomtest  # type: ignore[import-untyped,unused-ignore]

from driftgate.comparing.compare import compare_results
from driftgate.comparing.trend import trends
from driftgate.demo.build import build
from driftgate.demo.network import LOGITS, load, load_weights
from driftgate.domain.comparisons import Change, Comparison, Moved, RowKind, Thing
from driftgate.storage.comparison import comparison_schema, encode_comparison
from driftgate.storage.document import read_results
from support.commandline import call, process
from support.demoversions import HELD_OUT, MOVED, PREFIX, TARGET, Version, coarser, early, widened, written
from support.vendor.options import HBDK, HMCT

FLOAT, INTEGER = ("pytorch", "onnx", "optimized_float"), ("calibrated", "ptq", "quantized", "hbm")
INT8_LINK, BC_LINK = "optimized_float..calibrated", "ptq..quantized"
NEWER_HBDK, NEWER_HMCT = "4.12.3", "2.9.0"
CHANNEL, FACTOR = 5, 128
#: 40 samples gone, 80 that nobody has had before: 320 in common.
OTHER_SAMPLES = (*HELD_OUT[40:], *MOVED[:80])
#: The share of those that INT8 loses is above the limit among so few.
FEW_SAMPLES = range(212, 272)
HISTORY = ("v1", "v2", "v3", "v4")
#: By chance alone a split as unequal is rarer than this.
CHANCE = 0.05

Said = dict[str, Any]
Keys = set[tuple[str, ...]]


def planned() -> Mapping[str, Version]:
    """v1: little training; v2: all of it, with a wide channel; v3: another hbdk; v4: other samples. And by themselves:
    v2 by an hmct that computes what the former did, v4 in files of its own, v3 with other labels, few of v1's samples.
    """
    short, whole = early(steps=2), widened(load_weights(), CHANNEL, FACTOR)
    newer: dict[str, Any] = {"hbdk": NEWER_HBDK, "compiled": coarser}
    return {
        "v1": Version(short),
        "v2": Version(whole),
        "v3": Version(whole, **newer),
        "v4": Version(whole, **newer, samples=OTHER_SAMPLES),
        "rebuilt": Version(whole, hmct=NEWER_HMCT),
        "packed": Version(whole, **newer, samples=OTHER_SAMPLES, packed=True),
        "relabelled": Version(whole, **newer, mislabelled=HELD_OUT[:20]),
        "few": Version(short, samples=FEW_SAMPLES),
    }


@pytest.fixture(scope="module")
def versions(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    """Every version checked: its name → the folder of its results, with the project in it."""
    root = tmp_path_factory.mktemp("versions")
    for name, version in planned().items():
        told = call("check", "-c", written(root / name / "project", version), "--out", root / name)
        assert told.code == (0 if name == "v1" else 1), told.out + told.err
    return {name: root / name for name in planned()}


def compared(*folders: Path) -> Said:
    """What the verb prints as JSON."""
    told = call("compare", *folders, "--json")
    document: Said = told.json
    assert (told.code, told.err) == (document["exit_code"], "")
    return document


def only(document: Said) -> Said:
    """The one subject of the one step."""
    (step,) = document["comparisons"]
    (one,) = step["subjects"]
    found: Said = one
    return found


def those(one: Said, *changes: str) -> Keys:
    """Kind and key of the rows that came to one of these."""
    return {(row["kind"], *row["key"]) for row in one["rows"] if row["change"] in changes}


def row(one: Said, kind: str, *key: str) -> Said:
    (found,) = [row for row in one["rows"] if (row["kind"], *row["key"]) == (kind, *key)]
    wanted: Said = found
    return wanted


def changed(one: Said) -> list[tuple[str, ...]]:
    """What besides the numbers is another one; artifacts by stage only."""
    return [
        (it["what"], it["name"]) if it["what"] == "artifact" else (it["what"], it["name"], it["base"], it["head"])
        for it in one["changed"]
    ]


def artifacts(*stages: str) -> list[tuple[str, ...]]:
    return [("artifact", stage) for stage in stages]


def scores(*stages: str) -> Keys:
    return {("score", stage, "top1") for stage in stages}


# --- what the versions are


def test_the_version_with_nothing_changed_is_the_demo(tmp_path: Path) -> None:
    """And one channel widened is the same network in float, to the bit."""
    demo, ours, wide = build(tmp_path / "demo").parent, tmp_path / "ours", tmp_path / "wide"
    written(ours, Version())
    written(wide, Version(widened(load_weights(), CHANNEL, FACTOR)))
    models = {"onnx": "stages/original.onnx"}
    models |= {stage: f"build/{PREFIX}_{stage}_model.onnx" for stage in ("optimized_float", "calibrated", "ptq")}
    for stage, path in models.items():
        theirs = demo / "stages" / f"{'original' if stage == 'onnx' else stage}.onnx"
        assert onnx.load(str(ours / path)).graph == onnx.load(str(theirs)).graph, stage
    count = len(HELD_OUT)
    for stage in ("quantized", "hbm"):
        assert np.array_equal(recorded(ours, stage)[:count], recorded(demo, stage)), stage
    assert np.allclose(recorded(ours, "pytorch")[:count], recorded(demo, "pytorch"), rtol=0, atol=1e-4)
    assert np.array_equal(recorded(ours, "pytorch"), recorded(wide, "pytorch"))
    assert not np.array_equal(recorded(ours, "hbm"), recorded(wide, "hbm"))


def recorded(project: Path, stage: str) -> NDArray[Any]:
    """The logits of a recording."""
    with np.load(project / "stages" / f"{stage}.npz") as archive:
        found: NDArray[Any] = archive[LOGITS]
        return found


# --- a better score with a worse INT8


def test_a_better_score_with_a_worse_int8_is_said_so(versions: Mapping[str, Path]) -> None:
    document = compared(versions["v1"], versions["v2"])
    one = only(document)
    assert (document["change"], document["exit_code"]) == ("worse", 1)
    assert changed(one) == artifacts(*FLOAT, *INTEGER)
    assert those(one, "better") == scores(*FLOAT)
    assert those(one, "worse") == {
        ("check", "float-int8"),
        ("check", "board"),  # the score that is left at the end
        *scores(*INTEGER),
        ("loss", INT8_LINK, "top1"),
        ("link", INT8_LINK, "logits"),
        ("finding", INT8_LINK, "sensitive-nodes"),
    }
    assert len(one["rows"]) == len(those(one, "better", "worse", "same"))
    assert one["moved"]["at"] == INT8_LINK
    assert one["paired"] == {"common": 360, "base": 360, "head": 360}
    assert row(one, "check", "pytorch-onnx")["head_text"] == "passed"
    assert row(one, "check", "onnx-optimized")["head_text"] == "passed"


def test_both_are_beyond_the_noise(versions: Mapping[str, Path]) -> None:
    """Zero is in no interval; nor would chance split the samples so that only one of the versions gets right."""
    one = only(compared(versions["v1"], versions["v2"]))
    for stage in FLOAT:
        score = row(one, "score", stage, "top1")
        assert (score["n"], score["head_text"]) == (360, "356/360")
        assert score["low"] < score["high"] < 0, "more is worse"
    worse = [row(one, "score", stage, "top1") for stage in INTEGER] + [row(one, "loss", INT8_LINK, "top1")]
    assert all(0 < it["low"] < it["high"] for it in worse)
    growth = row(one, "link", INT8_LINK, "logits")
    assert 10 < growth["low"] < growth["high"]
    labels = load("digits")["labels"]
    for stage, is_better in (("pytorch", True), ("hbm", False)):
        old, new = (recorded(versions[name] / "project", stage)[:360].argmax(1) == labels for name in ("v1", "v2"))
        lost, won = int((old & ~new).sum()), int((new & ~old).sum())
        assert (won > lost) is is_better, stage
        assert binomtest(won, won + lost).pvalue < CHANCE, stage


def test_the_verb_says_what_the_comparison_is(versions: Mapping[str, Path]) -> None:
    found = held(versions, "v1", "v2")
    document = compared(versions["v1"], versions["v2"])
    Draft202012Validator(dict(comparison_schema())).validate(document)
    assert document == json.loads(encode_comparison((found,), found))
    (one,) = found.subjects
    assert (found.change, found.exit_code, one.moved) == (Change.WORSE, 1, Moved(INT8_LINK))
    assert {(it.kind.value, *it.key) for it in one.worse} == those(only(document), "worse")
    assert {it.key[0] for it in one.better if it.kind is RowKind.SCORE} == set(FLOAT)
    assert [it.what for it in one.changed] == [Thing.ARTIFACT] * 7


def held(versions: Mapping[str, Path], base: str, head: str) -> Comparison:
    """Two versions held against each other by hand."""
    return compare_results(read_results(versions[base]), read_results(versions[head]), labels=(base, head))


def test_the_way_back_begins_at_the_network_itself(versions: Mapping[str, Path]) -> None:
    one = only(compared(versions["v2"], versions["v1"]))
    assert those(one, "worse") == scores(*FLOAT)
    assert one["moved"]["at"] == "pytorch"
    assert ("loss", INT8_LINK, "top1") in those(one, "better")


# --- another toolchain


def test_a_toolchain_only_change_is_said_so(versions: Mapping[str, Path]) -> None:
    """Another compiler, less exact: what it makes is another .bc and .hbm, and the first of them is off."""
    document = compared(versions["v2"], versions["v3"])
    one = only(document)
    assert document["exit_code"] == 1
    assert changed(one) == [*artifacts("quantized", "hbm"), ("toolchain", "hbdk", HBDK, NEWER_HBDK)]
    assert those(one, "worse") == {("link", BC_LINK, "logits")}
    assert len(those(one, "same")) == len(one["rows"]) - 1
    assert one["moved"]["at"] == BC_LINK
    assert row(one, "link", BC_LINK, "logits")["low"] > 1.1


def test_a_toolchain_that_computes_the_same_is_no_change_of_the_network(versions: Mapping[str, Path]) -> None:
    document = compared(versions["v2"], versions["rebuilt"])
    one = only(document)
    assert (document["change"], document["exit_code"]) == ("same", 0)
    made = artifacts("optimized_float", "calibrated", "ptq")
    assert changed(one) == [*made, ("toolchain", "hmct", HMCT, NEWER_HMCT)]
    assert those(one, "same") == {(it["kind"], *it["key"]) for it in one["rows"]}
    assert one["moved"] is None


# --- other samples


def test_a_data_change_is_said_so(versions: Mapping[str, Path]) -> None:
    """The same artifacts; of 360 samples 40 are gone, and 80 are new, which are harder."""
    document = compared(versions["v3"], versions["v4"])
    one = only(document)
    assert (document["change"], document["exit_code"]) == ("same", 0)
    assert changed(one) == [("samples", PREFIX, "360", "400")]
    assert one["paired"] == {"common": 320, "base": 360, "head": 400}
    assert those(one, "same") == {(it["kind"], *it["key"]) for it in one["rows"]}
    assert one["moved"] is None
    assert {it["n"] for it in one["rows"] if it["kind"] in ("score", "loss", "link")} == {320}
    score = row(one, "score", "pytorch", "top1")
    assert (score["base_text"], score["head_text"]) == ("316/320", "316/320")


def test_scores_of_the_common_samples_are_compared_whatever_file_their_labels_lie_in(
    versions: Mapping[str, Path],
) -> None:
    """The samples have other names, and the labels another file: with other samples they always have."""
    one = only(compared(versions["v3"], versions["packed"]))
    assert one["paired"] == {"common": 320, "base": 360, "head": 400}
    assert those(one, "same") >= scores(*FLOAT, *INTEGER)
    assert len([it for it in one["rows"] if it["kind"] == "loss"]) == 6
    assert [it for it in changed(one) if it[0] == "scoring"] == []


def test_recordings_of_other_samples_are_no_other_artifacts(versions: Mapping[str, Path]) -> None:
    one = only(compared(versions["v3"], versions["packed"]))
    assert [it for it in changed(one) if it[0] == "artifact"] == []


def test_other_labels_leave_nothing_to_say_of_scores(versions: Mapping[str, Path]) -> None:
    document = compared(versions["v3"], versions["relabelled"])
    one = only(document)
    assert [it[:2] for it in changed(one)] == [("scoring", "top1 labels")]
    assert those(one, "unknown") == scores(*FLOAT, *INTEGER)
    assert (document["change"], document["exit_code"]) == ("unknown", 2)


def test_a_check_that_fails_on_other_samples_is_no_regression(versions: Mapping[str, Path]) -> None:
    """Of 360 samples INT8 loses one, of 60 of them the same one, which is above the limit. All numbers of the common
    samples are the same."""
    document = compared(versions["v1"], versions["few"])
    one = only(document)
    assert changed(one) == [("samples", PREFIX, "360", "60")]
    assert row(one, "check", "float-int8")["head_text"] == "failed"
    assert {it["change"] for it in one["rows"] if it["kind"] in ("score", "loss", "link")} == {"same"}
    assert those(one, "worse") == set()
    assert document["exit_code"] != 1


# --- a history


SENTENCES = {
    "en": {
        "v1 → v2": (
            "It begins at optimized_float..calibrated",
            "other artifacts: pytorch, onnx, optimized_float, calibrated, ptq, quantized, hbm",
            "9 worse, 3 better",
            "better: score top1 at pytorch, ",
            "worse: loss of top1 on optimized_float..calibrated, ",
        ),
        "v2 → v3": (
            "It begins at ptq..quantized",
            f"other artifacts: quantized, hbm; another toolchain: hbdk {HBDK} → {NEWER_HBDK}",
            "worse: error of logits on ptq..quantized, ",
        ),
        "v3 → v4": (
            "the same as v3, within the noise",
            "compared on the 320 samples that both have, of 360 and 400",
            "What else changed: other samples (digits): 360 → 400",
        ),
    },
    "zh": {
        "v1 → v2": (
            "从 optimized_float..calibrated 开始",
            "产物不同：pytorch、onnx、optimized_float、calibrated、ptq、quantized、hbm",
            "9 项变差，3 项变好",
            "变好：pytorch 的得分 top1，",
            "变差：top1 在 optimized_float..calibrated 上的损失，",
        ),
        "v2 → v3": (
            "从 ptq..quantized 开始",
            f"产物不同：quantized、hbm；工具链不同：hbdk {HBDK} → {NEWER_HBDK}",
            "变差：logits 在 ptq..quantized 上的误差，",
        ),
        "v3 → v4": (
            "与 v3 相同（在噪声范围内）",
            "在双方共有的 320 个样本上比较（基线 360 个，当前 400 个）",
            "还有什么变化：样本不同（digits）：360 → 400",
        ),
    },
}
COLON, BEGINS, WORSE = {"en": ": ", "zh": "："}, {"en": "It begins at", "zh": "开始"}, {"en": "worse:", "zh": "变差："}
TREND = {"en": "From version to version", "zh": "各版本的变化"}


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_history_is_told_step_by_step(language: str, versions: Mapping[str, Path]) -> None:
    told = process("--lang", language, "compare", *folders(versions, HISTORY))
    assert (told.code, told.err) == (1, "")
    steps, trend = told.out.split(TREND[language])
    parts = dict(zip(SENTENCES[language], blocks(steps, language), strict=True))
    for step, sentences in SENTENCES[language].items():
        assert [it for it in sentences if it not in parts[step]] == [], parts[step]
    assert parts["v2 → v3"].count(WORSE[language]) == 1
    assert WORSE[language] not in parts["v3 → v4"]
    assert BEGINS[language] not in parts["v3 → v4"]
    assert INT8_LINK in trend
    assert BC_LINK in trend


def blocks(said: str, language: str) -> list[str]:
    """What is said of each step."""
    titles = [f"{PREFIX} {TARGET}{COLON[language]}{step}" for step in SENTENCES[language]]
    starts = [said.index(title) for title in titles]
    return [said[start:end] for start, end in zip(starts, [*starts[1:], len(said)], strict=True)]


def folders(versions: Mapping[str, Path], names: Sequence[str]) -> list[Path]:
    return [versions[name] for name in names]


def test_three_versions_are_a_trend(versions: Mapping[str, Path]) -> None:
    told = call("--lang", "en", "compare", *folders(versions, HISTORY[:3]))
    assert told.code == 1
    lines = trend_of(told.out)
    assert lines["score top1 at pytorch"][1:] == ["356/360", "356/360", "▁██"]
    assert lines[f"loss of top1 on {INT8_LINK}"][-1] == "▁██"
    assert lines[f"error of logits on {BC_LINK}"][-1] == "▁▁█"
    assert {name.split()[-1] for name in lines if "logits" in name} == {INT8_LINK, BC_LINK}
    found = {(it.row.kind, *it.row.key): it for it in trends([held(versions, "v1", "v2"), held(versions, "v2", "v3")])}
    score = found[RowKind.SCORE, "hbm", "top1"]
    assert (score.worst, len(score.values)) == (Change.WORSE, 3)
    assert score.values[0] > score.values[1]


def trend_of(said: str) -> dict[str, list[str]]:
    """The table of a trend: what it is → its number in each version, and the bars."""
    rows = [re.split(r"  +", line) for line in said.splitlines() if line[-1:] in {*"▁▂▃▄▅▆▇█"}]
    return {what: numbers for _, what, *numbers in rows}


def test_the_last_against_the_first_tells_the_exit_code(versions: Mapping[str, Path]) -> None:
    """From v3 on nothing is worse; from v1 on something is."""
    whole = compared(*folders(versions, HISTORY))
    assert [step["base"]["label"] + step["head"]["label"] for step in whole["comparisons"]] == ["v1v2", "v2v3", "v3v4"]
    assert whole["exit_code"] == 1
    assert compared(*folders(versions, ("v3", "v4", "v3")))["exit_code"] == 0
    assert call("compare", *folders(versions, ("v1", "v2", "v1"))).code == 0


def test_a_trend_moves_only_where_a_version_does(versions: Mapping[str, Path]) -> None:
    """v2, v3 and v4 have one network in float; that v4 has other samples must not show as a movement before it."""
    told = call("--lang", "en", "compare", *folders(versions, HISTORY))
    _, second, third, fourth, _ = trend_of(told.out)["score top1 at pytorch"]
    assert second == third == fourth
