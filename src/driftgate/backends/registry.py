"""The backends by name; each is imported when it is used."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import EntryPoint, entry_points

from driftgate.errors import BackendError, ConfigError
from driftgate.messages.message import message
from driftgate.sessions import Backend

#: name → module:class
BACKENDS: dict[str, str] = {
    "board": "driftgate.backends.board.backend:BoardBackend",
    "onnxruntime": "driftgate.backends.onnxruntime_backend:OnnxRuntimeBackend",
    "hbm_infer": "driftgate.backends.hbm_infer_backend:HbmInferBackend",
    "hbm_runtime": "driftgate.backends.hbm_runtime_backend:HbmRuntimeBackend",
    "hbruntime": "driftgate.backends.hbruntime_backend:HbRuntimeBackend",
    "recorded": "driftgate.backends.recorded:RecordedBackend",
    "torch": "driftgate.backends.torch_backend:TorchBackend",
}

ENTRY_POINTS = "driftgate.backends"


def backend(name: str) -> Backend:
    """The backend of that name, ours before a third party's.

    Raises ConfigError, listing the known ones, if there is none, and BackendError if a third party's cannot
    be imported.
    """
    if name in BACKENDS:
        module, _, attribute = BACKENDS[name].partition(":")
        made: Backend = getattr(import_module(module), attribute)()
        return made
    found = _third_parties().get(name)
    if found is None:
        raise ConfigError(message("backend-unknown", backend=name, known=backend_names()))
    try:
        theirs: Backend = found.load()()
    except (ImportError, AttributeError) as error:
        raise BackendError(message("backend-import", backend=name, target=found.value, reason=str(error))) from error
    return theirs


def backend_names() -> tuple[str, ...]:
    """All names that `backend` knows, sorted."""
    return tuple(sorted({*BACKENDS, *_third_parties()}))


def _third_parties() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=ENTRY_POINTS)}
