"""Keeping score while stages run: post-processing that all stages share, then what the task notes of each sample."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

import numpy as np

from driftgate.backends.functions import RESULT, CalledFunction, Function, open_function
from driftgate.domain.facts import Problem
from driftgate.domain.measurements import Array
from driftgate.domain.plan import ScoreSpec
from driftgate.domain.scores import ScoreRecords
from driftgate.domain.tensors import Quantization, Signature
from driftgate.errors import ArtifactError, BackendError, DriftgateError, SampleError
from driftgate.messages.message import message
from driftgate.numerics.alignment import dequantised
from driftgate.numerics.outputs import common_names
from driftgate.scoring import custom
from driftgate.scoring.parameters import as_parameters
from driftgate.scoring.postprocess import argmax, sigmoid, softmax, yolo
from driftgate.scoring.tasks import OWN, TASKS
from driftgate.sessions import Tensor
from driftgate.transforms.geometry import Geometry

SIMPLE: Mapping[str, Callable[[Tensor], Tensor]] = {"softmax": softmax, "sigmoid": sigmoid, "argmax": argmax}
#: What is wrong with a stage, not with one sample of it.
OF_THE_STAGE = frozenset({"score-output", "score-own-missing", "function-name", "function-import", "function-callable"})
MOST_PROBLEMS = 20  # samples that could not be scored, named one by one


@dataclass(frozen=True, slots=True)
class Ready:
    """A post-processing of ours: its name, and yolo's parameters."""

    name: str
    classes: int = 1
    objectness: bool = False
    confidence: float = 0.001
    overlap: float = 0.7
    most: int = 300


@dataclass(frozen=True, slots=True)
class Keeping:
    """How a subject is scored: labels by sample, post-processing, and the user's own scorer where there is one.

    `geometry` tells for images how they were fitted, so that boxes go back to the pixels of the labels.
    """

    labels: Mapping[str, Tensor]
    names: Mapping[str, Sequence[str]]
    post: Function | Ready | None = None
    scorer: Function | None = None
    whole: Function | None = None
    geometry: Mapping[str, Geometry] = field(default_factory=dict)


class Functions:
    """The user's functions while a leg runs, each opened once; one that cannot be opened is tried once a stage."""

    def __init__(self, keeping: Keeping, stack: ExitStack) -> None:
        self._keeping = keeping
        self._stack = stack
        self._open: dict[tuple[str, str], CalledFunction] = {}
        self._failed: dict[tuple[str, str], DriftgateError] = {}

    def called(self, function: Function, stage: str) -> CalledFunction:
        """An open function; a scorer that remembers keeps the stages apart, so each stage has its own."""
        key = (function.name, stage if self._keeping.whole is not None else "")
        if (function.name, stage) in self._failed:
            raise self._failed[function.name, stage].with_traceback(None)
        if key not in self._open:
            try:
                self._open[key] = self._stack.enter_context(open_function(function, stage))
            except DriftgateError as error:
                self._failed[function.name, stage] = error
                raise
        return self._open[key]


class ScoreTrack:
    """What the scores of one task take from one stage, recorded sample by sample."""

    def __init__(
        self,
        spec: ScoreSpec,
        *,
        stage: str,
        signature: Signature | None,
        keeping: Keeping,
        functions: Functions,
    ) -> None:
        self.stage = stage
        self.problems: list[Problem] = []
        self._spec = spec
        self._keeping = keeping
        self._functions = functions
        self._parameters = as_parameters(spec.params)
        self._quantized: dict[str, Quantization] = {
            output.name: output.quantization
            for output in (signature.outputs if signature else ())
            if output.quantization is not None
        }
        self._rows: list[tuple[str, Array]] = []

    def add(self, sample: str, outputs: Mapping[str, Tensor]) -> None:
        """Record one sample; one that cannot be scored is a problem of this stage, named, and the rest go on."""
        try:
            self._rows.append((sample, self._record(sample, self._numbers(outputs))))
        except (SampleError, BackendError, ArtifactError) as error:
            reason = error.problems[0]
            if reason.code not in OF_THE_STAGE:
                reason = message("score-sample", sample=sample, reason=error.problems[0])
            problem = Problem(self.stage, self._spec.name, reason)
            if problem not in self.problems and len(self.problems) < MOST_PROBLEMS:
                self.problems.append(problem)

    def records(self, run: str) -> ScoreRecords | None:
        """What was recorded; None where nothing was."""
        if not self._rows:
            return None
        fields = custom.FIELDS if self._spec.task == OWN else TASKS[self._spec.task].fields
        if self._keeping.whole is not None:
            return self._whole(run)
        empty = ScoreRecords(self.stage, run, self._spec.task, fields, (), np.empty((0, len(fields))))
        return empty.with_rows(self._rows)

    def _whole(self, run: str) -> ScoreRecords | None:
        whole = self._keeping.whole
        if whole is None or self._keeping.scorer is None:
            return None
        scorer = self._keeping.scorer
        try:
            value = self._functions.called(scorer, self.stage).whole(whole)
            samples = [sample for sample, _ in self._rows]
            return custom.whole(self.stage, run, self._spec.task, samples=samples, value=float(value.reshape(-1)[0]))
        except (SampleError, BackendError, KeyError) as error:
            self.problems.append(Problem(self.stage, self._spec.name, message("score-whole", reason=str(error))))
            return None

    def _numbers(self, outputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The outputs under their common names, integers with a scale as numbers."""
        common = common_names(self._keeping.names)
        return {
            common.get(name, name): dequantised(value, self._quantized[name])
            if name in self._quantized and value.dtype.kind in "iu"
            else value
            for name, value in outputs.items()
        }

    def _record(self, sample: str, outputs: Mapping[str, Tensor]) -> Array:
        label = self._keeping.labels[sample]
        if self._spec.task == OWN:
            if self._keeping.scorer is None:
                raise SampleError(message("score-own-missing"))
            made = self._functions.called(self._keeping.scorer, self.stage)(outputs, label=label, sample=sample)
            value = made.get(RESULT, np.array([]))
            if value.size != 1:
                raise SampleError(message("score-own-number", found=str(value.shape)))
            return custom.rows(float(value.reshape(-1)[0]))
        value = self._processed(sample, outputs)
        if self._spec.task == "detection" and sample in self._keeping.geometry and len(value):
            boxes = self._keeping.geometry[sample].to_image(value[:, :4])
            value = np.concatenate([boxes, value[:, 4:]], axis=1)
        return TASKS[self._spec.task].record(value, label, self._parameters)

    def _processed(self, sample: str, outputs: Mapping[str, Tensor]) -> Tensor:
        post = self._keeping.post
        if isinstance(post, Function):
            made = self._functions.called(post, self.stage)(outputs, sample=sample)
            return made[RESULT] if RESULT in made else self._chosen(made)
        value = self._chosen(outputs)
        return value if post is None else _ready(post, value)

    def _chosen(self, outputs: Mapping[str, Tensor]) -> Tensor:
        wanted = self._spec.output
        if wanted is not None and wanted in outputs:
            return outputs[wanted]
        if len(outputs) == 1:
            return next(iter(outputs.values()))
        raise SampleError(
            message("score-output", stage=self.stage, output=wanted or "-", outputs=tuple(outputs) or ("-",))
        )


def _ready(post: Ready, value: Tensor) -> Tensor:
    if post.name == "yolo":
        found: Tensor = yolo(
            value,
            classes=post.classes,
            objectness=post.objectness,
            confidence=post.confidence,
            overlap=post.overlap,
            most=post.most,
        )
        return found
    return SIMPLE[post.name](value)
