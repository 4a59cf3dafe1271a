"""What an investigation takes: windows that fit the memory, few runs, each session once a window, nothing kept."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import helper

from driftgate.domain.investigations import Investigation
from driftgate.errors import UsageError
from driftgate.localisation.investigate import DEFAULT_MEMORY, FEW, investigate
from driftgate.localisation.subject import Subject, read_subject
from driftgate.localisation.windows import DEFAULT_SIZE, fitting, guessed_sizes
from driftgate.sessions import Artifact
from support.models import model, save, value
from support.rewriting import copied, give
from support.sides import Feeds, Watch, WatchedBackend, side, watched

SIDE = 64
DEPTH = 6
LAYER_BYTES = 4 * 4 * SIDE * SIDE  # four channels of float32


def chain(rows: int | str = 1) -> onnx.ModelProto:
    """x → (Conv, Relu) × 6 → y, all of one size."""
    random = np.random.default_rng(3)
    nodes, weights, at = [], {}, "x"
    for n in range(DEPTH):
        weights[f"w{n}"] = random.normal(0, 0.25, (4, 4, 3, 3)).astype(np.float32)
        nodes.append(helper.make_node("Conv", [at, f"w{n}"], [f"c{n}"], name=f"conv{n}", pads=[1] * 4))
        at = "y" if n == DEPTH - 1 else f"r{n}"
        nodes.append(helper.make_node("Relu", [f"c{n}"], [at], name=f"relu{n}"))
    shape = [rows, 4, SIDE, SIDE]
    return model(nodes, [value("x", shape)], [value("y", shape)], initializers=weights)


def faulty() -> onnx.ModelProto:
    """The chain with one kernel of its third convolution halved."""
    made = copied(chain())
    node = next(node for node in made.graph.node if node.name == "conv2")
    weight = onnx.numpy_helper.to_array(next(t for t in made.graph.initializer if t.name == "w2")).copy()
    weight[1] *= 0.5
    give(made, node, 1, weight)
    return made


def samples(count: int) -> Feeds:
    random = np.random.default_rng(7)
    return {f"{n:04}": {"x": random.normal(size=(1, 4, SIDE, SIDE)).astype(np.float32)} for n in range(count)}


def looked_into(
    folder: Path, count: int, *, memory: int = DEFAULT_MEMORY, few: int = FEW
) -> tuple[Investigation, Watch, Watch]:
    feeds = samples(count)
    a, watch_a = watched("a", chain(), feeds, folder)
    b, watch_b = watched("b", faulty(), feeds, folder)
    return investigate("a..b", a, b, tuple(feeds), outputs={"y": "y"}, memory=memory, few=few), watch_a, watch_b


def same_numbers(one: Investigation, other: Investigation) -> bool:
    return [(n.pair, n.total, n.own, n.excess) for n in one.nodes] == [
        (n.pair, n.total, n.own, n.excess) for n in other.nodes
    ]


def test_small_windows_change_no_number(tmp_path: Path) -> None:
    whole, _, watch = looked_into(tmp_path, 3)
    small, _, watch_small = looked_into(tmp_path, 3, memory=12 * LAYER_BYTES)
    assert same_numbers(whole, small)
    assert len(watch_small.opened) > len(watch.opened)


def test_tensors_that_do_not_fit_stand_alone(tmp_path: Path) -> None:
    whole, _, _ = looked_into(tmp_path, 2)
    tiny, _, _ = looked_into(tmp_path, 2, memory=1)
    assert same_numbers(whole, tiny)


def test_what_is_held_stays_under_the_memory_and_does_not_grow_with_the_samples(tmp_path: Path) -> None:
    memory = 16 * LAYER_BYTES
    held = []
    for count in (2, 9):
        feeds, watch = samples(count), Watch()
        a, b = (watched(stage, made, feeds, tmp_path, watch)[0] for stage, made in (("a", chain()), ("b", faulty())))
        investigate("a..b", a, b, tuple(feeds), outputs={"y": "y"}, memory=memory)
        held.append(watch.held)
    assert held[0] == held[1]
    assert memory / 3 < held[0] < memory


def test_one_window_costs_one_run_a_sample_and_side_and_a_forced_one_for_a_few(tmp_path: Path) -> None:
    feeds = samples(7)
    (a, watch_a), (b, watch_b) = (watched(stage, chain(), feeds, tmp_path) for stage in "ab")
    found = investigate("a..b", a, b, tuple(feeds), outputs={"y": "y"}, few=2)
    pairing, untapped, forced = 1, 2, 2
    assert len(watch_a.runs) == pairing + 7
    assert len(watch_b.runs) == pairing + untapped + 7 + forced
    assert found.runs == len(watch_a.runs) + len(watch_b.runs)


def test_each_session_is_opened_once_a_window(tmp_path: Path) -> None:
    opens = [len(looked_into(tmp_path, count)[2].opened) for count in (1, 6)]
    assert opens[0] == opens[1]


def test_only_paired_tensors_are_tapped_while_measuring(tmp_path: Path) -> None:
    feeds = samples(2)
    extra = copied(chain())
    extra.graph.node.append(helper.make_node("Exp", ["x"], ["beside"], name="beside"))
    extra.graph.output.append(value("beside_sum", [1, 4, 1, 1]))
    extra.graph.node.append(helper.make_node("GlobalAveragePool", ["beside"], ["beside_sum"], name="sum"))
    a, watch = watched("a", extra, feeds, tmp_path)
    found = investigate("a..b", a, side("b", chain(), feeds, tmp_path), tuple(feeds), outputs={"y": "y"})
    assert "beside" in found.unpaired_a
    assert "beside" in watch.opened[0]
    assert "beside" not in watch.opened[-1]


def test_own_errors_come_from_the_first_few_samples(tmp_path: Path) -> None:
    found, _, _ = looked_into(tmp_path, 5, few=2)
    node = found.nodes[0]
    assert node.own is not None
    numbers = 4 * SIDE * SIDE
    assert (node.total.count[0], node.own.count[0]) == (5 * numbers, 2 * numbers)


def test_runs_of_an_earlier_investigation_are_not_counted_again(tmp_path: Path) -> None:
    feeds = samples(1)
    a, b = (side(stage, chain(), feeds, tmp_path) for stage in "ab")
    runs = [investigate("a..b", a, b, tuple(feeds), outputs={"y": "y"}).runs for _ in range(2)]
    assert runs[0] == runs[1]


def test_without_a_sample_there_is_nothing_to_look_at(tmp_path: Path) -> None:
    a, b = (side(stage, chain(), {}, tmp_path) for stage in "ab")
    with pytest.raises(UsageError) as caught:
        investigate("a..b", a, b, (), outputs={})
    assert caught.value.problems[0].code == "investigate-no-samples"


def disturbed(folder: Path, feeds: Feeds, shift: float) -> tuple[Subject, Watch]:
    """A side whose outputs shift when it is tapped."""
    watch = Watch()
    backend = WatchedBackend(watch, shift)
    artifact = Artifact("b", "onnxruntime", save(chain(), folder / "b.onnx"), {"threads": 1})
    return read_subject("b", artifact, backend, backend, lambda sample: feeds[sample]), watch


def test_what_tapping_does_to_the_outputs_is_measured_and_said(tmp_path: Path) -> None:
    feeds = samples(2)
    b, _ = disturbed(tmp_path, feeds, 0.25)
    found = investigate("a..b", side("a", chain(), feeds, tmp_path), b, tuple(feeds), outputs={"y": "y"})
    assert found.tap_gap == pytest.approx(0.25, rel=1e-5)
    assert "tap-gap" in {note.code for note in found.notes}


def test_untapped_outputs_that_are_there_are_not_computed_again(tmp_path: Path) -> None:
    feeds = samples(2)
    b, watch = disturbed(tmp_path, feeds, 0.0)
    with b.open() as session:
        untapped = {sample: session.infer(feeds[sample], sample=sample) for sample in feeds}
    untapped["0000"]["y"] = untapped["0000"]["y"] + np.float32(2)
    before = len(watch.opened)
    a = side("a", chain(), feeds, tmp_path)
    found = investigate("a..b", a, b, tuple(feeds), outputs={"y": "y"}, untapped=untapped)
    assert found.tap_gap == pytest.approx(2, rel=1e-5)
    assert ("y",) not in watch.opened[before:]


def test_progress_ends_at_all_pairs(tmp_path: Path) -> None:
    feeds = samples(1)
    a, b = (side(stage, chain(), feeds, tmp_path) for stage in "ab")
    told: list[tuple[int, int]] = []
    investigate(
        "a..b",
        a,
        b,
        tuple(feeds),
        outputs={"y": "y"},
        memory=16 * LAYER_BYTES,
        progress=lambda done, all_: told.append((done, all_)),
    )
    assert len(told) > 1
    assert told[-1] == (2 * DEPTH, 2 * DEPTH)


def test_windows_are_neighbours_that_fit_together() -> None:
    sizes = {0: 10, 1: 10, 2: 10, 3: 1000, 4: 10}
    assert fitting(range(5), sizes, 4 * 25 * 5, held=4.0) == [[0, 1], [2], [3], [4]]


def test_a_size_that_nobody_knows_is_guessed_with_care(tmp_path: Path) -> None:
    feed: NDArray[np.float32] = np.zeros((1, 4, SIDE, SIDE), np.float32)
    a = side("a", chain("rows"), {"0": {"x": feed}}, tmp_path)
    assert set(guessed_sizes(a, {"x": feed}).values()) == {feed.size}
    unknown = replace(a, parts=None)
    assert set(guessed_sizes(unknown, {"x": feed}).values()) == {DEFAULT_SIZE}
