"""Answers with tensors that were recorded elsewhere: a stage that ran on another machine, or in another stack."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType

from driftgate.backends.artifactfiles import files_digest
from driftgate.backends.boardtensors import layout_of, quantization_of, read_board_model, tensors_of
from driftgate.backends.quantfile import FILE_NAME, OutputQuantization, read_quantization, signature_path
from driftgate.domain.runs import Environment
from driftgate.domain.tensors import Signature, TensorSpec
from driftgate.errors import ArtifactError, BackendError, SampleError
from driftgate.messages.message import Message, Param, message
from driftgate.sessions import Artifact, Tensor, Tensors
from driftgate.storage.dumps import DumpFolder
from driftgate.storage.tensorfiles import TensorSource, open_source

PROVIDER = "recorded"


class RecordedBackend:
    """The artifact's path is any tensor source, with or without a signature.json.

    Options: `model_info`, a text with what the board's runtime said of the model. Then the path is a folder of what
    hrt_model_exec dumped, one folder a sample, read by type and stride; signature.json goes before its scales, which
    have six digits. `model`: which one, where that text describes several.
    """

    needs_feeds = False

    def digest(self, artifact: Artifact) -> str:
        """SHA-256 over all files of the recording, and the signature.json."""
        path, source, described = _source(artifact)
        told = [("model_info", Path(artifact.options["model_info"]))] if described else []
        return files_digest([*_parts(path, source), *told])

    def open(self, artifact: Artifact, taps: Sequence[str] = ()) -> RecordedSession:
        """Read the first sample, from which the signature is taken.

        The outputs are those that signature.json lists, else all recorded tensors. Taps are further tensors
        that were recorded under these names; BackendError names those that were not.
        """
        path, source, described = _source(artifact)
        listed = read_quantization(signature_path(path)) or described
        first = _read(source, source.ids[0])
        said: dict[str, Param] = {"stage": artifact.stage, "path": str(path), "recorded": tuple(sorted(first))}
        if listed is not None and (missing := tuple(sorted(listed.keys() - first.keys()))):
            raise ArtifactError(message("recording-output-missing", outputs=missing, **said))
        if missing := tuple(tap for tap in dict.fromkeys(taps) if tap not in first):
            raise BackendError(message("recording-tap-missing", taps=missing, **said))
        names = tuple(dict.fromkeys((*(first if listed is None else listed), *taps)))
        specs = tuple(_spec(name, first[name], listed or {}) for name in names)
        file = str(signature_path(path))
        problems = [problem for spec in specs if (problem := _quantization_problem(spec, file))]
        if problems:
            raise ArtifactError(*problems)
        others = tuple(name for name in first if name not in names)
        return RecordedSession(artifact.stage, path, source, Signature((), specs), others)


class RecordedSession:
    """One recording."""

    def __init__(
        self, stage: str, path: Path, source: TensorSource, signature: Signature, others: tuple[str, ...] = ()
    ) -> None:
        self._stage = stage
        self._path = path
        self._source = source
        self._signature = signature
        self._others = others

    @property
    def others(self) -> tuple[str, ...]:
        """Tensors that were recorded and are no outputs; they can be tapped."""
        return self._others

    @property
    def signature(self) -> Signature:
        """No inputs; outputs as in the first sample."""
        return self._signature

    @property
    def environment(self) -> Environment:
        """Where it was recorded is not known here."""
        return Environment(provider=PROVIDER)

    @property
    def notes(self) -> tuple[Message, ...]:
        """Nothing to say."""
        return ()

    def infer(self, feeds: Tensors, *, sample: str) -> dict[str, Tensor]:
        """The recorded tensors of that sample; feeds do not matter.

        Raises SampleError for a sample that was not recorded, BackendError for a damaged or incomplete one.
        """
        said = {"stage": self._stage, "path": str(self._path), "sample": sample}
        if sample not in self._source.ids:
            raise SampleError(message("recording-sample-missing", count=len(self._source.ids), **said))
        try:
            tensors = self._source.read(sample)
        except SampleError as error:
            raise BackendError(*error.problems) from error
        names = [spec.name for spec in self._signature.outputs]
        if missing := tuple(name for name in names if name not in tensors):
            raise BackendError(message("recording-incomplete", outputs=missing, **said))
        return {name: tensors[name] for name in names}

    def __enter__(self) -> RecordedSession:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None


def _source(artifact: Artifact) -> tuple[Path, TensorSource, Mapping[str, OutputQuantization] | None]:
    """Path and tensors of the recording, and its outputs as the board's runtime describes them, if that was kept."""
    if artifact.path is None:
        raise ArtifactError(message("artifact-no-path", stage=artifact.stage, backend=artifact.backend))
    info = artifact.options.get("model_info")
    try:
        if info is None:
            return artifact.path, open_source(artifact.path), None
        return _dumped(artifact.path, Path(info), artifact.options.get("model"))
    except SampleError as error:
        raise ArtifactError(*error.problems) from error


def _dumped(folder: Path, info: Path, model: str | None) -> tuple[Path, TensorSource, Mapping[str, OutputQuantization]]:
    if not folder.is_dir():
        raise SampleError(message("dumps-none", path=str(folder)))
    tensors = tensors_of(read_board_model(info, model), "output", path=info)
    try:
        layouts = {str(tensor.name): layout_of(tensor) for tensor in tensors}
    except ValueError as error:
        raise ArtifactError(message("board-dynamic", path=str(info), tensor=str(error))) from error
    described = {str(tensor.name): OutputQuantization(quantization_of(tensor)) for tensor in tensors}
    return folder, DumpFolder(folder, layouts), described


def _read(source: TensorSource, sample: str) -> dict[str, Tensor]:
    try:
        return source.read(sample)
    except SampleError as error:
        raise ArtifactError(*error.problems) from error


def _parts(path: Path, source: TensorSource) -> Iterator[tuple[str, Path]]:
    """The recording's files by their names within it; a stacked file has no name of its own."""
    for file in sorted({file for sample in source.ids for file in source.files(sample)}):
        yield ("" if file == path else file.relative_to(path).as_posix()), file
    quantization = signature_path(path)
    if quantization.exists():
        yield FILE_NAME, quantization


def _spec(name: str, tensor: Tensor, listed: Mapping[str, OutputQuantization]) -> TensorSpec:
    entry = listed.get(name, OutputQuantization())
    return TensorSpec(name, tensor.dtype.name, tensor.shape, entry.quantization, entry.step)


def _quantization_problem(spec: TensorSpec, path: str) -> Message | None:
    """Scales along an axis must be as many as the tensor is long there."""
    quantization = spec.quantization
    if quantization is None or len(quantization.scales) == 1:
        return None
    shape, axis = spec.shape or (), quantization.axis or 0
    length = shape[axis] if -len(shape) <= axis < len(shape) else None
    if length == len(quantization.scales):
        return None
    return message(
        "signature-axis",
        path=path,
        output=spec.name,
        axis=axis,
        scales=len(quantization.scales),
        length="?" if length is None else str(length),
    )
