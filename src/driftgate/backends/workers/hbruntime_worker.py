"""The worker that runs the vendor's stages (Hz ONNX, .bc, simulated .hbm) with horizon_tc_ui's HBRuntime; see
backends/foreign.py for the protocol.

Standard library, numpy and the vendor's packages only, and Python 3.8: it runs under the vendor's interpreter.
What is used of HBRuntime stands in toolchain facts §4.1: the constructor with a path, `input_names`,
`output_names`, `run(output_names, feeds)`, and `current_phase` where there is one. hbdk4.compiler, where it is
there, describes the file (§5) and runs a packed .hbm, which HBRuntime does not.
"""

from __future__ import annotations

import importlib
import sys
import tempfile
from pathlib import Path
from typing import Any, Dict, List, Mapping, Sequence, Tuple  # noqa: UP035

sys.path.insert(0, str(Path(__file__).resolve().parent))  # python -I and PYTHONSAFEPATH leave it out

from worker_protocol import Failure, Infer, distributions, reason, serve  # type: ignore[import-not-found]

#: Where HBRuntime is imported from, by release.
HOMES = ("horizon_tc_ui.hb_runtime", "horizon_tc_ui")
COMPILER = "hbdk4.compiler"
#: Distributions whose versions belong to a run.
DISTRIBUTIONS = ("horizon_tc_ui", "hbdk4-compiler", "hmct", "hbm_infer")
#: A module that only the generation before has: its runtime is another one.
OLD_GENERATION = "hobot_tc_ui"


def open_artifact(request: dict[str, Any], taps: Sequence[str]) -> tuple[dict[str, Any], Infer]:
    """Load the artifact; outputs keep the types that the runtime gives them."""
    path, model = request["path"], request.get("model")
    if taps:
        raise Failure("tool", "hbruntime-taps", taps=list(taps), path=path)
    graph, told, networks = described(path, model)
    if model and len(networks) != 1:
        inputs, outputs, infer = by_compiler(graph)
        provider = "hbdk4 hbm"
    else:
        inputs, outputs, infer = by_runtime(path, told)
        provider = "hbruntime " + Path(path).suffix.lstrip(".")
    answer = {
        "inputs": [{"name": name, **quantisation(graph, "flatten_inputs", name)} for name in inputs],
        "outputs": [{"name": name, **quantisation(graph, "flatten_outputs", name)} for name in outputs],
        "provider": provider,
        "level": told.get("phase", ""),
        "threads": 1,
        "told": told,
    }
    return answer, infer


def by_runtime(path: str, told: Dict[str, str]) -> Tuple[List[str], List[str], Infer]:  # noqa: UP006
    """Names of inputs and outputs, and what runs it; HBRuntime's word on the phase where nothing else told it."""
    runtime_of = hb_runtime()
    try:
        runtime = runtime_of(path)
        inputs, outputs = list(runtime.input_names), list(runtime.output_names)
    except Exception as error:  # the vendor's stack raises whatever it likes
        raise Failure("refused", "hbruntime-refused", path=path, reason=reason(error)) from error
    if not outputs:
        raise Failure("refused", "hbruntime-refused", path=path, reason="it has no outputs")
    if "phase" not in told and hasattr(runtime, "current_phase"):
        told["phase"] = "float" if runtime.current_phase == "export" else "fixed-point"

    def infer(feeds: Dict[str, Any]) -> Mapping[str, Any]:  # noqa: UP006
        made = runtime.run(None, feeds)
        found = list(made.values()) if isinstance(made, dict) else list(made)
        return copies(outputs, found)

    return inputs, outputs, infer


def by_compiler(graph: Any) -> Tuple[List[str], List[str], Infer]:  # noqa: ANN401, UP006 - an object of the vendor's
    """The same for one network of a packed .hbm, simulated by hbdk4."""
    inputs = [tensor.name for tensor in graph.flatten_inputs]
    outputs = [tensor.name for tensor in graph.flatten_outputs]

    def infer(feeds: Dict[str, Any]) -> Mapping[str, Any]:  # noqa: UP006
        with tempfile.TemporaryDirectory(prefix="driftgate-hbm-") as folder:
            made = graph.feed(feeds, output_dir=folder)
            return copies(outputs, [made[name] for name in outputs if name in made])

    return inputs, outputs, infer


def copies(outputs: List[str], found: List[Any]) -> Dict[str, Any]:  # noqa: UP006
    """Outputs by name; the runtime may use their buffers again."""
    import numpy as np

    if len(found) != len(outputs):
        raise Failure("tool", "hbruntime-outputs", found=len(found), wanted=len(outputs), outputs=outputs)
    return {name: np.array(value) for name, value in zip(outputs, found)}  # noqa: B905


def described(path: str, model: str | None) -> Tuple[Any, Dict[str, str], List[str]]:  # noqa: UP006
    """What hbdk4 says of a .bc or .hbm: its graph, march, version and phase, and the names of its networks.

    Nothing where hbdk4 is not there or does not read the file, unless a network of a packed file is asked for.
    """
    ending = Path(path).suffix
    if ending not in (".bc", ".hbm"):
        return None, {}, []
    try:
        compiler = importlib.import_module(COMPILER)
        whole = compiler.load(path) if ending == ".bc" else compiler.Hbm(path)
        graphs = list(getattr(whole, "functions", None) or getattr(whole, "graphs", None) or whole)
    except Exception as error:  # absent, or it raises whatever it likes
        if model:
            raise Failure("tool", "hbruntime-model", path=path, model=model, reason=reason(error)) from error
        return None, {}, []
    names = [str(graph.name) for graph in graphs]
    if (model and model not in names) or (not model and len(names) > 1):
        raise Failure("artifact", "hbruntime-networks", path=path, names=names, model=model or "-")
    march = whole.march if ending == ".bc" else whole.march_name
    version = whole.version if ending == ".bc" else whole.toolkit_version
    told = {"march": march, "version": version, "phase": "fixed-point" if march else "float"}
    graph = graphs[names.index(model) if model else 0] if graphs else None
    return graph, {key: str(value) for key, value in told.items() if value}, names


def quantisation(graph: Any, side: str, name: str) -> Dict[str, Any]:  # noqa: ANN401, UP006
    """Type, scales, zero points and axis of a tensor whose integers stand for numbers; nothing for others."""
    tensor = next((one for one in getattr(graph, side, ()) if one.name == name), None)
    info = getattr(tensor, "quant_info", None)
    if tensor is None or info is None or not len(info.scales):
        return {}
    import numpy as np

    zeros = [int(zero) for zero in info.zero_points if zero is not None] or [0]
    return {
        "quantized": np.dtype(tensor.type.np_dtype).name,
        "scales": [float(scale) for scale in info.scales],
        "zero_points": zeros,
        "axis": None if info.axis is None or len(info.scales) == 1 else int(info.axis),
    }


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


if __name__ == "__main__":
    sys.exit(serve((), open_artifact, distributions(DISTRIBUTIONS)))
