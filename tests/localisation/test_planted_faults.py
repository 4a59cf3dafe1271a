"""Faults planted one at a time in networks of many kinds: the first diverging node is the planted one.

A fault counts when it lowers the signal to noise ratio of the channels it hits by 12 dB, measured at the node
itself, and reaches an output. Right is the planted node, or a region of up to three nodes that holds it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from itertools import chain, zip_longest
from pathlib import Path

import numpy as np
import pytest

from driftgate.judgement.nodes import first_divergence
from support.faultkinds import FLOAT, QUANTISED, fold_faults
from support.faults import Bed, planted
from support.fieldnets import classifier, detector, face_network
from support.nets import BUILT, Network
from support.rewriting import folded, renamed, reordered
from support.stages import optimised, quantised
from support.trials import Ground, Score, Trial, tried

SEED = 20291
LEAST_TRIALS = 200
MOST_DISCARDED = 0.2
FLOOR = {"float": 0.98, "QDQ": 0.95}

Build = Callable[[Path], Network]

#: Networks, and how many trials of either family each gets.
NETWORKS: Mapping[str, tuple[Build, int]] = {
    **{name: (lambda folder, build=build: build(), 27) for name, build in BUILT.items()},  # type: ignore[misc]
    "classifier": (classifier, 24),
    "face_network": (face_network, 24),
    "detector of text": (detector, 12),
}


def float_trials(network: Network, folder: Path, wanted: int) -> Score:
    """Against what an optimiser made, the same renamed and re-ordered, and a fold of batch norms, in turns."""
    candidate = optimised(network.model, folder)
    hidden, names = renamed(reordered(candidate, SEED), SEED)
    grounds = [
        Ground.of(network.name, network.model, candidate, network.feeds, folder / "optimised"),
        Ground.of(network.name, network.model, hidden, network.feeds, folder / "renamed", new_names=names),
    ]
    faults = [
        planted(Bed.of(ground.candidate, ground.shapes), FLOAT, SEED + number) for number, ground in enumerate(grounds)
    ]
    if any(node.op_type == "BatchNormalization" for node in network.model.graph.node):
        fold = folded(network.model)
        grounds.append(Ground.of(network.name, network.model, fold, network.feeds, folder / "folded"))
        planter = planted(Bed.of(fold, grounds[-1].shapes), FLOAT, SEED + 2)
        folds = fold_faults(network.model, SEED)
        faults.append(fault for pair in zip_longest(folds, planter) for fault in pair if fault is not None)
    for ground in grounds:
        assert first_divergence(ground.investigated(ground.candidate).nodes) is None, f"{ground.folder.name} is healthy"
    shares = [len(part) for part in np.array_split(np.arange(wanted), len(grounds))]
    scores = [tried(ground, fault, share) for ground, fault, share in zip(grounds, faults, shares, strict=True)]
    return Score(
        network.name,
        trials=[trial for score in scores for trial in score.trials],
        discarded=[kind for score in scores for kind in score.discarded],
    )


def quantised_trials(network: Network, folder: Path, wanted: int) -> Score:
    """Against the network calibrated on the samples it is looked at with."""
    candidate = quantised(network, folder)
    ground = Ground.of(network.name, network.model, candidate, network.feeds, folder / "quantised")
    assert first_divergence(ground.investigated(candidate).nodes) is None, "healthy QDQ"
    return tried(ground, planted(Bed.of(candidate, ground.shapes), {**QUANTISED, **FLOAT}, SEED), wanted)


FAMILIES = {"float": float_trials, "QDQ": quantised_trials}


@pytest.mark.parametrize("family", FAMILIES)
def test_the_planted_node_is_named(family: str, tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    scores = [
        FAMILIES[family](build(tmp_path / name / "given"), tmp_path / name, wanted)
        for name, (build, wanted) in made_folders(tmp_path)
    ]
    record_property("table", table(family, scores))
    trials = list(chain.from_iterable(score.trials for score in scores))
    discarded = sum(len(score.discarded) for score in scores)
    right = sum(trial.right for trial in trials)
    assert len(trials) >= LEAST_TRIALS, table(family, scores)
    assert discarded <= MOST_DISCARDED * (len(trials) + discarded), table(family, scores)
    assert right >= FLOOR[family] * len(trials), table(family, scores)


def made_folders(folder: Path) -> Iterator[tuple[str, tuple[Build, int]]]:
    """The networks, each with a folder to be built in."""
    for name, told in NETWORKS.items():
        (folder / name / "given").mkdir(parents=True)
        yield name, told


def table(family: str, scores: list[Score]) -> str:
    """Rows of networks, their sum, what was discarded, and every trial that went wrong."""
    everything = Score(
        "all",
        trials=[trial for score in scores for trial in score.trials],
        discarded=[kind for score in scores for kind in score.discarded],
    )
    lines = [f"{family:14} {'trials':>7} {'discarded':>10} {'right':>6} {'wrong':>6}"]
    for score in (*scores, everything):
        count, gone, right = len(score.trials), len(score.discarded), score.right
        lines.append(f"{score.name:14} {count:7} {gone:10} {right:6} {count - right:6}")
    kinds = Counter(trial.fault.kind for trial in everything.trials)
    lines.append("kinds: " + ", ".join(f"{kind} {count}" for kind, count in sorted(kinds.items())))
    left = Counter(everything.discarded)
    lines.append("discarded: " + (", ".join(f"{kind} {count}" for kind, count in sorted(left.items())) or "none"))
    lines += [wrong(score.name, trial) for score in scores for trial in score.trials if not trial.right]
    return "\n".join(lines)


def wrong(name: str, trial: Trial) -> str:
    """What was planted and what was named instead."""
    return f"wrong: {name}, {trial.fault.kind} at {trial.fault.accepted[0]}, named {', '.join(trial.blamed) or 'none'}"
