"""Comparing the outputs of two stages sample by sample; memory is flat in the number of samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftgate.domain.facts import Problem
from driftgate.domain.measurements import Alignment, Measurement, Moments, Role, concatenate
from driftgate.domain.tensors import Quantization, Signature, TensorSpec
from driftgate.messages.message import Message, message
from driftgate.numerics.alignment import alike, channel_axis, dequantised, same_shape, settle_ties
from driftgate.numerics.moments import by_channel, fold
from driftgate.numerics.outputs import NamedTensor, OutputPair, pair_outputs

Tensor = NDArray[Any]
COMPARABLE = "fiub"  # numpy kinds: float, int, unsigned, bool


@dataclass(frozen=True, slots=True)
class OutputMap:
    """What the user said about outputs: other names, ones left out, and axis orders by (output, stage)."""

    names: Mapping[str, Sequence[str]] = field(default_factory=dict)
    ignored: tuple[str, ...] = ()
    permute: Mapping[tuple[str, str], tuple[int, ...]] = field(default_factory=dict)


@dataclass(slots=True)
class _Track:
    """What has been gathered of one output pair."""

    pair: OutputPair
    alignment: Alignment
    step: float | None
    samples: list[str] = field(default_factory=list)
    rows: list[Moments] = field(default_factory=list)
    open_channels: list[Moments] = field(default_factory=list)
    blocks: list[int] = field(default_factory=list)
    channels: list[Moments] = field(default_factory=list)


class Comparator:
    """Gathers the measurements of one link. Add samples in order, block by block, then take `measurements`."""

    def __init__(
        self,
        link: str,
        *,
        stages: tuple[str, str],
        signatures: tuple[Signature | None, Signature | None],
        outputs: OutputMap,
    ) -> None:
        self._link = link
        self._stages = stages
        self._specs = tuple({} if s is None else {spec.name: spec for spec in s.outputs} for s in signatures)
        self._outputs = outputs
        self._pairs: tuple[OutputPair, ...] | None = None
        self._tracks: dict[str, _Track] = {}
        self._problems: dict[tuple[str | None, str], Problem] = {}
        self._notes: list[Message] = []
        self._block: int | None = None

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What could not be compared, each named once."""
        return tuple(self._problems.values())

    @property
    def notes(self) -> tuple[Message, ...]:
        """What the reader should know of the pairing."""
        return tuple(self._notes)

    def add(self, block: int, sample: str, a: Mapping[str, Tensor], b: Mapping[str, Tensor]) -> None:
        """Compare one sample's outputs of both stages."""
        if block != self._block:
            self._close_block()
            self._block = block
        if self._pairs is None:
            self._pairs = self._pair(a, b)
        prepared: dict[str, tuple[Tensor, Tensor, Alignment]] = {}
        for pair in self._pairs:
            if pair.a not in a or pair.b not in b:
                side = self._stages[0] if pair.a not in a else self._stages[1]
                self._fail(pair.name, message("output-gone", stage=side, output=pair.name, sample=sample))
                continue
            aligned = self._align(pair, a[pair.a], b[pair.b], sample)
            if aligned is not None:
                prepared[pair.name] = aligned
        for name, (x, y, alignment) in self._settled(prepared).items():
            self._measure(name, sample, x, y, alignment)

    def measurements(self, run_a: str, run_b: str) -> tuple[Measurement, ...]:
        """All that was gathered, one measurement an output."""
        self._close_block()
        return tuple(
            Measurement(
                link=self._link,
                output=name,
                role=Role.OUTPUT,
                run_a=run_a,
                run_b=run_b,
                alignment=track.alignment,
                step=track.step,
                samples=tuple(track.samples),
                rows=concatenate(track.rows),
                blocks=tuple(track.blocks),
                channels=concatenate(track.channels) if track.channels else None,
            )
            for name, track in self._tracks.items()
        )

    def _fail(self, output: str | None, reason: Message) -> None:
        self._problems.setdefault((output, reason.code), Problem(self._link, output, reason))

    def _pair(self, a: Mapping[str, Tensor], b: Mapping[str, Tensor]) -> tuple[OutputPair, ...]:
        pairing = pair_outputs(_named(a), _named(b), names=self._outputs.names, ignored=self._outputs.ignored)
        for name in pairing.left_a:
            self._fail(
                name,
                message("output-unpaired", output=name, stage=self._stages[1], others=pairing.left_b or ("-",)),
            )
        if pairing.left_b and pairing.pairs:
            self._notes.append(message("outputs-extra", stage=self._stages[1], outputs=pairing.left_b))
        self._notes.extend(
            message("output-by-signature", output=pair.a, partner=pair.b)
            for pair in pairing.pairs
            if pair.how == "signature"
        )
        if not pairing.pairs:
            self._fail(None, message("outputs-none", reference=self._stages[0], candidate=self._stages[1]))
        return pairing.pairs

    def _align(self, pair: OutputPair, a: Tensor, b: Tensor, sample: str) -> tuple[Tensor, Tensor, Alignment] | None:
        dtypes = str(a.dtype), str(b.dtype)
        if a.dtype.kind not in COMPARABLE or b.dtype.kind not in COMPARABLE:
            self._fail(pair.name, message("output-kind", output=pair.name, a=dtypes[0], b=dtypes[1]))
            return None
        spec_a, spec_b = self._specs[0].get(pair.a), self._specs[1].get(pair.b)
        quant_a, quant_b = _quantization(spec_a, a), _quantization(spec_b, b)
        scaled: list[str] = []
        axis = None
        if not alike(quant_a, quant_b):
            if quant_a is not None:
                a, scaled = dequantised(a, quant_a), ["a"]
            if quant_b is not None:
                b, scaled = dequantised(b, quant_b), [*scaled, "b"]
        elif quant_a is not None and len(quant_a.scales) > 1:
            axis = quant_a.axis
        permutation = self._outputs.permute.get((pair.name, self._stages[1]))
        undone = self._outputs.permute.get((pair.name, self._stages[0]))
        try:
            a = a if undone is None else a.transpose(undone)
            b = b if permutation is None else b.transpose(permutation)
        except ValueError:
            shape = str((a if undone is not None else b).shape)
            self._fail(pair.name, message("output-permutation", output=pair.name, shape=shape, sample=sample))
            return None
        shaped = same_shape(a, b)
        if shaped is None:
            self._fail(
                pair.name,
                message(
                    "output-shape",
                    stage=self._stages[1],
                    output=pair.name,
                    shape=str(b.shape),
                    reference=str(a.shape),
                    sample=sample,
                ),
            )
            return None
        alignment = Alignment(
            output_a=pair.a,
            output_b=pair.b,
            how=pair.how,
            shape=a.shape,
            axis=channel_axis(a.shape, axis),
            dtype_a=dtypes[0],
            dtype_b=dtypes[1],
            permutation=permutation,
            reshaped=a.shape != b.shape,
            scaled=tuple(scaled),
        )
        return a, shaped, alignment

    def _settled(
        self, prepared: Mapping[str, tuple[Tensor, Tensor, Alignment]]
    ) -> dict[str, tuple[Tensor, Tensor, Alignment]]:
        """Top-k indices put into one order where an output of the same shape holds the tied scores."""
        settled = dict(prepared)
        for name, (index_a, index_b, alignment) in prepared.items():
            if index_a.dtype.kind not in "iu" or np.array_equal(index_a, index_b) or not index_a.size:
                continue
            for values_a, values_b, _ in prepared.values():
                if values_a.dtype.kind != "f" or values_a.shape != index_a.shape:
                    continue
                ordered, moved = settle_ties(values_a, values_b, index_a, index_b)
                if moved:
                    settled[name] = (index_a, ordered, replace(alignment, ties=moved))
                    break
        return settled

    def _measure(self, name: str, sample: str, a: Tensor, b: Tensor, alignment: Alignment) -> None:
        track = self._tracks.get(name)
        if track is None:
            pair = next(pair for pair in self._pairs or () if pair.name == name)
            step = _step(self._specs[0].get(pair.a), self._specs[1].get(pair.b), alignment)
            track = self._tracks[name] = _Track(pair, alignment, step)
        elif _channels(alignment) != _channels(track.alignment):
            # Channels that come and go with the sample (detections) have no meaning as channels.
            track.alignment = replace(track.alignment, axis=None)
        # Each sample is cut along its own axis, whatever the others are like: its row never depends on them.
        table = by_channel(a, b, axis=alignment.axis, step=track.step)
        track.samples.append(sample)
        track.rows.append(fold(table))
        if track.alignment.axis is not None:
            track.open_channels.append(table)
        if alignment.ties:
            track.alignment = replace(track.alignment, ties=track.alignment.ties + alignment.ties)

    def _close_block(self) -> None:
        if self._block is None:
            return
        for track in self._tracks.values():
            if track.alignment.axis is None:
                track.channels.clear()
                track.open_channels.clear()
            elif track.open_channels:
                track.channels.append(fold(concatenate(track.open_channels), _channels(track.alignment)[1]))
                track.open_channels.clear()
            if track.samples and (not track.blocks or track.blocks[-1] != self._block):
                track.blocks.append(self._block)
        self._block = None


def _named(tensors: Mapping[str, Tensor]) -> list[NamedTensor]:
    return [NamedTensor(name, tensor.dtype.kind, tensor.shape) for name, tensor in tensors.items()]


def _quantization(spec: TensorSpec | None, tensor: Tensor) -> Quantization | None:
    if spec is None or tensor.dtype.kind not in "iu":
        return None
    return spec.quantization


def _channels(alignment: Alignment) -> tuple[int | None, int]:
    """The channel axis and how many channels it has."""
    return alignment.axis, alignment.shape[alignment.axis] if alignment.axis is not None else 1


def _step(a: TensorSpec | None, b: TensorSpec | None, alignment: Alignment) -> float | None:
    """One LSB in the unit of the compared numbers: the candidate's, else the reference's; 1 for integers."""
    for spec, side in ((b, "b"), (a, "a")):
        if spec is None:
            continue
        if spec.step is not None:
            return spec.step
        if spec.quantization is not None and len(spec.quantization.scales) == 1:
            return spec.quantization.scales[0] if side in alignment.scaled else 1.0
    return None
