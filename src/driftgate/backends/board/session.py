"""A model on a board as a session: what its runtime says of it, feeds as files, dumps as tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType

from driftgate.backends.board.boards import Boards
from driftgate.backends.board.runs import Runs, Sample
from driftgate.backends.board.tool import PICTURE_RANK, Input, asked_model, input_of
from driftgate.backends.board.transport import Transport
from driftgate.backends.boardtensors import TYPES, layout_of, quantization_of, tensors_of
from driftgate.backends.feeds import check_feeds
from driftgate.backends.quantfile import OutputQuantization
from driftgate.domain.runs import Environment, Performance, performance
from driftgate.domain.tensors import Signature, TensorSpec
from driftgate.domain.toolchain.board import BoardModel, BoardTensor
from driftgate.domain.toolchain.common import ToolVersions
from driftgate.errors import ArtifactError, BackendError
from driftgate.messages.message import Message, message
from driftgate.numerics.alignment import quantised
from driftgate.sessions import Tensor, Tensors
from driftgate.transforms.strided import Layout, StrideError, nv12_stride, tensor_of

OUTPUT, INPUT = "model_infer_output_", "model_infer_input_"


@dataclass(frozen=True, slots=True)
class Opened:
    """A model as the board's runtime loaded it; outputs in order with how they lie in memory."""

    model: BoardModel
    versions: ToolVersions
    inputs: tuple[BoardTensor, ...]
    outputs: tuple[BoardTensor, ...]
    layouts: Mapping[str, Layout]
    scales: Mapping[str, OutputQuantization] = field(default_factory=dict)

    @property
    def signature(self) -> Signature:
        """As the runtime tells it; scales of signature.json go before its own, which have six digits."""
        outputs = []
        for tensor in self.outputs:
            spec, told = _spec(tensor), self.scales.get(str(tensor.name))
            outputs.append(spec if told is None else replace(spec, quantization=told.quantization, step=told.step))
        return Signature(tuple(map(_spec, self.inputs)), tuple(outputs))


class BoardSession:
    """One model on one board of a pool, whichever is free."""

    def __init__(
        self,
        stage: str,
        file: Path,
        boards: Boards,
        scales: Mapping[str, OutputQuantization],
        *,
        model: str | None,
        keeps_inputs: bool = False,
    ) -> None:
        self._stage, self._boards = stage, boards
        self._runs = Runs(stage, file, boards, model=model, dumps="*" if keeps_inputs else "output")
        self._seen: dict[str, dict[str, Tensor]] = {}
        try:
            self._opened = self._runs.asked(lambda transport, path: self._open(transport, path, file, scales, model))
        except BaseException:
            self._runs.close()
            raise
        self._runs.rest()  # others may want the board before this does, another target in this process among them

    def _open(
        self,
        transport: Transport,
        path: str,
        file: Path,
        scales: Mapping[str, OutputQuantization],
        model: str | None,
    ) -> Opened:
        said = asked_model(transport, self._boards, path, stage=self._stage)
        chosen = [one for one in said.models if model in (None, one.name)]
        if len(chosen) != 1:
            names = tuple(one.name or "-" for one in said.models)
            raise ArtifactError(message("board-model", path=file.name, names=names, model=model or "-"))
        source = Path(f"{self._boards.tool} model_info")
        inputs, outputs = (tensors_of(chosen[0], side, path=source) for side in ("input", "output"))
        try:
            layouts = {str(tensor.name): layout_of(tensor) for tensor in outputs}
        except ValueError as error:
            raise ArtifactError(message("board-dynamic", path=str(source), tensor=str(error))) from error
        return Opened(chosen[0], said.versions, inputs, outputs, layouts, scales)

    @property
    def signature(self) -> Signature:
        """As the board's runtime tells it."""
        return self._opened.signature

    @property
    def environment(self) -> Environment:
        """The runtime's versions and the pool's name; boards of one pool count as one."""
        versions = {"ucp": self._opened.versions.ucp, "hbrt": self._opened.versions.hbrt}
        return Environment(
            provider="hrt_model_exec",
            level=f"core {'any' if self._boards.core is None else self._boards.core}",
            threads=1,
            versions=tuple((name, value) for name, value in versions.items() if value),
            board=self._boards.name,
        )

    @property
    def told(self) -> Mapping[str, str]:
        """March and version that the builder wrote into the model."""
        told = {"march": self._opened.model.march, "version": self._opened.model.versions.hbdk, "phase": "fixed-point"}
        return {name: value for name, value in told.items() if value}

    @property
    def notes(self) -> tuple[Message, ...]:
        """Which inputs are quantised here, as the node that did it was removed."""
        names = tuple(spec.name for spec in self.signature.inputs if spec.quantization is not None)
        return (message("inputs-requantised", stage=self._stage, inputs=names),) if names else ()

    def speed(self, run: str) -> Performance | None:
        """What the runs of perf that follow the samples say; None where none are planned. Raises BackendError."""
        told = self._runs.performance()
        if not told:
            return None
        core = self._boards.core
        return performance(
            run,
            [one.average_ms for one in told if one.average_ms is not None],
            [one.fps for one in told if one.fps is not None],
            source="hrt_model_exec perf",
            frames=told[0].frames,
            threads=told[0].threads,
            core="any" if core is None else str(core),
        )

    def ahead(self, samples: Sequence[str], feeds: Callable[[str], Tensors], *, measures: bool) -> None:
        """Run these samples as fast as the board can, then measure its speed; `infer` hands out what is there."""

        def inputs(sample: str) -> Callable[[], Sequence[Input]]:
            return lambda: self._inputs(feeds(sample), sample)

        made = [Sample(sample, inputs(sample), self._outputs(sample)) for sample in samples]
        self._runs.want(made, then_measure=measures)

    def infer(self, feeds: Tensors, *, sample: str) -> dict[str, Tensor]:
        """The outputs of a sample, which is run now if it was not announced. Raises what went wrong on the board."""
        self._runs.want([Sample(sample, lambda: self._inputs(feeds, sample), self._outputs(sample))])
        return self._runs.result(sample)

    def fitted(self, feeds: Tensors) -> dict[str, Tensor]:
        """Feeds as the board is sent them."""
        specs = {spec.name: spec for spec in self.signature.inputs}
        return {name: _fitted(value, specs.get(name)) for name, value in feeds.items()}

    def hold(self) -> None:
        """Keep the board, for another tool that runs on it, until this is closed."""
        self._runs.asked(lambda transport, path: path)

    def seen(self, sample: str) -> dict[str, Tensor]:
        """The inputs of a sample as the board saw them, where they are kept."""
        return self._seen.get(sample, {})

    def __enter__(self) -> BoardSession:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._runs.close()

    def _inputs(self, feeds: Tensors, sample: str) -> list[Input]:
        given = self.fitted(feeds)
        check_feeds(given, self.signature.inputs, stage=self._stage, sample=sample)
        w_stride = self._boards.w_stride
        return [input_of(tensor, given[str(tensor.name)], w_stride=w_stride) for tensor in self._opened.inputs]

    def _outputs(self, sample: str) -> Callable[[Mapping[str, bytes]], dict[str, Tensor]]:
        def read(files: Mapping[str, bytes]) -> dict[str, Tensor]:
            told = {"stage": self._stage, "board": self._boards.name, "sample": sample}
            self._seen[sample] = self._dumped_inputs(files)
            contents = _by_number(files, OUTPUT)
            made: dict[str, Tensor] = {}
            for number, (name, layout) in enumerate(self._opened.layouts.items()):
                if number not in contents:
                    found = tuple(files) or ("-",)
                    raise BackendError(message("board-no-dump", found=found, output=name, **told))
                try:
                    made[name] = tensor_of(contents[number], layout)
                except StrideError as error:
                    raise BackendError(message("board-dump", output=name, reason=str(error), **told)) from error
            return made

        return read

    def _dumped_inputs(self, files: Mapping[str, bytes]) -> dict[str, Tensor]:
        """Inputs that the tool dumped, as far as their form is fixed."""
        found: dict[str, Tensor] = {}
        for number, content in _by_number(files, INPUT).items():
            tensor = self._opened.inputs[number]
            try:
                found[str(tensor.name)] = tensor_of(content, self._chosen(tensor))
            except ValueError:
                continue
        return found

    def _chosen(self, tensor: BoardTensor) -> Layout:
        """How an input lies in memory, with the strides that the tool takes by itself where they are free (toolchain
        facts §7.1). ValueError where its shape is free, too."""
        shape = tuple(n for n in tensor.shape or () if n is not None)
        if None in (tensor.stride or ()) and len(shape) == len(tensor.shape or ()) == PICTURE_RANK:
            return Layout(TYPES[tensor.dtype or ""], shape, nv12_stride(shape, self._boards.w_stride))
        return layout_of(tensor)


def _spec(tensor: BoardTensor) -> TensorSpec:
    return TensorSpec(str(tensor.name), TYPES[tensor.dtype or ""], tensor.shape, quantization_of(tensor))


def _fitted(value: Tensor, spec: TensorSpec | None) -> Tensor:
    """A feed as its input takes it: numbers for an input of scaled integers are quantised."""
    if spec is None or spec.quantization is None or value.dtype.kind != "f":
        return value
    return quantised(value, spec.quantization, spec.dtype)


def _by_number(files: Mapping[str, bytes], prefix: str) -> dict[int, bytes]:
    """Dumps by the number of their tensor."""
    found = {}
    for name, content in files.items():
        number = name.removeprefix(prefix).partition("_")[0]
        if name.startswith(prefix) and number.isdigit():
            found[int(number)] = content
    return found
