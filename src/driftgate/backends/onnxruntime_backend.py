"""Runs ONNX models with ONNX Runtime, by default on the CPU and with no graph optimisation."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, cast

import numpy as np
import onnx
import onnxruntime as ort  # type: ignore[import-untyped]
from onnx import numpy_helper
from onnxruntime.capi import onnxruntime_pybind11_state as ort_state  # type: ignore[import-untyped]

from driftgate.backends.artifactfiles import files_digest
from driftgate.backends.feeds import check_feeds
from driftgate.backends.onnxfile import OnnxFile, names_read, read_onnx
from driftgate.backends.processor import processor
from driftgate.domain.runs import Environment
from driftgate.domain.tensors import Signature, TensorSpec
from driftgate.errors import ArtifactError, BackendError, ConfigError, LoadRefused
from driftgate.messages.message import Message, message
from driftgate.sessions import Artifact, Tensor, Tensors

LEVELS = {
    "disabled": ort.GraphOptimizationLevel.ORT_DISABLE_ALL,
    "basic": ort.GraphOptimizationLevel.ORT_ENABLE_BASIC,
    "extended": ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
    "all": ort.GraphOptimizationLevel.ORT_ENABLE_ALL,
}
DEFAULT_LEVEL = "disabled"
DEFAULT_PROVIDER = "CPUExecutionProvider"
DEFAULT_THREADS = 1

#: ONNX Runtime's names of element types that numpy has, and numpy's.
DTYPES = {
    "tensor(float)": "float32",
    "tensor(double)": "float64",
    "tensor(float16)": "float16",
    "tensor(bool)": "bool",
    **{f"tensor({kind}{bits})": f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)},
}

#: Weights of these types are shared between sessions, from so many numbers on.
SHARED_TYPES = frozenset(
    {
        *(onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE, onnx.TensorProto.FLOAT16),
        *(onnx.TensorProto.INT8, onnx.TensorProto.UINT8, onnx.TensorProto.INT32, onnx.TensorProto.INT64),
    }
)
SHARED_NUMBERS = 1 << 12
_SHARED = "shared"
_SILENT = 4
_EXTERNAL_FOLDER = "session.model_external_initializers_file_folder_path"
_SPINNING = "session.intra_op.allow_spinning"
_ORT_ERRORS: tuple[type[Exception], ...] = (
    *(kind for kind in vars(ort_state).values() if isinstance(kind, type) and issubclass(kind, Exception)),
    RuntimeError,
    ValueError,
)
#: How ONNX Runtime names the node and operator it stumbles over.
_CULPRITS = (
    re.compile(r'In Node, \("(?P<node>[^"]*)", (?P<operator>\w+),'),
    re.compile(r"Node \((?P<node>[^)]*)\) Op \((?P<operator>\w+)\)"),
    re.compile(r"Could not find an implementation for (?P<operator>\w+)\(\d+\) node with name '(?P<node>[^']*)'"),
    re.compile(r"of operator \((?P<operator>\w+)\) in node \((?P<node>[^)]*)\)"),
    re.compile(r"while running (?P<operator>\w+) node\. Name:'(?P<node>[^']*)'"),
    re.compile(r"Fatal error: (?P<operator>[\w.:]+)\(-?\d+\) is not a registered function/op(?P<node>)"),
)
_PREFIX = re.compile(r"^\[ONNXRuntimeError\] : \d+ : \w+ : ")


class OnnxRuntimeBackend:
    """Options: `level` (a key of LEVELS), `threads`, `provider`, `custom_ops` (libraries with operators)."""

    needs_feeds = True

    def digest(self, artifact: Artifact) -> str:
        """SHA-256 over the model, its external data and its operator libraries."""
        libraries = _libraries(artifact.options)
        named = ((f"custom-op {number}", library) for number, library in enumerate(libraries))
        return files_digest((*_model(artifact).parts(), *named))

    def open(self, artifact: Artifact, taps: Sequence[str] = ()) -> OnnxRuntimeSession:
        """Load the model by its path; with taps, load a copy in memory that has further outputs.

        External data is found in the model's folder either way, and nothing is written to it.
        """
        options = artifact.options
        provider = str(options.get("provider", DEFAULT_PROVIDER))
        available = tuple(ort.get_available_providers())
        if provider not in available:
            raise BackendError(message("ort-provider", stage=artifact.stage, provider=provider, available=available))
        file = _checked(artifact)
        session = _load(artifact, file, taps)
        if provider not in session.get_providers():
            raise BackendError(message("ort-provider-failed", stage=artifact.stage, provider=provider))
        return OnnxRuntimeSession(session, artifact, file)

    def take_apart(self, artifact: Artifact) -> OnnxParts:
        """The parsed model, of whose parts others can be made. Raises ArtifactError."""
        return OnnxParts(artifact, _checked(artifact))


class OnnxParts:
    """A parsed model without its external data. Its large weights lie outside of the models made of its parts, so
    that opening one neither copies nor parses them."""

    def __init__(self, artifact: Artifact, file: OnnxFile) -> None:
        self._artifact = artifact
        self._file = file
        self._weights: dict[str, ort.OrtValue] = {
            tensor.name: ort.OrtValue.ortvalue_from_numpy(np.array(numpy_helper.to_array(tensor)))
            for tensor in file.model.graph.initializer
            if tensor.data_type in SHARED_TYPES
            and tensor.data_location != onnx.TensorProto.EXTERNAL
            and math.prod(tensor.dims) >= SHARED_NUMBERS
        }

    @property
    def model(self) -> onnx.ModelProto:
        """The model."""
        return self._file.model

    @property
    def folder(self) -> Path:
        """The folder that external data is relative to."""
        return self._file.folder

    def open(self, model: onnx.ModelProto, taps: Sequence[str] = ()) -> OnnxRuntimeSession:
        """Open a model made of these parts as the artifact itself is opened: same options, same weights, its
        external data where it lies; `taps` are further outputs. Raises as the backend's `open` does."""
        lean = self._lean(model, taps)
        options = _session_options(self._artifact)
        used = [tensor.name for tensor in lean.graph.initializer if tensor.name in self._weights]
        if used:
            options.add_external_initializers(used, [self._weights[name] for name in used])
        session = _session(self._artifact, self._file, lean.SerializeToString(), options)
        return OnnxRuntimeSession(session, self._artifact, OnnxFile(self._file.path, model))

    def _lean(self, model: onnx.ModelProto, taps: Sequence[str]) -> onnx.ModelProto:
        """A copy with further outputs and the weights that it reads, of which large ones are but named."""
        lean = onnx.ModelProto(
            ir_version=model.ir_version,
            opset_import=model.opset_import,
            functions=model.functions,
            producer_name=model.producer_name,
        )
        graph, copy = model.graph, lean.graph
        copy.name = graph.name
        copy.node.extend(graph.node)
        copy.input.extend(graph.input)
        copy.output.extend(graph.output)
        copy.sparse_initializer.extend(graph.sparse_initializer)
        have = {output.name for output in graph.output}
        copy.output.extend(onnx.ValueInfoProto(name=tap) for tap in dict.fromkeys(taps) if tap not in have)
        read = names_read(lean)
        for tensor in self._file.model.graph.initializer:
            if tensor.name not in read:
                continue  # the runtime drops it, and would not find what replaces it
            if tensor.name in self._weights:
                named = copy.initializer.add(name=tensor.name, data_type=tensor.data_type, dims=tensor.dims)
                named.data_location = onnx.TensorProto.EXTERNAL
                named.external_data.add(key="location", value=_SHARED)
            else:
                copy.initializer.append(tensor)
        return lean


class OnnxRuntimeSession:
    """One loaded model. Outputs that are no tensors of numbers are left out, and a note says so."""

    def __init__(self, session: ort.InferenceSession, artifact: Artifact, file: OnnxFile) -> None:
        outputs = session.get_outputs()
        steps, ranked = file.steps(output.name for output in outputs), file.ranked()
        odd = tuple(output.name for output in outputs if output.type not in DTYPES)
        self._session: ort.InferenceSession | None = session
        self._artifact = artifact
        self._signature = Signature(
            tuple(_spec(value, ranked) for value in session.get_inputs()),
            tuple(_spec(value, ranked, steps.get(value.name)) for value in outputs if value.type in DTYPES),
        )
        self._notes = (message("ort-odd-outputs", stage=artifact.stage, outputs=odd),) if odd else ()
        self._environment = _environment(artifact.options)

    @property
    def signature(self) -> Signature:
        """Inputs and outputs, those of taps last; dtype is ONNX Runtime's own name where numpy has none."""
        return self._signature

    @property
    def environment(self) -> Environment:
        """Provider, level, threads, processor and versions."""
        return self._environment

    @property
    def notes(self) -> tuple[Message, ...]:
        """Names outputs that were left out."""
        return self._notes

    def infer(self, feeds: Tensors, *, sample: str) -> dict[str, Tensor]:
        """Run the model once."""
        said = {"stage": self._artifact.stage, "sample": sample}
        if self._session is None:
            raise BackendError(message("session-closed", **said))
        check_feeds(feeds, self._signature.inputs, **said)
        names = [output.name for output in self._signature.outputs]
        given = {name: np.ascontiguousarray(feed).reshape(feed.shape) for name, feed in feeds.items()}
        try:
            made = cast("list[Tensor]", self._session.run(names, given))
        except _ORT_ERRORS as error:
            raise BackendError(message("ort-run", reason=_reason(error), **_culprit(error), **said)) from error
        return dict(zip(names, made, strict=True))

    def __enter__(self) -> OnnxRuntimeSession:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._session = None


def _model(artifact: Artifact) -> OnnxFile:
    if artifact.path is None:
        raise ArtifactError(message("artifact-no-path", stage=artifact.stage, backend=artifact.backend))
    return read_onnx(artifact.path)


def _checked(artifact: Artifact) -> OnnxFile:
    """The parsed model, whose external data is there and whose operators somebody defines."""
    file = _model(artifact)
    file.parts()
    if not _libraries(artifact.options):
        file.check_operators()
    return file


def _libraries(options: Mapping[str, Any]) -> tuple[Path, ...]:
    return tuple(Path(library) for library in options.get("custom_ops", ()))


def _load(artifact: Artifact, file: OnnxFile, taps: Sequence[str]) -> ort.InferenceSession:
    model = file.tapped(taps) if taps else str(file.path.absolute())
    return _session(artifact, file, model, _session_options(artifact))


def _session(
    artifact: Artifact, file: OnnxFile, model: str | bytes, options: ort.SessionOptions
) -> ort.InferenceSession:
    """A path is loaded as it is; bytes find the external data in the file's folder."""
    if isinstance(model, bytes):
        options.add_session_config_entry(_EXTERNAL_FOLDER, str(file.folder))
    provider = str(artifact.options.get("provider", DEFAULT_PROVIDER))
    try:
        session = ort.InferenceSession(model, options, providers=[provider], enable_fallback=0)
    except _ORT_ERRORS as error:
        said = {"stage": artifact.stage, "path": str(file.path), "reason": _reason(error)}
        culprit = _culprit(error)
        if culprit["operator"]:
            raise LoadRefused(message("ort-refused-node", **culprit, **said)) from error
        raise LoadRefused(message("ort-refused", **said)) from error
    return session


def _session_options(artifact: Artifact) -> ort.SessionOptions:
    options = ort.SessionOptions()
    options.log_severity_level = _SILENT
    options.graph_optimization_level = _level(artifact)
    options.intra_op_num_threads = int(artifact.options.get("threads", DEFAULT_THREADS))
    options.inter_op_num_threads = 1
    options.use_deterministic_compute = True
    options.add_session_config_entry(_SPINNING, "0")
    for library in _libraries(artifact.options):
        said = {"stage": artifact.stage, "path": str(library)}
        if not library.is_file():
            raise ArtifactError(message("artifact-missing", path=str(library)))
        try:
            options.register_custom_ops_library(str(library))
        except _ORT_ERRORS as error:
            raise BackendError(message("ort-library", reason=_reason(error), **said)) from error
    return options


def _level(artifact: Artifact) -> ort.GraphOptimizationLevel:
    level = str(artifact.options.get("level", DEFAULT_LEVEL))
    if level not in LEVELS:
        raise ConfigError(message("ort-level", stage=artifact.stage, level=level, known=tuple(LEVELS)))
    return LEVELS[level]


def _environment(options: Mapping[str, Any]) -> Environment:
    return Environment(
        provider=str(options.get("provider", DEFAULT_PROVIDER)),
        level=str(options.get("level", DEFAULT_LEVEL)),
        threads=int(options.get("threads", DEFAULT_THREADS)),
        cpu=processor(),
        versions=(("numpy", np.__version__), ("onnxruntime", ort.__version__)),
    )


def _spec(value: ort.NodeArg, ranked: Collection[str], step: float | None = None) -> TensorSpec:
    """ONNX Runtime shows an unknown rank like that of a scalar; the file knows which it is."""
    shape = tuple(length if isinstance(length, int) and length >= 0 else None for length in value.shape)
    known = bool(shape) or value.name in ranked
    return TensorSpec(value.name, DTYPES.get(value.type, value.type), shape if known else None, step=step)


def _reason(error: Exception) -> str:
    """The first line of what ONNX Runtime says, without its prefix."""
    lines = _PREFIX.sub("", str(error)).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def _culprit(error: Exception) -> dict[str, str]:
    for pattern in _CULPRITS:
        if found := pattern.search(str(error)):
            return {"node": found["node"], "operator": found["operator"]}
    return {"node": "", "operator": ""}
