"""Faults of the evidence itself: parts missing, a reference not to be trusted, unreal inputs, a mean that hides."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from faultgen.calibrations import open_plan
from faultgen.networks import IMAGE_TRUNKS, TRUNKS, build, draw_feeds, draw_plan
from faultgen.planting import Planter, Random, all_live, chance, chosen, floats, gap, need, save
from faultgen.running import run


def _incomplete(random: Random, folder: Path) -> None:
    """The candidate's outputs are absent, or those of some outputs or samples."""
    plan = draw_plan(random, TRUNKS, samples=int(random.integers(2, 5)), outputs=int(random.integers(2, 4)))
    model, feeds = build(plan), draw_feeds(random, plan)
    a = run(model, feeds)
    need(all_live(a))
    way = chosen(random, ("all", "outputs", "samples"))
    b = {
        "all": None,
        "outputs": {name: a[name] for name in list(a)[: int(random.integers(1, len(a)))]},
        "samples": {name: array[: int(random.integers(1, plan.samples))] for name, array in a.items()},
    }[way]
    link = {"reference": "quantized", "candidate": "hbm", "kind": "compiled"}
    save(
        folder,
        tensors={"inputs": feeds, "outputs_a": a, "outputs_b": b},
        models={"model_a": model},
        documents={"link": link if chance(random, 0.7) else None},
    )


def _untrusted(random: Random, folder: Path) -> None:
    """The reference is constant, not finite, or not what its own file gives on its own inputs."""
    plan = draw_plan(random, TRUNKS)
    model, feeds = build(plan), draw_feeds(random, plan)
    good = run(model, feeds)
    need(all_live(good))
    way = chosen(random, ("constant", "nan", "another"))
    if way == "constant":
        a = {name: np.zeros_like(array) for name, array in good.items()}
    elif way == "nan":
        a = {name: array.copy() for name, array in good.items()}
        for array in a.values():
            array.reshape(-1)[random.choice(array.size, max(1, array.size // 5), replace=False)] = np.nan
    else:
        a = run(model, draw_feeds(random, plan))
        need(gap(good, a) > 0.1)
    save(
        folder,
        tensors={"inputs": feeds, "outputs_a": a, "outputs_b": good},
        models={"model_a": model, "model_b": model},
    )


def _unreal(random: Random, folder: Path) -> None:
    """Inputs of random noise far outside of what the calibration data holds; the difference is tiny on their range."""
    plan = open_plan(random, IMAGE_TRUNKS)
    model = build(plan)
    calib = draw_feeds(random, plan, 8)
    size = float(10 ** random.uniform(2, 4))
    feeds = {plan.input_name: floats(random.normal(0, size, (plan.samples, *plan.input_shape)))}
    a = run(model, feeds)
    need(all_live(a))
    b = {
        name: floats(
            array + random.normal(0, 1, array.shape) * np.abs(array).max() * float(10 ** random.uniform(-4.4, -3.7))
        )
        for name, array in a.items()
    }
    save(
        folder,
        tensors={"inputs": feeds, "calib": calib, "outputs_a": a, "outputs_b": b},
        models={"model_a": model, "model_b": model if chance(random, 0.3) else None},
    )


def _hidden(random: Random, folder: Path) -> None:
    """One of many samples is wrong throughout; the mean over the samples looks well."""
    plan = replace(draw_plan(random, TRUNKS), samples=int(random.integers(24, 64)), fixed_batch=False, outputs=1)
    model, feeds = build(plan), draw_feeds(random, plan)
    a = run(model, feeds)
    name = plan.output_names[0]
    b = a[name] + random.normal(0, 1, a[name].shape) * a[name].std() * float(10 ** random.uniform(-4, -2.2))
    worst = int(random.integers(plan.samples))
    b[worst] = random.permutation(a[name][worst].reshape(-1)).reshape(a[name][worst].shape)
    b = floats(b)
    need(all_live(a) and gap({name: a[name][worst]}, {name: b[worst]}) > 0.8)
    save(folder, tensors={"inputs": feeds, "outputs_a": a, "outputs_b": {name: b}}, models={"model_a": model})


PLANTERS = (
    Planter("incomplete-evidence", "evidence", _incomplete),
    Planter("reference-invalid", "evidence", _untrusted),
    Planter("invalid-test-input", "evidence", _unreal),
    Planter("worst-sample-hidden", "evidence", _hidden),
)
