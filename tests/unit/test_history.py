"""The history of a branch: small steps that no comparison minds, and the run from which on they were too many."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from driftgate.comparing.history import MOST_RUNS, before, continued, slid
from driftgate.comparing.levels import levels
from driftgate.domain.comparisons import Erosion, PastRun, RowKind
from driftgate.domain.history import History, Level
from driftgate.domain.judgement import Slide, Slides
from driftgate.domain.results import Results
from driftgate.errors import StorageError
from driftgate.storage.document import encode_results, read_results
from driftgate.storage.folder import write_all
from driftgate.storage.history import HISTORY, encode_history, history_schema, read_history
from driftgate.storage.planfile import Provenance, write_origin
from support.commandline import Answer, call
from support.edits import edited, error_times, speed, undeclared, wrong_on

FLOAT = ("pytorch", "onnx", "optimized_float")
INTEGER = ("calibrated", "ptq", "quantized", "hbm")
INT8_LINK = "optimized_float..calibrated"
KEY = ("net", "J6M")
LIMITS = Slides(limits=((Slide.SCORE_DROP, 0.005), (Slide.ERROR_RISE, 0.5)))


def run(number: int) -> PastRun:
    return PastRun(f"{number:040x}", str(number), f"2026-11-{number:02}")


def level(value: float, *, kind: RowKind = RowKind.SCORE, better: str = "higher", basis: str = "s") -> Level:
    return Level(*KEY, kind, ("hbm", "top1"), "score", better, value, basis)


def history_of(values: Sequence[float], **of: str) -> History:
    """One number in as many runs; NaN where a run had none."""
    found = History()
    for number, value in enumerate(values, 1):
        now = [] if math.isnan(value) else [level(value, **of)]  # type: ignore[arg-type] # better and basis
        found = continued(found, run(number), now)
    return found


def erosion(values: Sequence[float], now: Level, slides: Slides = LIMITS, **of: str) -> Erosion | None:
    """What has slid of that one number."""
    found = slid(history_of(values, **of), [now], slides)[KEY].erosions
    return found[0] if found else None


# --- when a number has slid


def test_small_steps_add_up_and_the_first_bad_run_is_named() -> None:
    """Each step is less than a fifth of a percent; together they are more than half of one."""
    steps = [0.9985, 0.9985, 0.9972, 0.9960, 0.9948, 0.9934]
    found = erosion(steps, level(0.9921))
    assert found is not None
    assert (found.level, found.level_run, found.runs) == (0.9985, run(2), 6)
    assert found.drop == pytest.approx(1 - 0.9921 / 0.9985)
    assert found.first_bad == run(6)  # 0.9934 is the first that is 0.5 % below 0.9985
    assert found.limit == 0.005


def test_a_drop_with_this_run_has_no_first_bad_run_before_it() -> None:
    found = erosion([0.99, 0.99, 0.99], level(0.98))
    assert found is not None
    assert found.first_bad is None


def test_runs_that_recovered_in_between_are_not_blamed() -> None:
    found = erosion([0.99, 0.99, 0.97, 0.99, 0.97], level(0.97))
    assert found is not None
    assert found.first_bad == run(5)


@pytest.mark.parametrize(
    ("values", "now"),
    [
        ([0.99, 0.999, 0.99, 0.99], 0.99),  # one lucky run sets no level
        ([0.99], 0.5),  # nothing was reached twice
        ([], 0.5),
        ([0.99, 0.99], 0.99),
        ([0.99, 0.99], 0.999),
        ([0.99, 0.99], 0.9851),  # within the limit
        ([0.99, math.nan, math.nan], 0.5),
    ],
)
def test_what_has_not_slid(values: list[float], now: float) -> None:
    assert erosion(values, level(now)) is None


def test_less_is_better_where_it_is() -> None:
    found = erosion([10.0, 10.0, 10.0], level(10.1, better="lower"), better="lower")
    assert found is not None
    assert found.drop == pytest.approx(0.01)
    assert erosion([10.0, 10.0], level(9.0, better="lower"), better="lower") is None


def test_other_samples_begin_anew() -> None:
    """Numbers of one basis only are held against each other; what was measured before on the same ones counts again."""
    assert erosion([0.99, 0.99], level(0.9, basis="t"), basis="s") is None
    found = continued(continued(history_of([0.99, 0.99]), run(3), [level(0.9, basis="t")]), run(4), [])
    assert slid(found, [level(0.9)], LIMITS)[KEY].erosions


def test_errors_below_the_noise_of_floats_are_none() -> None:
    def error(value: float) -> Level:
        return Level(*KEY, RowKind.LINK, ("a..b", "y"), "relative-error", "lower", value, "s")

    found = History()
    for number, value in enumerate((1e-9, 1e-9, 2e-8), 1):
        found = continued(found, run(number), [error(value)])
    assert not slid(found, [error(9e-7)], LIMITS)[KEY].erosions
    assert slid(found, [error(2e-6)], LIMITS)[KEY].erosions


def test_only_the_last_runs_count() -> None:
    values = [0.999, 0.999, 0.99, 0.99]
    assert erosion(values, level(0.99)) is not None
    assert erosion(values, level(0.99), replace(LIMITS, runs=2)) is None


def test_what_has_no_limit_may_slide() -> None:
    assert erosion([0.99, 0.99], level(0.5), Slides()) is None


def test_from_nothing_every_loss_is_beyond_all_limits() -> None:
    found = erosion([0.0, 0.0], level(1.0, better="lower"), better="lower")
    assert found is not None
    assert math.isinf(found.drop)


# --- how it is kept


def test_the_oldest_runs_go_and_their_numbers_with_them() -> None:
    found = continued(History(), run(1), [replace(level(0.5), key=("onnx", "top1"))])
    for number in range(2, 6):
        found = continued(found, run(number), [level(0.9)], most=3)
    assert [one.run for one in found.runs] == ["3", "4", "5"]
    assert [(one.key, one.values) for one in found.series] == [(("hbm", "top1"), (0.9, 0.9, 0.9))]
    assert before(found) == History(found.runs[:2], (replace(found.series[0], values=(0.9, 0.9), bases=("s", "s")),))


def test_a_number_that_begins_later_and_one_that_ends() -> None:
    found = continued(history_of([0.9, 0.8]), run(3), [replace(level(0.7), key=("onnx", "top1"))])
    old, new = found.series
    assert old.values[:2] == (0.9, 0.8)
    assert math.isnan(old.values[2])
    assert all(map(math.isnan, new.values[:2]))
    assert (new.values[2], new.bases) == (0.7, ("", "", "s"))


NUMBERS = st.lists(st.one_of(st.floats(-1e6, 1e6, width=32), st.just(math.nan)), min_size=1, max_size=12)


@given(values=NUMBERS, bases=st.sampled_from(["", "s", "t"]))
def test_what_is_written_is_read_again(
    values: list[float], bases: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("history")
    found = history_of(values, basis=bases)
    (folder / HISTORY).write_bytes(encode_history(found))
    read = read_history(folder)
    assert read is not None
    assert read.runs == found.runs
    assert [one.name for one in read.series] == [one.name for one in found.series]
    for mine, theirs in zip(read.series, found.series, strict=True):
        assert mine.values == pytest.approx(theirs.values, rel=1e-6, nan_ok=True)
        assert mine.bases == theirs.bases
    Draft202012Validator(history_schema()).validate(json.loads((folder / HISTORY).read_bytes()))


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"version": 2}, "results-version"),
        ({"schema": "driftgate.results"}, "results-other"),
        ({"runs": []}, "results-invalid"),
        ({"series": 3}, "results-invalid"),
    ],
)
def test_a_damaged_history_is_named(tmp_path: Path, change: dict[str, object], code: str) -> None:
    document = json.loads(encode_history(history_of([0.9, 0.8]))) | change
    (tmp_path / HISTORY).write_text(json.dumps(document), "utf-8")
    with pytest.raises(StorageError) as raised:
        read_history(tmp_path)
    assert raised.value.problems[0].code == code


def test_a_basis_that_is_not_there_and_no_json_at_all(tmp_path: Path) -> None:
    document = json.loads(encode_history(history_of([0.9])))
    document["series"][0]["basis"] = [7]
    for content in (json.dumps(document), "{"):
        (tmp_path / HISTORY).write_text(content, "utf-8")
        with pytest.raises(StorageError):
            read_history(tmp_path)
    assert read_history(tmp_path / "nowhere") is None


# --- run by run, by the verbs


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """The healthy demo."""
    out = tmp_path_factory.mktemp("demo")
    assert call("demo", "--out", out).code == 0
    return read_results(out)


@dataclass
class Branch:
    """Runs of a branch, each held against the one before."""

    folder: Path
    count: int = 0

    @property
    def last(self) -> Path:
        return self.folder / f"run-{self.count}"

    def push(self, results: Results, *options: str | Path) -> Answer:
        """One more run: its facts judged, as a report of the CI."""
        facts = self.folder / f"facts-{self.count + 1}"
        write_all(facts, encode_results(replace(results, judgements=None)))
        held = ("--baseline", self.last) if self.count else ()
        self.count += 1
        write_origin(facts, Provenance(f"{self.count:040x}", str(100 + self.count), "1"))
        return call("report", facts, "--out", self.last, *held, *options)


@pytest.fixture
def branch(tmp_path: Path) -> Branch:
    return Branch(tmp_path)


POLICY = """version: 1
subjects: {digits: {artifacts: {onnx: n.onnx}, samples: {raw: s}}}
policies:
  release: {history: {score-drop: 0.5%, error-rise: 50%, latency-rise: 5%}}
"""


def gate(branch: Branch, *options: str | Path, policy: str = POLICY) -> Answer:
    config = branch.folder / "driftgate.yaml"
    config.write_text(policy, "utf-8")
    return call("gate", branch.last, "-c", config, "--policy", "release", "--json", *options)


def test_a_slow_regression_fails_the_gate_although_no_step_and_no_limit_minds(demo: Results, branch: Branch) -> None:
    """One sample of 360 more is lost with each change: below every limit, and within the noise of every comparison."""
    for lost in (0, 0, 1, 2, 3):
        told = branch.push(edited(demo, undeclared, wrong_on(lost, *FLOAT, *INTEGER)))
        assert told.code == 0
        assert branch.count == 1 or "Against the baseline: the same as" in told.out
    assert told.out.count("Slides over 4 runs: score top1 at pytorch is ") == told.out.count("Slides over") == 1
    assert "bad since run 104 0000000" in told.out
    for name in ("summary.md", "comment.md", "index.html"):
        assert "Slides over 4 runs" in (branch.last / name).read_text("utf-8")
    answer = gate(branch)
    assert answer.code == 1
    lines = [line for line in answer.json["lines"] if line["clause"] == "history"]
    assert [line["name"] for line in lines] == ["pytorch top1"], "one for the score, whatever stages it has"
    assert {(line["outcome"], *line["codes"]) for line in lines} == {("failed", "regression-vs-baseline")}
    assert {line["value"] for line in lines} == {"0.843 %"}
    assert [run["run"] for run in json.loads((branch.last / HISTORY).read_bytes())["runs"]] == [
        "101",
        "102",
        "103",
        "104",
        "105",
    ]


def test_errors_and_speed_slide_too(demo: Results, branch: Branch) -> None:
    for factor in (1.0, 1.0, 1.18, 1.36, 1.55):
        branch.push(edited(demo, error_times(factor, INT8_LINK), speed(4.0 * factor)))
    lines = [line for line in gate(branch).json["lines"] if line["clause"] == "history"]
    assert {line["name"] for line in lines} == {f"{INT8_LINK} logits", "hbm 1 0 latency-ms"}
    assert {line["outcome"] for line in lines} == {"failed"}


def test_a_branch_that_holds_its_level_passes(demo: Results, branch: Branch) -> None:
    for lost in (1, 0, 1):
        told = branch.push(edited(demo, undeclared, wrong_on(lost, *FLOAT, *INTEGER)))
    assert "Slides" not in told.out
    answer = gate(branch)
    (line,) = [line for line in answer.json["lines"] if line["clause"] == "history"]
    assert (answer.code, line["outcome"], line["reason"]["code"]) == (0, "passed", "gate-history-holds")


def test_two_runs_are_no_history(demo: Results, branch: Branch) -> None:
    """What nobody could know is no PASS."""
    branch.push(demo)
    branch.push(demo)
    answer = gate(branch)
    (line,) = [line for line in answer.json["lines"] if line["clause"] == "history"]
    assert (answer.code, line["outcome"], line["reason"]["code"]) == (2, "error", "gate-no-history")


def test_a_baseline_without_a_history_is_its_first_run(demo: Results, branch: Branch) -> None:
    """As reports of versions before histories were kept, and folders in a repository."""
    branch.push(demo)
    (branch.last / HISTORY).unlink()
    branch.push(demo)
    assert [run["run"] for run in json.loads((branch.last / HISTORY).read_bytes())["runs"]] == ["101", "102"]


def test_a_damaged_history_makes_the_baseline_unusable_and_nothing_else(demo: Results, branch: Branch) -> None:
    branch.push(demo)
    (branch.last / HISTORY).write_text('{"schema": "driftgate.history", "version": 7}', "utf-8")
    told = branch.push(demo)
    assert told.code == 0
    assert "no comparison with the baseline" in told.out
    assert "version 7" in told.out


def test_in_no_ci_and_without_a_baseline_there_is_no_history(
    demo: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("GITHUB_SHA", "DRIFTGATE_SHA"):
        monkeypatch.delenv(name, raising=False)
    write_all(tmp_path / "facts", encode_results(demo))
    assert call("report", tmp_path / "facts", "--out", tmp_path / "out").code == 0
    assert not (tmp_path / "out" / HISTORY).exists()


def test_every_number_of_the_demo_is_kept(demo: Results) -> None:
    found = list(levels(demo))
    assert {one.key for one in found if one.kind is RowKind.SCORE} == {(stage, "top1") for stage in (*FLOAT, *INTEGER)}
    assert {one.key for one in found if one.kind is RowKind.LINK} == {
        (link.name, "logits") for link in demo.facts[0].plan.links
    }
    assert len({one.name for one in found}) == len(found)


def test_a_history_grows_no_further_than_it_must(demo: Results) -> None:
    found = History()
    for number in range(MOST_RUNS + 5):
        found = continued(found, PastRun(run=str(number)), levels(demo))
    assert len(found.runs) == MOST_RUNS
    assert len(encode_history(found)) < 100_000
