"""Whether feeds fit a signature: every mismatch is found and reported together, and nothing is cast."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from driftgate.domain.tensors import TensorSpec
from driftgate.errors import SampleError
from driftgate.messages.message import Message, message
from driftgate.sessions import Tensor, Tensors


def check_feeds(
    feeds: Tensors, inputs: Iterable[TensorSpec], *, stage: str, sample: str, optional: Collection[str] = ()
) -> None:
    """Raise SampleError unless the feeds are exactly the inputs, in type, rank and fixed dimensions.

    An empty dtype or a shape of None stands for "the artifact does not say". Inputs in `optional` may be absent.
    """
    specs = {spec.name: spec for spec in inputs}
    said = {"stage": stage, "sample": sample}
    problems: list[Message] = []
    for name, spec in specs.items():
        if name in feeds:
            problems.extend(_mismatches(feeds[name], spec, said))
        elif name not in optional:
            problems.append(message("feed-missing", name=name, **said))
    known = tuple(specs)
    problems.extend(
        message("feed-unknown", name=name, known=known, **said) for name in sorted(feeds) if name not in specs
    )
    if problems:
        raise SampleError(*problems)


def _mismatches(feed: Tensor, spec: TensorSpec, said: dict[str, str]) -> list[Message]:
    found: list[Message] = []
    if spec.dtype and feed.dtype.name != spec.dtype:
        found.append(message("feed-dtype", name=spec.name, found=feed.dtype.name, wanted=spec.dtype, **said))
    if spec.shape is not None and not _fits(feed.shape, spec.shape):
        found.append(
            message("feed-shape", name=spec.name, found=shape_text(feed.shape), wanted=shape_text(spec.shape), **said)
        )
    return found


def _fits(shape: tuple[int, ...], wanted: tuple[int | None, ...]) -> bool:
    return len(shape) == len(wanted) and all(want in (None, have) for have, want in zip(shape, wanted, strict=True))


def shape_text(shape: tuple[int | None, ...]) -> str:
    """A shape as people write it, `?` for a dynamic dimension: `(1, 3, ?, ?)`."""
    inner = ", ".join("?" if length is None else str(length) for length in shape)
    return f"({inner},)" if len(shape) == 1 else f"({inner})"
