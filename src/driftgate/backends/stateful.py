"""Networks with memory: one sample is a sequence, and what a step leaves behind is fed to the next."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import TracebackType

import numpy as np

from driftgate.backends.feeds import shape_text
from driftgate.domain.runs import Environment
from driftgate.domain.tensors import Quantization, Signature, TensorSpec
from driftgate.errors import BackendError, ConfigError, SampleError
from driftgate.messages.message import Message, message
from driftgate.sessions import Session, Tensor, Tensors

UNKNOWN_LENGTH = 1


class StatefulSession:
    """Runs a wrapped session once a step. `state` maps outputs to the inputs that receive them.

    Which feeds are sequences is read from their rank, against the rank of the model's input:

    * one dimension more: a sequence, (T, *input); all sequences of a sample are equally long;
    * the same rank: a constant, given to every step; for a state input, the state before the first step;
    * a leading dimension of length 1 too many is the mark of a stacked file and is dropped: (1, T, *input),
      and (1, *input) for a state input or for a constant of one element where T is not 1.

    Without a feed, a state starts from zeros of the input's shape, dynamic dimensions taken as 1 (a note says
    so). Outputs, states and taps among them, are (T, *output).
    """

    def __init__(
        self, session: Session, state: Mapping[str, str], *, stage: str, like: Iterable[TensorSpec] = ()
    ) -> None:
        """`like` are inputs of other stages of the network: they tell, by name, what this stage's artifact does
        not say of its own.

        Raises ConfigError for a state that names no output or no input, or one input twice, and for inputs
        whose shape nobody knows.
        """
        self._session = session
        self._stage = stage
        self._state = dict(state)
        signature = session.signature
        if signature is None or not signature.inputs:
            raise ConfigError(message("state-no-inputs", stage=stage))
        siblings = {spec.name: spec for spec in like if spec.shape is not None}
        self._inputs = {spec.name: _completed(spec, siblings.get(spec.name)) for spec in signature.inputs}
        outputs = tuple(spec.name for spec in signature.outputs)
        problems: list[Message] = []
        for source, target in self._state.items():
            if outputs and source not in outputs:
                problems.append(message("state-output-unknown", stage=stage, name=source, known=outputs))
            if target not in self._inputs:
                problems.append(message("state-input-unknown", stage=stage, name=target, known=tuple(self._inputs)))
        if len(set(self._state.values())) != len(self._state):
            problems.append(message("state-input-twice", stage=stage, names=tuple(sorted(self._state.values()))))
        unranked = tuple(spec.name for spec in self._inputs.values() if spec.shape is None)
        if unranked:
            problems.append(message("state-unranked", stage=stage, names=unranked))
        if problems:
            raise ConfigError(*problems)

    @property
    def signature(self) -> Signature:
        """That of a sequence: state inputs are those of `optional_inputs`, outputs have the time in front."""
        inner = self._session.signature or Signature((), ())
        required = tuple(spec for spec in self._inputs.values() if spec.name not in self._state.values())
        return Signature(tuple(_over_time(spec) for spec in required), tuple(_over_time(s) for s in inner.outputs))

    @property
    def optional_inputs(self) -> tuple[str, ...]:
        """The state inputs: a sample may bring the state that it starts from."""
        return tuple(self._state.values())

    @property
    def environment(self) -> Environment:
        """That of the wrapped session."""
        return self._session.environment

    @property
    def notes(self) -> tuple[Message, ...]:
        """Those of the wrapped session, and which state shapes were completed."""
        guessed = tuple(
            f"{name} {shape_text(self._inputs[name].shape or ())}"
            for name in self._state.values()
            if None in (self._inputs[name].shape or ())
        )
        note = message("state-shape-completed", stage=self._stage, inputs=guessed)
        return (*self._session.notes, *((note,) if guessed else ()))

    def infer(self, feeds: Tensors, *, sample: str) -> dict[str, Tensor]:
        """Run the sequence, and stack each output over time."""
        sequences, constants = self._divide(feeds, sample)
        state = self._first_state(feeds, sample)
        length = len(next(iter(sequences.values())))
        steps: list[dict[str, Tensor]] = []
        for step in range(length):
            now = {name: sequence[step] for name, sequence in sequences.items()}
            outputs = self._session.infer({**constants, **now, **state}, sample=sample)
            if missing := tuple(source for source in self._state if source not in outputs):
                raise BackendError(message("state-not-given", stage=self._stage, sample=sample, names=missing))
            state = {target: outputs[source] for source, target in self._state.items()}
            steps.append(outputs)
        return self._stacked(steps, sample)

    def __enter__(self) -> StatefulSession:
        self._session.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._session.__exit__(kind, error, trace)

    def _divide(self, feeds: Tensors, sample: str) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """The sequences, and what is the same in every step. Raises SampleError."""
        sequences: dict[str, Tensor] = {}
        constants: dict[str, Tensor] = {}
        problems: list[Message] = []
        for name, feed in feeds.items():
            if name in self._state.values():
                continue
            spec = self._inputs.get(name)
            rank = feed.ndim if spec is None else len(spec.shape or ())
            if feed.ndim == rank:
                constants[name] = feed
            elif feed.ndim == rank + 1:
                sequences[name] = feed
            elif feed.ndim == rank + 2 and len(feed) == 1:
                sequences[name] = feed[0]
            else:
                wanted = shape_text((None, *(() if spec is None else spec.shape or ())))
                problems.append(
                    message(
                        *("sequence-rank",),
                        name=name,
                        found=shape_text(feed.shape),
                        wanted=wanted,
                        stage=self._stage,
                        sample=sample,
                    )
                )
        longest = max((len(sequence) for sequence in sequences.values()), default=0)
        for name in [name for name, sequence in sequences.items() if sequence.size == 1 and longest > 1]:
            constants[name] = sequences.pop(name)[0]
        lengths = {len(sequence) for sequence in sequences.values()}
        if not problems and (len(lengths) != 1 or 0 in lengths):
            shown = tuple(f"{name}: {len(sequence)}" for name, sequence in sequences.items())
            problems.append(message("sequence-lengths", lengths=shown or ("-",), stage=self._stage, sample=sample))
        if problems:
            raise SampleError(*problems)
        return sequences, constants

    def _first_state(self, feeds: Tensors, sample: str) -> dict[str, Tensor]:
        state: dict[str, Tensor] = {}
        for name in self._state.values():
            spec = self._inputs[name]
            shape = spec.shape or ()
            if name not in feeds:
                lengths = tuple(UNKNOWN_LENGTH if length is None else length for length in shape)
                state[name] = np.zeros(lengths, spec.dtype or "float32")
            elif feeds[name].ndim == len(shape) + 1 and len(feeds[name]) == 1:
                state[name] = feeds[name][0]
            else:
                state[name] = feeds[name]
        return state

    def _stacked(self, steps: Sequence[Mapping[str, Tensor]], sample: str) -> dict[str, Tensor]:
        stacked: dict[str, Tensor] = {}
        for name in steps[0]:
            shapes = {step[name].shape for step in steps}
            if len(shapes) > 1:
                shown = tuple(shape_text(shape) for shape in sorted(shapes))
                raise BackendError(
                    message("sequence-shapes", name=name, shapes=shown, stage=self._stage, sample=sample)
                )
            stacked[name] = np.stack([step[name] for step in steps])
        return stacked


def _completed(spec: TensorSpec, sibling: TensorSpec | None) -> TensorSpec:
    if spec.shape is not None or sibling is None:
        return spec
    return replace(spec, dtype=spec.dtype or sibling.dtype, shape=sibling.shape)


def _over_time(spec: TensorSpec) -> TensorSpec:
    """The same tensor with the time in front; the axis of its scales moves along."""
    shape = None if spec.shape is None else (None, *spec.shape)
    return replace(spec, shape=shape, quantization=_shifted(spec.quantization))


def _shifted(quantization: Quantization | None) -> Quantization | None:
    if quantization is None or quantization.axis is None or quantization.axis < 0:
        return quantization
    return replace(quantization, axis=quantization.axis + 1)
