"""The worker that calls a user's function on the outputs of a stage; see backends/foreign.py for the protocol.

Standard library and numpy only, and Python 3.8: it runs under the user's own interpreter. The function takes the
outputs as a dictionary of arrays (a scorer also takes the label) and returns one array, one number, or a dictionary.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any, Callable, Dict, Mapping, Sequence  # noqa: UP035

sys.path.insert(0, str(Path(__file__).resolve().parent))  # python -I and PYTHONSAFEPATH leave it out

from worker_protocol import Failure, Infer, reason, serve  # type: ignore[import-not-found]

LABEL = "driftgate:label"
WHOLE = "driftgate:whole"  # names a function without arguments, called in the process that scored the samples
RESULT = "result"


def open_artifact(request: dict[str, Any], taps: Sequence[str]) -> tuple[dict[str, Any], Infer]:
    """Import the function; what it is given and returns is not known before."""
    import numpy as np

    function = load(request)

    def infer(feeds: Dict[str, Any]) -> Mapping[str, Any]:  # noqa: UP006
        whole, label = feeds.pop(WHOLE, None), feeds.pop(LABEL, None)
        if whole is not None:
            made = load({**request, "function": bytes(whole).decode()})()
        else:
            made = function(feeds) if label is None else function(feeds, label)
        if isinstance(made, dict):
            return {str(name): np.asarray(value) for name, value in made.items()}
        result = np.asarray(made)
        if result.dtype.kind not in "fiub":
            raise Failure("tool", "function-returned", function=request["function"], found=type(made).__name__)
        return {RESULT: result}

    return {"inputs": [], "anything": True, "provider": "function", "level": "", "threads": 1}, infer


def load(request: Mapping[str, Any]) -> Callable[..., Any]:
    """The function that `module:function` names."""
    sys.path[:0] = request["search_path"]
    module, _, name = request["function"].partition(":")
    try:
        function: Callable[..., Any] = getattr(importlib.import_module(module), name)
    except (Exception, SystemExit) as error:  # importing runs the user's code
        raise Failure("artifact", "function-import", function=request["function"], reason=reason(error)) from error
    if not callable(function):
        raise Failure("artifact", "function-callable", function=request["function"], found=type(function).__name__)
    return function


if __name__ == "__main__":
    sys.exit(serve((), open_artifact))
