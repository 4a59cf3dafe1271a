"""results.json and facts.npz: what is written comes back, and what is wrong with a document is said."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from jsonschema import Draft202012Validator

from driftgate.commands.schema import SCHEMAS as SCHEMAS_OF
from driftgate.domain.chain import LinkKind
from driftgate.domain.facts import Facts, ToolFacts
from driftgate.domain.investigations import Investigation, NodeError, Pair, Trial, TrialResult
from driftgate.domain.judgement import Limit, LimitOrigin, Policy
from driftgate.domain.results import Results, Tool
from driftgate.domain.runs import Performance, Recording, performance
from driftgate.errors import StorageError
from driftgate.judgement.judge import judge
from driftgate.messages.message import message
from driftgate.storage.document import FACTS, RESULTS, encode_results, read_results
from driftgate.storage.folder import write_all
from driftgate.storage.npz import npz_bytes
from support.commandline import call
from support.golden import FOLDER
from support.judging import a_plan, leg_facts
from support.project import whole_chain
from support.results import hostile

TOOL = Tool("driftgate", "0.1.0")
GOLDEN = FOLDER / "results-v1"
GOLDEN_POLICY = Policy(
    "golden",
    (
        ("pytorch-onnx", (Limit("range", 1e-4, LimitOrigin.POLICY),)),
        ("baseline", (Limit("score-drop", 0.01, LimitOrigin.POLICY),)),
    ),
)
SCHEMAS = Path(__file__).parents[2] / "schemas"
Edit = Callable[[dict[str, Any]], None]


def facts(after: float = float("inf")) -> Facts:
    """Facts of every kind, with numbers that are not finite; `after` is that of a trial."""
    a = [{"y": np.array([[1.0, 2.0, np.inf, 4.0]], np.float32) * scale} for scale in (1, 2, 3)]
    b = [{"y": tensor["y"] + np.float32(1e-6)} for tensor in a]
    b[1]["y"][0, 1] = np.nan
    plan = a_plan(LinkKind.EQUIVALENT, 3, block=2)
    made = leg_facts(plan, plan.samples.blocks, a, b)
    table = made.measurements[0].rows
    pair = Pair("h_a", "h_b", "structure", 0.5, (0, 2, 1))
    return replace(
        made,
        performance=(
            Performance("b@1", 1.5, None, frames=10, threads=2, core="0"),
            performance("b@1", (1.5, 1.4), (700.0,), source="hrt_model_exec perf", threads=1, memory_bytes=2**20),
        ),
        recordings=(Recording("b", "b@1", "0000", (("y", "digest"),)),),
        investigations=(
            Investigation(
                "a..b",
                pairs=(pair,),
                unpaired_a=("q",),
                nodes=(NodeError(pair, "Conv", 3, ("Pad", "Conv"), table, None, float("inf"), ((2, 9.5),), step=0.5),),
                trials=(
                    Trial("layout", "transpose", (("axes", ("0", "1")),), "y", 1.0, after, 0.0, TrialResult.REFUTED),
                ),
                runs=2,
                seconds=0.5,
                notes=(message("bit-equal"),),
            ),
        ),
        tool_facts=(ToolFacts("hb_compile", "log", (("nodes", 12), ("march", "nash-m"), ("ratio", 0.5))),),
    )


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """A folder with results that were judged."""
    made = facts()
    write_all(tmp_path, encode_results(Results(TOOL, (made,), (judge(made, Policy()),))))
    return tmp_path


def edited(folder: Path, edit: Edit) -> Path:
    """The same folder after an edit of its results.json."""
    document = json.loads((folder / RESULTS).read_text("utf-8"))
    edit(document)
    (folder / RESULTS).write_text(json.dumps(document), encoding="utf-8")
    return folder


def refusal(path: Path) -> tuple[str, str]:
    """Code and sentence of the refusal to read."""
    with pytest.raises(StorageError) as caught:
        read_results(path)
    (problem,) = caught.value.problems
    return problem.code, str(caught.value)


def test_what_is_written_comes_back(written: Path) -> None:
    made = facts()
    back = read_results(written)
    assert (back.tool, back.facts, back.judgements) == (TOOL, (made,), (judge(made, Policy()),))
    assert read_results(written / RESULTS) == back


def test_the_same_results_give_the_same_bytes(written: Path) -> None:
    again = encode_results(read_results(written))
    assert {name: (written / name).read_bytes() for name in again} == again


def test_a_shard_has_no_judgement(tmp_path: Path) -> None:
    write_all(tmp_path, encode_results(Results(TOOL, (facts(),))))
    assert json.loads((tmp_path / RESULTS).read_text("utf-8"))["judgement"] is None
    assert read_results(tmp_path).judgements is None


@pytest.mark.parametrize(
    ("value", "written_as"), [(np.nan, "NaN"), (np.inf, "Infinity"), (-np.inf, "-Infinity"), (0.25, 0.25)]
)
def test_numbers_that_are_not_finite_are_strings(tmp_path: Path, value: float, written_as: object) -> None:
    write_all(tmp_path, encode_results(Results(TOOL, (facts(value),))))

    def refuse(constant: str) -> float:
        raise AssertionError(f"{constant} is no JSON")

    document = json.loads((tmp_path / RESULTS).read_text("utf-8"), parse_constant=refuse)
    assert document["facts"][0]["investigations"][0]["trials"][0]["after"] == written_as
    trial = read_results(tmp_path).facts[0].investigations[0].trials[0]
    assert np.array_equal(trial.after, value, equal_nan=True)


def test_hostile_names_come_back_as_they_were(tmp_path: Path) -> None:
    made = hostile("\x00 \u202e ]]> \r\n {}")
    write_all(tmp_path, encode_results(made))
    back = read_results(tmp_path)
    assert back.judgements == made.judgements
    assert back.facts[0].plan == made.facts[0].plan


@pytest.mark.parametrize(
    "edit",
    [
        lambda document: document.update(mood="good"),
        lambda document: document["tool"].update(colour="blue"),
        lambda document: document["facts"][0].update(weather=[1]),
        lambda document: document["facts"][0]["runs"][0].update(temperature=41.5),
        lambda document: document["facts"][0]["measurements"][0]["alignment"].update(angle=3),
        lambda document: document["judgement"]["subjects"][0]["checks"][0]["verdicts"][0].update(weight=1),
    ],
)
def test_keys_of_a_newer_driftgate_are_passed_over(written: Path, edit: Edit) -> None:
    before = read_results(written)
    assert read_results(edited(written, edit)) == before


def test_a_performance_of_an_older_driftgate_is_read(written: Path) -> None:
    def older(document: dict[str, Any]) -> None:
        kept = ("run", "latency_ms", "fps", "frames", "threads", "core")
        told = document["facts"][0]["performance"]
        document["facts"][0]["performance"] = [{key: told[0][key] for key in kept}]

    assert read_results(edited(written, older)).facts[0].performance == facts().performance[:1]


def test_a_table_of_a_newer_driftgate_is_passed_over(written: Path) -> None:
    before = read_results(written)
    with np.load(written / FACTS, allow_pickle=False) as archive:
        tables = dict(archive)
    (written / FACTS).write_bytes(npz_bytes({**tables, "histogram": np.arange(4.0)}))
    unbound(written)
    assert read_results(written) == before


def unbound(folder: Path) -> None:
    """As before documents told the digest of their tables."""
    document = json.loads((folder / RESULTS).read_text("utf-8"))
    assert document.pop("tables")
    (folder / RESULTS).write_text(json.dumps(document), "utf-8")


def test_tables_of_another_run_are_not_read(written: Path) -> None:
    """Sound in themselves, and of the same form: a failing network's document beside a healthy one's tables."""
    with np.load(written / FACTS, allow_pickle=False) as archive:
        tables = {name: table + 0.0 for name, table in archive.items()}
    tables["t00000"] = tables["t00000"] * 0.5
    (written / FACTS).write_bytes(npz_bytes(tables))
    assert refusal(written)[0] == "facts-other"


@pytest.mark.parametrize(
    ("edit", "code", "said"),
    [
        (
            lambda document: document.update(version=2),
            "results-version",
            "has version 2, this driftgate reads version 1",
        ),
        (lambda document: document.pop("version"), "results-version", "has version None"),
        (lambda document: document.update(schema="other"), "results-other", "driftgate.results"),
        (lambda document: document.pop("facts"), "results-invalid", "at facts"),
        (lambda document: document["facts"][0].pop("runs"), "results-invalid", "at facts.0.runs"),
        (lambda document: document["facts"][0]["plan"].update(target="J6P"), "plan-tampered", "plan of net"),
        (lambda document: document["facts"][0]["plan"]["samples"]["ids"].pop(), "plan-tampered", "plan of net"),
        (lambda document: document["facts"][0].update(plan_digest="0" * 64), "plan-tampered", "plan of net"),
        (lambda document: document["facts"][0]["measurements"][0].update(rows="t99999"), "facts-missing", "t99999"),
        (lambda document: document["facts"][0]["measurements"][0]["samples"].pop(), "facts-length", "a..b y"),
    ],
)
def test_a_document_that_is_wrong_says_where(written: Path, edit: Edit, code: str, said: str) -> None:
    found, sentence = refusal(edited(written, edit))
    assert found == code
    assert said in sentence


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b'{"schema": "driftgate.results", "version": 1, "to'])
def test_a_document_that_is_cut_off(written: Path, content: bytes) -> None:
    (written / RESULTS).write_bytes(content)
    assert refusal(written)[0] == "results-garbled"


@pytest.mark.parametrize("content", [b"[]", b"null", b"3", b'{"schema": "driftgate.samples", "version": 1}'])
def test_json_that_is_no_results(written: Path, content: bytes) -> None:
    (written / RESULTS).write_bytes(content)
    assert refusal(written)[0] == "results-other"


def test_a_folder_without_results(tmp_path: Path) -> None:
    assert refusal(tmp_path)[0] == "results-absent"
    assert refusal(tmp_path / "nowhere")[0] == "results-absent"


def spoilt(path: Path, how: str) -> None:
    """facts.npz after something happened to it."""
    content = path.read_bytes()
    with np.load(path, allow_pickle=False) as archive:
        tables = dict(archive)
    name = next(iter(tables))
    if how == "cut off":
        path.write_bytes(content[: len(content) // 2])
    elif how == "empty":
        path.write_bytes(b"")
    elif how == "one bit flipped":
        at = len(content) // 4
        path.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
    elif how == "pickled":
        np.savez(path, **{**tables, name: np.array([{"a": 1}], dtype=object)})
    elif how == "text":
        np.savez(path, **{**tables, name: np.array(["a"])})
    elif how == "another array":
        with path.open("wb") as stream:
            np.save(stream, tables[name])
    elif how == "other columns":
        np.savez(path, **{**tables, name: tables[name][:, :-1]})
    elif how == "gone":
        path.unlink()


@pytest.mark.parametrize(
    ("how", "code"),
    [
        ("cut off", "facts-garbled"),
        ("empty", "facts-garbled"),
        ("one bit flipped", "facts-garbled"),
        ("pickled", "facts-garbled"),
        ("text", "facts-garbled"),
        ("another array", "facts-garbled"),
        ("gone", "facts-garbled"),
        ("other columns", "facts-table"),
    ],
)
def test_tables_that_cannot_be_trusted(written: Path, how: str, code: str) -> None:
    spoilt(written / FACTS, how)
    if code == "facts-table":
        assert refusal(written)[0] == "facts-other"
        unbound(written)
    assert refusal(written)[0] == code


def test_what_version_1_wrote_first_is_still_read_with_the_same_judgement() -> None:
    """The golden folder was written once, by 0.1.0, and is never written again."""
    golden = read_results(GOLDEN)
    stored = json.loads((GOLDEN / RESULTS).read_text("utf-8"))["judgement"]
    assert stored["outcome"] == "failed"
    assert golden.judgements is not None
    kept = {judgement.subject: judgement for judgement in golden.judgements}
    assert {name: (one.outcome.value, one.first_failure) for name, one in kept.items()} == {
        "healthy": ("passed", None),
        "int8": ("passed", None),
        "broken": ("failed", "pytorch-onnx"),
    }

    again = encode_results(replace(golden, judgements=tuple(judge(one, GOLDEN_POLICY) for one in golden.facts)))
    assert_holds(json.loads(again[RESULTS])["judgement"], stored)


def assert_holds(value: Any, stored: Any) -> None:
    """Version 1 only grows: whatever was written is still said, beside keys that came later."""
    if isinstance(stored, dict):
        for key, item in stored.items():
            if key != "findings" or item:  # rules that came later find more
                assert_holds(value[key], item)
    elif isinstance(stored, list):
        assert len(value) == len(stored)
        for one, item in zip(value, stored, strict=True):
            assert_holds(one, item)
    else:
        assert value == stored


def test_the_published_schemas_are_what_the_command_prints() -> None:
    assert {file.name for file in SCHEMAS.iterdir()} == {f"{name}.schema.json" for name in SCHEMAS_OF}
    for name in SCHEMAS_OF:
        answer = call("schema", name)
        assert answer.code == 0
        assert (SCHEMAS / f"{name}.schema.json").read_text("utf-8") == answer.out, f"driftgate schema {name} > it"


@pytest.mark.parametrize("schema", SCHEMAS_OF.values())
def test_the_schemas_are_schemas(schema: Callable[[], Mapping[str, Any]]) -> None:
    Draft202012Validator.check_schema(schema())


def test_results_fit_the_published_schema(tmp_path: Path, written: Path) -> None:
    schema = Draft202012Validator(json.loads((SCHEMAS / "results.schema.json").read_text("utf-8")))
    assert call("demo", "--fault", "board-padding", "--out", tmp_path / "demo").code == 1
    for folder in (tmp_path / "demo", written, GOLDEN):
        schema.validate(json.loads((folder / RESULTS).read_text("utf-8")))
    broken = json.loads((written / RESULTS).read_text("utf-8"))
    broken["facts"][0]["runs"][0]["samples_done"] = "many"
    assert not schema.is_valid(broken)


def test_a_manifest_fits_the_published_schema(tmp_path: Path) -> None:
    project = whole_chain(tmp_path)
    assert call("samples", tmp_path / project.subject["samples"]["raw"], "--manifest", tmp_path / "m.json").code == 0
    schema = Draft202012Validator(json.loads((SCHEMAS / "samples.schema.json").read_text("utf-8")))
    manifest = json.loads((tmp_path / "m.json").read_text("utf-8"))
    schema.validate(manifest)
    assert not schema.is_valid({**manifest, "samples": [{"id": "0000"}]})
