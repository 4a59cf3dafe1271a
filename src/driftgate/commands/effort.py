"""The options that say how much an investigation may take, and a cache."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import click

from driftgate.errors import UsageError
from driftgate.investigating import SAMPLES, Effort
from driftgate.messages.message import message
from driftgate.recall import Recall

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


def cache_options(verb: F) -> F:
    """--cache and --cache-size; give their values to `recall_of`."""
    folder = click.option(
        "--cache",
        type=click.Path(path_type=Path),
        help="A folder of outputs: what ran before with the same artifact, feeds and environment is not run again.",
    )
    size = click.option("--cache-size", default="2GiB", show_default=True, help="What the cache may hold.")
    return folder(size(verb))


def recall_of(cache: Path | None, cache_size: str) -> Recall | None:
    """The options' values; None where no cache is asked for. Raises UsageError for what is no size."""
    return None if cache is None else Recall(cache, budget_bytes=size_in_bytes(cache_size))


def effort(memory: str, node_samples: int, *, repro: bool) -> Effort:
    """The options' values. Raises UsageError for what is no size."""
    return Effort(node_samples, max(1, size_in_bytes(memory)), repro)


def size_in_bytes(text: str) -> int:
    """A size such as 512MiB. Raises UsageError for what is none."""
    found = _SIZE.fullmatch(text)
    if found is None:
        raise UsageError(message("size-form", found=text))
    return int(float(found[1]) * UNITS[(found[2] or "").lower()])
