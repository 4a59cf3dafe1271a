"""The options that say how much an investigation may take."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

import click

from driftgate.errors import UsageError
from driftgate.investigating import SAMPLES, Effort
from driftgate.messages.message import message

UNITS = {"": 1, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30}
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([KMG]iB)?\s*", re.IGNORECASE)

F = TypeVar("F", bound=Callable[..., object])


def effort_options(verb: F) -> F:
    """--memory, --node-samples and --repro; give their values to `effort`."""
    samples = click.option(
        "--node-samples",
        type=click.IntRange(min=1),
        default=SAMPLES,
        show_default=True,
        help="Samples that nodes are compared on, the worst first.",
    )
    memory = click.option(
        "--memory", default="512MiB", show_default=True, help="What the tapped tensors may take at a time."
    )
    repro = click.option(
        "--repro/--no-repro",
        default=True,
        help="Write the smallest part of the model, with its weights, that shows the first divergence.",
    )
    return samples(memory(repro(verb)))


def effort(memory: str, node_samples: int, *, repro: bool) -> Effort:
    """The options' values. Raises UsageError for what is no size."""
    found = _SIZE.fullmatch(memory)
    if found is None:
        raise UsageError(message("size-form", found=memory))
    return Effort(node_samples, max(1, int(float(found[1]) * UNITS[(found[2] or "").lower()])), repro)
