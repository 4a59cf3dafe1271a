"""A user's function, called by a worker under the user's interpreter, never inside driftgate."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from driftgate.backends.foreign import WORKERS, ForeignSession, WorkerCall, open_foreign
from driftgate.errors import ArtifactError
from driftgate.messages.message import message
from driftgate.sessions import Tensor

SCRIPT = WORKERS / "function_worker.py"
LABEL = "driftgate:label"
WHOLE = "driftgate:whole"
RESULT = "result"
SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class Function:
    """`module:function`, looked for below `search_path`; `interpreter` runs it, ours where it is empty."""

    name: str
    search_path: tuple[str, ...]
    interpreter: tuple[str, ...] = ()
    seconds: float = SECONDS

    def digest(self) -> str:
        """SHA-256 over the source of the module; its name alone where it is installed and not on the search path."""
        module = self.name.partition(":")[0].replace(".", "/")
        found = hashlib.sha256(self.name.encode())
        for folder in self.search_path:
            for path in (Path(folder) / f"{module}.py", Path(folder) / module / "__init__.py"):
                if path.is_file():
                    found.update(path.read_bytes())
        return found.hexdigest()


class CalledFunction:
    """An open function. Close it by leaving its `with` block."""

    def __init__(self, session: ForeignSession) -> None:
        self._session = session

    def __call__(self, values: Mapping[str, Tensor], *, label: Tensor | None = None, sample: str) -> dict[str, Tensor]:
        """What the function makes of the outputs: its dictionary, or its one value under `result`.

        Raises BackendError with the user's traceback where it raises.
        """
        feeds = dict(values)
        if label is not None:
            feeds[LABEL] = np.asarray(label)
        return self._session.infer(feeds, sample=sample)

    def whole(self, function: Function) -> Tensor:
        """The number of the whole set: a function without arguments, in the process that scored the samples."""
        told = {WHOLE: np.frombuffer(function.name.encode(), np.uint8)}
        return self._session.infer(told, sample="-")[RESULT]

    def __enter__(self) -> CalledFunction:
        return self

    def __exit__(self, *exception: object) -> None:
        self._session.__exit__(None, None, None)


def open_function(function: Function, stage: str) -> CalledFunction:
    """Start the worker and import the function.

    Raises ArtifactError for what is no function, BackendError where the interpreter does not work.
    """
    if function.name.count(":") != 1:
        raise ArtifactError(message("function-name", function=function.name))
    request = {"function": function.name, "search_path": list(function.search_path)}
    interpreter = function.interpreter or (sys.executable,)
    return CalledFunction(open_foreign(WorkerCall(stage, interpreter, SCRIPT, request, function.seconds)))
