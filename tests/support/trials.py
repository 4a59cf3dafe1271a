"""Trials of localisation: plant a fault, see that it counts, ask the product where it is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort  # type: ignore[import-untyped]
from numpy.typing import NDArray
from onnx import helper

from driftgate.backends.onnxruntime_backend import OnnxRuntimeBackend
from driftgate.domain.investigations import Investigation, NodeError
from driftgate.judgement.nodes import first_divergence
from driftgate.localisation.investigate import investigate
from driftgate.localisation.subject import read_subject
from driftgate.sessions import Artifact
from support.faults import Planted
from support.nets import Feeds
from support.rewriting import copied, makers, values

Array = NDArray[Any]

COUNTS_DB = 12.0  # a fault counts when it lowers the signal to noise ratio of what it hits by this
SAME_DB = 60.0  # tensors of one name in a float pair are the same number from here
ALIKE_DB = 3.0  # and in a quantised pair
LARGEST_REGION = 3
EQUAL = 250.0


def run(model: onnx.ModelProto, feeds: Feeds, taps: Iterable[str] = ()) -> dict[str, Array]:
    """Outputs and taps of a model, computed without optimisation."""
    tapped = copied(model)
    have = {value.name for value in tapped.graph.output}
    tapped.graph.output.extend(helper.make_empty_tensor_value_info(name) for name in taps if name not in have)
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    session = ort.InferenceSession(tapped.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, dict(feeds)), strict=True))


def floats(model: onnx.ModelProto, feeds: Feeds) -> dict[str, Array]:
    """Every tensor of floats that a model computes, inputs included."""
    names = [name for node in model.graph.node for name in node.output if name and node.op_type != "Constant"]
    made = run(model, feeds, names)
    return {**feeds, **{name: value for name, value in made.items() if getattr(value, "dtype", None) == np.float32}}


def decibel(reference: Array, value: Array) -> float:
    """Signal to noise ratio."""
    signal = float((reference.astype(np.float64) ** 2).sum())
    noise = float(((reference.astype(np.float64) - value) ** 2).sum())
    if noise == 0:
        return EQUAL
    return 10 * float(np.log10(signal / noise)) if signal and np.isfinite(noise) else -EQUAL


@dataclass(slots=True)
class Ground:
    """A healthy pair: `partners` are the reference's names of the candidate's tensors that are the same number."""

    name: str
    reference: onnx.ModelProto
    candidate: onnx.ModelProto
    feeds: Mapping[str, Feeds]
    folder: Path
    partners: dict[str, str] = field(default_factory=dict)
    numbers: list[dict[str, Array]] = field(default_factory=list)
    healthy_outputs: list[dict[str, Array]] = field(default_factory=list)
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    _owns: dict[str, list[Array]] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        name: str,
        reference: onnx.ModelProto,
        candidate: onnx.ModelProto,
        feeds: Mapping[str, Feeds],
        folder: Path,
        *,
        new_names: Mapping[str, str] | None = None,
    ) -> Ground:
        """Run both sides once; `new_names` tells how the candidate's tensors were renamed."""
        ground = cls(name, reference, candidate, feeds, folder)
        folder.mkdir(parents=True, exist_ok=True)
        ground.numbers = [floats(reference, sample) for sample in feeds.values()]
        first = floats(candidate, next(iter(feeds.values())))
        ground.shapes = {told: value.shape for told, value in first.items()}
        old = {new: name for name, new in (new_names or {}).items()}
        made = makers(candidate)
        for tensor, value in first.items():
            known = old.get(tensor, tensor)
            maker = made.get(tensor)
            quantised = maker is not None and maker.op_type == "DequantizeLinear"
            known = known.removesuffix("_DequantizeLinear_Output") if quantised else known
            partner = ground.numbers[0].get(known)
            limit = ALIKE_DB if any(node.op_type == "QuantizeLinear" for node in candidate.graph.node) else SAME_DB
            if partner is not None and partner.shape == value.shape and decibel(partner, value) >= limit:
                ground.partners[tensor] = known
        ground.healthy_outputs = [run(candidate, sample) for sample in feeds.values()]
        return ground

    def reference_of(self, tensor: str) -> list[Array] | None:
        """The reference's numbers of a candidate's tensor, sample by sample."""
        known = self.partners.get(tensor)
        return None if known is None else [numbers[known] for numbers in self.numbers]

    def own(self, model: onnx.ModelProto, tensor: str) -> list[Array]:
        """A tensor as the model computes it from the reference's numbers right before."""
        maker, constant = makers(model), values(model)
        chain = {tensor}
        name = tensor
        while maker.get(name) is not None and maker[name].op_type in ("QuantizeLinear", "DequantizeLinear"):
            name = maker[name].input[0]
            chain.add(name)
        quantised = any(node.op_type == "QuantizeLinear" for node in model.graph.node)
        needed, given, pending = [], [], [tensor]
        while pending:
            name = pending.pop()
            made = maker.get(name)
            usable = name in self.partners and name not in chain
            if usable and quantised and made is not None:
                usable = made.op_type == "DequantizeLinear" and made.input[0] not in constant
            if made is None or usable:
                if name not in constant and name and name not in given:
                    given.append(name)
                continue
            if made.op_type == "Constant" or made.name in needed:
                continue
            needed.append(made.name)
            pending.extend(made.input)
        small = onnx.ModelProto(ir_version=model.ir_version, opset_import=model.opset_import)
        small.graph.name = "own"
        small.graph.node.extend(n for n in model.graph.node if n.name in needed or n.op_type == "Constant")
        read = {name for node in small.graph.node for name in node.input}
        small.graph.initializer.extend(t for t in model.graph.initializer if t.name in read)
        fed = [name for name in given if name in read]
        small.graph.input.extend(
            helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [None] * len(self.shapes[name])) for name in fed
        )
        small.graph.output.append(helper.make_empty_tensor_value_info(tensor))
        made_of = []
        for number, sample in enumerate(self.feeds.values()):
            given_now = {
                name: sample[name] if name in sample else self.numbers[number][self.partners[name]] for name in fed
            }
            made_of.append(run(small, given_now)[tensor])
        return made_of

    def counts(self, fault: Planted) -> bool:
        """Whether the fault lowers what it hits by 12 dB, and the outputs know."""
        reference = self.reference_of(fault.tensor)
        if fault.tensor not in self._owns:
            self._owns[fault.tensor] = self.own(self.candidate, fault.tensor)
        healthy, faulty = self._owns[fault.tensor], self.own(fault.model, fault.tensor)
        truth = reference if reference is not None else healthy
        before, after = _of(truth, healthy, fault), _of(truth, faulty, fault)
        if after > before - COUNTS_DB:
            return False
        outputs = [run(fault.model, sample) for sample in self.feeds.values()]
        return any(
            not np.array_equal(now[name], then[name])
            for now, then in zip(outputs, self.healthy_outputs, strict=True)
            for name in then
        )

    def investigated(self, model: onnx.ModelProto) -> Investigation:
        """What the product finds out about the reference and this candidate."""
        return investigated(self.reference, model, self.feeds, self.folder)


def investigated(
    reference: onnx.ModelProto, candidate: onnx.ModelProto, feeds: Mapping[str, Feeds], folder: Path
) -> Investigation:
    """What the product finds out about two models whose outputs have one order."""
    backend = OnnxRuntimeBackend()
    sides = []
    for stage, model in (("reference", reference), ("candidate", candidate)):
        path = folder / f"{stage}.onnx"
        onnx.save(model, str(path))
        artifact = Artifact(stage, "onnxruntime", path, {"threads": 1})
        sides.append(read_subject(stage, artifact, backend, backend, lambda sample: feeds[sample]))
    outputs = zip(reference.graph.output, candidate.graph.output, strict=True)
    named = {one.name: other.name for one, other in outputs}
    return investigate("reference..candidate", sides[0], sides[1], tuple(feeds), outputs=named)


def _of(truth: Sequence[Array], made: Sequence[Array], fault: Planted) -> float:
    """Signal to noise ratio of the hit channels over all samples."""
    parts = []
    for one, other in zip(truth, made, strict=True):
        if not fault.channels or one.ndim < 2:
            parts.append((one, other))
            continue
        lanes = list(fault.channels)
        parts.append((np.take(one, lanes, fault.axis), np.take(other, lanes, fault.axis)))
    signal = np.concatenate([part[0].reshape(-1) for part in parts])
    return decibel(signal, np.concatenate([part[1].reshape(-1) for part in parts]))


@dataclass(frozen=True, slots=True)
class Trial:
    """One counted fault and what the product says of it."""

    fault: Planted
    investigation: Investigation
    first: NodeError | None
    blamed: tuple[str, ...]

    @property
    def right(self) -> bool:
        """The planted node, or a small region that holds it."""
        return len(self.blamed) <= LARGEST_REGION and bool(set(self.blamed) & set(self.fault.accepted))


@dataclass(slots=True)
class Score:
    """How the trials of one pair ended."""

    name: str
    trials: list[Trial] = field(default_factory=list)
    discarded: list[str] = field(default_factory=list)

    @property
    def right(self) -> int:
        """Trials in which the product is right."""
        return sum(trial.right for trial in self.trials)


def tried(ground: Ground, faults: Iterator[Planted], wanted: int) -> Score:
    """Trials until as many count as are wanted, or no fault is left."""
    score = Score(ground.name)
    for fault in faults:
        if len(score.trials) == wanted:
            break
        if not ground.counts(fault):
            score.discarded.append(fault.kind)
            continue
        investigation = ground.investigated(fault.model)
        first = first_divergence(investigation.nodes)
        score.trials.append(Trial(fault, investigation, first, _blamed(fault.model, first)))
    return score


def _blamed(model: onnx.ModelProto, first: NodeError | None) -> tuple[str, ...]:
    """The nodes of the region, or the quantiser of an input."""
    if first is None:
        return ()
    maker = makers(model).get(first.pair.tensor_b)
    return first.region or ((maker.name,) if maker is not None else ())
