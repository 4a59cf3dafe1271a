"""A cache of outputs: what ran before with the same artifact, sample, feeds and environment is not run again, and
nothing that is told depends on it."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from driftgate.domain.runs import BOARD_BACKENDS
from driftgate.recall import Recall
from driftgate.sessions import Artifact
from driftgate.storage.document import read_results
from support.commandline import call
from support.models import answer, tiny
from support.project import Project, inputs, torch_stand_in
from support.sameness import measured

SAMPLES = 5


@pytest.fixture
def counted(tmp_path: Path) -> Project:
    """onnx, and a pytorch that writes a line for every run."""
    made = Project(tmp_path / "project")
    made.root.mkdir()
    made.subject = {
        "artifacts": {"onnx": made.onnx("net.onnx", tiny())},
        "samples": {"raw": made.npz("eval.npz", x=inputs(SAMPLES)), "block": 2},
    }
    made.artifacts["pytorch"] = torch_stand_in(made, "count", mark=mark(made))
    return made


def mark(made: Project) -> Path:
    return made.root / "mark"


def cache(made: Project) -> Path:
    return made.root / "cache"


def held(made: Project) -> int:
    return sum(path.stat().st_size for path in cache(made).iterdir())


def checked(made: Project, *arguments: str | Path) -> dict[tuple[str, str], Any]:
    """Everything that was measured."""
    told = call("check", "-c", made.write(), "--out", made.root / "out", *arguments)
    assert told.code == 0, told.out + told.err
    (facts,) = read_results(made.root / "out").facts
    return measured(facts)


def ran(made: Project, *arguments: str | Path) -> tuple[int, dict[tuple[str, str], Any]]:
    """How often the network ran, and everything that was measured."""
    mark(made).unlink(missing_ok=True)
    found = checked(made, "--cache", cache(made), *arguments)
    return len(mark(made).read_text().splitlines()), found


def test_what_ran_before_is_recalled_to_the_bit(counted: Project) -> None:
    plain = checked(counted)
    first, again = ran(counted), ran(counted)
    assert (first[0], again[0]) == (SAMPLES, 1)  # the first sample always runs
    assert plain == first[1] == again[1]


def test_only_a_sample_that_changed_runs_again(counted: Project) -> None:
    ran(counted)
    changed = inputs(SAMPLES)
    changed[3] += 1
    counted.npz("eval.npz", x=changed)
    times, found = ran(counted)
    assert times == 2
    assert found == checked(counted)


def test_another_artifact_recalls_nothing(counted: Project) -> None:
    ran(counted)
    with np.load(counted.root / "weights.npz") as archive:
        tensors: dict[str, Any] = {name: archive[name] for name in archive.files}
    counted.npz("weights.npz", **{**tensors, "bias": tensors["bias"] + np.float32(1e-6)})
    assert ran(counted)[0] == SAMPLES


def test_what_is_damaged_in_the_cache_runs_again(counted: Project) -> None:
    ran(counted)
    files = list(cache(counted).iterdir())
    assert len(files) == 2 * SAMPLES
    for path in files:
        path.write_bytes(path.read_bytes()[:-30])
    times, found = ran(counted)
    assert times == SAMPLES
    assert found == checked(counted)
    assert ran(counted)[0] == 1


def test_nothing_is_recalled_of_what_answers_otherwise_than_it_did(counted: Project) -> None:
    """An artifact's files do not tell everything that it loads: the first sample does."""
    plain = ran(counted)
    for path in cache(counted).iterdir():
        with np.load(path) as archive:
            tensors: dict[str, Any] = {name: archive[name] + 1 for name in archive.files}
        np.savez(path, **tensors)
    assert ran(counted) == plain
    assert ran(counted) == (1, plain[1])


def test_another_option_of_an_artifact_recalls_nothing(counted: Project) -> None:
    ran(counted)
    counted.artifacts["pytorch"]["timeout"] = 61
    assert ran(counted)[0] == SAMPLES


def test_equal_feeds_recall_what_was_recorded_of_their_own_sample(tmp_path: Path) -> None:
    made = Project(tmp_path)
    x = np.repeat(inputs(2), (SAMPLES - 1, 1), axis=0)
    recorded = answer(x) + np.float32(1e-6) * np.arange(SAMPLES, dtype=np.float32)[:, None]
    made.subject = {
        "artifacts": {"pytorch": made.npz("pytorch.npz", y=recorded), "onnx": made.onnx("net.onnx", tiny())},
        "samples": {"raw": made.npz("eval.npz", x=x), "block": 2},
    }
    plain = checked(made)
    assert all(checked(made, "--cache", cache(made)) == plain for _ in range(2))


def test_the_cache_stays_within_its_size(counted: Project) -> None:
    ran(counted)
    half = held(counted) // 2
    ran(counted, "--cache-size", str(half))
    assert 0 < held(counted) <= half


def test_legs_share_a_cache(counted: Project) -> None:
    config = counted.write()
    plan = call("plan", "-c", config, "--json").json
    (leg,) = (leg["id"] for subject in plan["subjects"] for leg in subject["legs"])
    for times in (SAMPLES, 1):
        mark(counted).unlink(missing_ok=True)
        given = ("--leg", leg, "--out", counted.root / "shard", "--cache", cache(counted))
        assert call("run", "-c", config, *given).code == 0
        assert len(mark(counted).read_text().splitlines()) == times


@pytest.mark.parametrize(
    ("size", "folder", "said"),
    [("much", "cache", "much is no size"), ("1GiB", "eval.npz", "eval.npz cannot be written")],
)
def test_a_cache_that_cannot_be_is_refused(size: str, folder: str, said: str, counted: Project) -> None:
    given = ("--cache", counted.root / folder, "--cache-size", size)
    told = call("check", "-c", counted.write(), "--out", counted.root / "out", *given)
    assert told.code == 2
    assert said in " ".join(told.err.split())


@pytest.mark.parametrize("kind", BOARD_BACKENDS)
def test_a_board_is_asked_itself(kind: str, tmp_path: Path) -> None:
    opened: list[Artifact] = []
    session: Any = nullcontext()

    def opener(artifact: Artifact) -> Any:
        opened.append(artifact)
        return session

    artifact = Artifact("hbm", kind, tmp_path / "net.hbm")
    assert Recall(tmp_path / "cache").around(opener)(artifact) is session
    assert opened == [artifact]
