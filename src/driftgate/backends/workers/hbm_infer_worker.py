"""The worker that runs an .hbm on a board with the vendor's hbm_infer; see backends/foreign.py for the protocol.

Standard library, numpy and the vendor's packages only, and Python 3.8: it runs under the vendor's interpreter.
What is used of hbm_infer stands in toolchain facts §6. The server on the board is closed however the worker ends.
"""

from __future__ import annotations

import importlib
import re
import signal
import sys
import traceback
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Dict, Iterator, Mapping, Sequence, Tuple  # noqa: UP035

sys.path.insert(0, str(Path(__file__).resolve().parent))  # python -I and PYTHONSAFEPATH leave it out

from worker_protocol import Failure, Infer, distributions, reason, serve  # type: ignore[import-not-found]

PACKAGE = "hbm_infer"
COMPILER = "hbdk4.compiler"
#: Distributions whose versions belong to a run.
DISTRIBUTIONS = ("hbm_infer", "hbdk4-compiler", "grpcio", "protobuf")
LEAST = (3, 9)  # the first hbm_infer that the vendor's own tools take (toolchain facts §13, 11)
#: Errors of the vendor's, of grpc and paramiko, by their class → code.
FAILURES = {
    "RemoteHbmInferTimeoutError": "hbm-infer-timeout",
    "RemoteHbmInferStatusError": "hbm-infer-status",
    "InactiveRpcError": "hbm-infer-lost",
    "AuthenticationException": "hbm-infer-login",
}
LOGIN = "without password failed"
#: Of a status that speaks of the model: it is invalid, or of another march (toolchain facts §7.4).
OF_THE_MODEL = re.compile(r"-60000[24](?!\d)|march incompatible", re.IGNORECASE)
#: The beginning of numpy's name of a type, by the first letter of the board's.
KINDS = {"S": "int", "U": "uint", "F": "float"}
STOPPED = 128 + signal.SIGTERM


class Stopped(BaseException):
    """SIGTERM came. No Exception, so that nobody takes it for a failure of the network's."""


class Signals:
    """SIGTERM ends the worker at once, but for what must come to its end first."""

    def __init__(self) -> None:
        self.held = self.came = False
        signal.signal(signal.SIGTERM, self._stop)

    def _stop(self, *_: object) -> None:
        self.came = True
        if not self.held:
            self.held = True  # closing the server must not be cut short by a second one
            raise Stopped

    def __enter__(self) -> None:
        """From here on it waits."""
        self.held = True

    def __exit__(self, *_: object) -> None:
        self.held = self.came  # the end is near, and what closes things is left alone
        if self.came:
            raise Stopped


def main() -> int:
    """Serve until stdin ends or SIGTERM comes; the server is closed before Python ends, while threads still start."""
    with ExitStack() as resources:
        signals = Signals()

        def open_artifact(request: Dict[str, Any], taps: Sequence[str]) -> Tuple[Dict[str, Any], Infer]:  # noqa: UP006
            return opened(request, taps, resources, signals)

        try:
            return int(serve((), open_artifact, distributions(DISTRIBUTIONS)))
        except Stopped:
            return STOPPED
        finally:
            signals.held = True


def opened(
    request: Dict[str, Any],  # noqa: UP006
    taps: Sequence[str],
    resources: ExitStack,
    signals: Signals,
) -> Tuple[Dict[str, Any], Infer]:  # noqa: UP006
    """Start the server with the model; outputs keep the types that the board gives them."""
    path, model = request["path"], request.get("model")
    if taps:
        raise Failure("tool", "hbm-taps", taps=list(taps), path=path)
    kind = session_class()
    with signals, understood(request, frames=None):  # of a session that is half made nobody could close the server
        session = kind(**arguments(request))
        resources.callback(close, session)
    with understood(request, frames=None):
        names = [str(name) for name in session.get_model_names()]
    if (model and model not in names) or (not model and len(names) != 1):
        raise Failure("artifact", "hbm-networks", path=path, names=names, model=model or "-")
    named = {"model_name": model} if model else {}
    with understood(request, frames=None):
        inputs = [entry(name, told) for name, told in session.get_input_info(**named).items()]
        outputs = [entry(name, told) for name, told in session.get_output_info(**named).items()]
    frames = 0

    def infer(feeds: Dict[str, Any]) -> Mapping[str, Any]:  # noqa: UP006
        nonlocal frames
        import numpy as np

        with understood(request, frames=frames):
            made = session({name: np.array(value, order="C") for name, value in feeds.items()}, **named)
        frames += 1
        missing = [one["name"] for one in outputs if one["name"] not in made]
        if missing:
            raise Failure("tool", "hbm-outputs", path=path, outputs=missing, found=[str(name) for name in made])
        return {one["name"]: np.array(made[one["name"]]) for one in outputs}

    answer = {"inputs": inputs, "outputs": outputs, "provider": PACKAGE, "threads": 1, "told": described(path)}
    return answer, infer


def arguments(request: Dict[str, Any]) -> Dict[str, Any]:  # noqa: UP006
    """What the session is made with; whole numbers and text only, as its types are checked."""
    given = {
        "host": request["host"],
        "local_hbm_path": request["path"],
        "username": request["user"],
        "password": request["password"],
        "ssh_port": request["port"],
        "frame_timeout": request["frame_seconds"],
        "core_id": request["core_id"],
    }
    if request.get("remote_root"):
        given["remote_root"] = request["remote_root"]
    return given


def close(session: Any) -> None:  # noqa: ANN401 - an object of the vendor's
    """End the server; where that fails, it ends itself some minutes later."""
    try:
        session.close_server()
    except Exception:  # the board may be gone
        traceback.print_exc()


@contextmanager
def understood(request: Dict[str, Any], *, frames: int | None) -> Iterator[None]:  # noqa: UP006
    """Errors of the vendor's in here become failures."""
    try:
        yield
    except Exception as error:  # its stack raises whatever it likes
        raise failure(error, request, frames=frames) from error


def failure(error: Exception, request: Dict[str, Any], *, frames: int | None) -> Failure:  # noqa: UP006
    """What an error of the vendor's means; `frames` is how many came back before it, None while it starts."""
    found = list(chain(error))
    names = [kind.__name__.lstrip("_") for one in found for kind in type(one).__mro__]
    said = "\n".join(map(str, found))
    code = next((FAILURES[name] for name in names if name in FAILURES), "")
    if LOGIN in said:
        code = "hbm-infer-login"
    params = {"board": request["board"], "path": request["path"], "reason": reason(error)}
    if code == "hbm-infer-lost" and not frames:
        return Failure("tool", "hbm-infer-port", **params)
    if code == "hbm-infer-status" and frames is None and OF_THE_MODEL.search(said):
        return Failure("refused", "hbm-infer-refused", **params)
    if not code:
        code = "hbm-infer-start" if frames is None else "hbm-infer-raised"
    return Failure("tool", code, seconds=request["frame_seconds"], **params)


def chain(error: BaseException | None) -> Iterator[BaseException]:
    """An error, and those that it came from."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def session_class() -> Any:  # noqa: ANN401 - a class of the vendor's
    """HbmRpcSession of a release that is new enough."""
    try:
        package = importlib.import_module(PACKAGE)
        kind = package.HbmRpcSession
    except (ImportError, AttributeError) as error:
        raise Failure("tool", "hbm-infer-absent", python=sys.executable, reason=reason(error)) from error
    version = distributions(DISTRIBUTIONS).get(PACKAGE) or str(getattr(package, "__version__", ""))
    numbers = re.match(r"(\d+)\.(\d+)", version)
    if numbers and (int(numbers[1]), int(numbers[2])) < LEAST:
        raise Failure("tool", "hbm-infer-old", python=sys.executable, version=version)
    return kind


def entry(name: str, told: Mapping[str, Any]) -> Dict[str, Any]:  # noqa: UP006
    """An input or output in the words of the protocol; its integers stand for numbers where it has scales."""
    dtype = dtype_of(str(told["tensor_type"]).rpartition("_")[2])
    shape = [None if length < 0 else int(length) for length in told["valid_shape"]]
    scales = [float(scale) for scale in told.get("scale_data", ())]
    made = {"name": str(name), "dtype": dtype, "shape": shape}
    if not str(told["quanti_type"]).endswith("SCALE") or not scales or "int" not in dtype:
        return made
    zeros = [int(zero) for zero in told.get("zero_point_data", ())] or [0]
    axis = int(told["quantizeAxis"]) if len(scales) > 1 else None
    return {**made, "quantized": dtype, "scales": scales, "zero_points": zeros, "axis": axis}


def dtype_of(word: str) -> str:
    """numpy's name of the board's type, such as S8; empty for types of half a byte, which numpy does not have."""
    if word.startswith("BOOL"):
        return "bool"
    return KINDS[word[0]] + word[1:] if word[:1] in KINDS and word[1:] in ("8", "16", "32", "64") else ""


def described(path: str) -> Dict[str, str]:  # noqa: UP006
    """March and version of the file, as hbdk4 tells them where it is there: the board does not."""
    try:
        whole = importlib.import_module(COMPILER).Hbm(path)
        told = {"march": whole.march_name, "version": whole.toolkit_version}
    except Exception:  # absent, or it raises whatever it likes
        return {}
    return {key: str(value) for key, value in told.items() if value}


if __name__ == "__main__":
    sys.exit(main())
