"""The worker that runs the vendor's stages (Hz ONNX, .bc, simulated .hbm) with horizon_tc_ui's HBRuntime; see
backends/foreign.py for the protocol.

Standard library, numpy and the vendor's packages only, and Python 3.8: it runs under the vendor's interpreter.
What is used of HBRuntime stands in toolchain facts §4.1: the constructor with a path, `input_names`,
`output_names`, `run(output_names, feeds)`, and `current_phase` where there is one.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any, Dict, Mapping, Sequence  # noqa: UP035

sys.path.insert(0, str(Path(__file__).resolve().parent))  # python -I and PYTHONSAFEPATH leave it out

from worker_protocol import Failure, Infer, reason, serve  # type: ignore[import-not-found]

#: Where HBRuntime is imported from, by release.
HOMES = ("horizon_tc_ui.hb_runtime", "horizon_tc_ui")
#: Distributions whose versions belong to a run.
DISTRIBUTIONS = ("horizon_tc_ui", "hbdk4-compiler", "hmct", "hbm_infer")
#: A module that only the generation before has: its runtime is another one.
OLD_GENERATION = "hobot_tc_ui"


def open_artifact(request: dict[str, Any], taps: Sequence[str]) -> tuple[dict[str, Any], Infer]:
    """Load the artifact; outputs keep the types that the runtime gives them."""
    import numpy as np

    path = request["path"]
    if taps:
        raise Failure("tool", "hbruntime-taps", taps=list(taps), path=path)
    runtime_of = hb_runtime()
    try:
        runtime = runtime_of(path)
        inputs, outputs = list(runtime.input_names), list(runtime.output_names)
    except Exception as error:  # the vendor's stack raises whatever it likes
        raise Failure("refused", "hbruntime-refused", path=path, reason=reason(error)) from error
    if not outputs:
        raise Failure("refused", "hbruntime-refused", path=path, reason="it has no outputs")

    def infer(feeds: Dict[str, Any]) -> Mapping[str, Any]:  # noqa: UP006
        made = runtime.run(None, feeds)
        found = list(made.values()) if isinstance(made, dict) else list(made)
        if len(found) != len(outputs):
            raise Failure("tool", "hbruntime-outputs", found=len(found), wanted=len(outputs), outputs=outputs)
        return {name: np.array(value) for name, value in zip(outputs, found)}  # noqa: B905

    answer = {
        "inputs": [{"name": name} for name in inputs],
        "outputs": [{"name": name} for name in outputs],
        "provider": "hbruntime " + Path(path).suffix.lstrip("."),
        "level": phase(runtime),
        "threads": 1,
    }
    return answer, infer


def hb_runtime() -> Any:  # noqa: ANN401 - a class of the vendor's
    """The class HBRuntime, wherever this release keeps it."""
    said = "horizon_tc_ui is not installed"
    for home in HOMES:
        try:
            return importlib.import_module(home).HBRuntime
        except ImportError as error:
            said = reason(error)
        except AttributeError:
            said = home + " has no HBRuntime"
    old = found(OLD_GENERATION)
    raise Failure("tool", "hbruntime-old" if old else "hbruntime-absent", python=sys.executable, reason=said)


def found(module: str) -> bool:
    """Whether a module can be imported."""
    try:
        importlib.import_module(module)
    except ImportError:
        return False
    return True


def phase(runtime: Any) -> str:  # noqa: ANN401 - an object of the vendor's
    """`float` for an HBIR before convert, `fixed-point` for one after, empty where the runtime does not say."""
    if not hasattr(runtime, "current_phase"):
        return ""
    return "float" if runtime.current_phase == "export" else "fixed-point"


def versions() -> dict[str, str]:
    """Of the vendor's distributions that are installed."""
    from importlib import metadata

    told = {}
    for name in DISTRIBUTIONS:
        try:
            told[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return told


if __name__ == "__main__":
    sys.exit(serve((), open_artifact, versions()))
