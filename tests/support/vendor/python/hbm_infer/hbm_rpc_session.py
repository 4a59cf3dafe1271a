"""STAND-IN for hbm_infer.hbm_rpc_session, for tests only: a board that is this process (toolchain facts §6).

STAND_IN_MARCH is the march of the board (the model's own where it is not set); STAND_IN_FAULT: refused (the port is
blocked), login, full (no room for the server), slow (it takes a moment to start), die and lost (the connection, with
the first or the second frame), status, hang, exit (of this process), stuck (whoever closes the server waits). Who never
calls close_server leaves a server behind, which is told at the end of the process; STAND_IN_SERVERS names a file to
which a line is added for each server that starts or ends. As the real one it prints what it does.
"""

from __future__ import annotations

import atexit
import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

sys.path.append(str(Path(__file__).resolve().parents[4]))

from support.vendor.files import TensorTold, read
from support.vendor.running import Runner

Arrays = dict[str, "np.ndarray[Any, Any]"]
LEFT = "hbm_infer: server left behind"
SLOW_SECONDS = 3.0
_OPEN: list[HbmRpcSession] = []


class RemoteHbmInferTimeoutError(RuntimeError):
    """A frame took longer than frame_timeout."""


class RemoteHbmInferStatusError(RuntimeError):
    """The board could not load or run the model."""


class _InactiveRpcError(RuntimeError):
    """As grpc's own: nobody answers at the port."""


class AuthenticationException(RuntimeError):
    """As paramiko's own."""


class HbmRpcSession:
    """A server on a board with one or several .hbm loaded."""

    def __init__(
        self,
        host: str,
        local_hbm_path: str | Sequence[str],
        username: str = "root",
        password: str | None = None,
        ssh_port: int = 22,
        remote_root: str = "/map/hbm_infer/",
        frame_timeout: int = 90,
        server_timeout: int = 5,
        with_profile: bool = False,
        debug: bool = False,
        compress_option: str = "NONE",
        core_id: int | Sequence[int] = -1,
        remote_environment: Mapping[str, str] | None = None,
    ) -> None:
        fault = os.environ.get("STAND_IN_FAULT", "")
        print(f"connect to {username}@{host}:{ssh_port}, core_id {core_id}, {remote_root}", flush=True)
        if fault == "refused":
            raise _InactiveRpcError(f"StatusCode.UNAVAILABLE: failed to connect to all addresses; {host}")
        if fault == "login":
            raise AuthenticationException(f"sshpass -p {password} ssh {username}@{host}: authentication failed")
        if fault == "full":
            raise OSError(f"scp to {host}:{remote_root}: No space left on device")
        if compress_option not in ("NONE", "IN", "INOUT"):
            raise ValueError(f"compress_option {compress_option} is not one of NONE, IN, INOUT")
        paths = [local_hbm_path] if isinstance(local_hbm_path, str) else list(local_hbm_path)
        try:
            networks = [network for path in paths for network in read(Path(path))]
        except RuntimeError as error:
            raise RemoteHbmInferStatusError(f"{error}, status: -600002") from error
        board = os.environ.get("STAND_IN_MARCH", "")
        for network in networks:
            if board and network.march and board != network.march:
                said = f"Model march incompatible! model march: {network.march}, platform march: {board}"
                raise RemoteHbmInferStatusError(f"{said}, status: -600004")
        self._runners = {network.name: Runner(network) for network in networks}
        self._host, self._fault, self._seconds, self._spent = host, fault, frame_timeout, list[float]()
        _note("started")
        time.sleep(SLOW_SECONDS if fault == "slow" else 0)
        _OPEN.append(self)

    def __enter__(self) -> HbmRpcSession:
        return self

    def __exit__(self, *error: object) -> None:
        self.close_server()

    def __call__(
        self,
        data: Mapping[str, np.ndarray[Any, Any]],
        output_config: Mapping[str, Any] | None = None,
        model_name: str | None = None,
    ) -> Arrays:
        """The outputs by name in raw types; names, shapes and types of the inputs must be the model's own."""
        runner = self._runner(model_name)
        if self._fault == "exit":
            os._exit(3)
        if self._fault == "status":
            raise RemoteHbmInferStatusError("run failed, status: -200003")
        if self._fault == "die" or (self._fault == "lost" and self._spent):
            raise _InactiveRpcError(f"StatusCode.UNAVAILABLE: ipv4:{self._host}: Socket closed")
        if self._fault == "hang":
            time.sleep(self._seconds)
            raise RemoteHbmInferTimeoutError(f"no answer within {self._seconds} s")
        told = {tensor.name: tensor for tensor in runner.inputs}
        if set(data) != set(told):
            raise ValueError(f"inputs {sorted(data)} do not match {sorted(told)}")
        for name, value in data.items():
            if value.shape != told[name].shape or value.dtype != told[name].kind:
                wanted = f"{told[name].kind} {told[name].shape}"
                raise ValueError(f"input {name} is {value.dtype} {value.shape}, the model wants {wanted}")
        start = time.perf_counter()
        made = runner.run(data, list(output_config) if output_config else None)
        self._spent.append(1000 * (time.perf_counter() - start))
        return made

    def _runner(self, model_name: str | None) -> Runner:
        if model_name is None and len(self._runners) > 1:
            raise ValueError(f"model_name is required, there are {list(self._runners)}")
        found = self._runners.get(model_name or next(iter(self._runners)))
        if found is None:
            raise ValueError(f"model_name {model_name} is not in {list(self._runners)}")
        return found

    def get_model_names(self) -> list[str]:
        """The networks that are loaded."""
        return list(self._runners)

    def get_input_info(self, model_name: str | None = None) -> dict[str, dict[str, Any]]:
        """The inputs by name."""
        return {tensor.name: _info(tensor) for tensor in self._runner(model_name).inputs}

    def get_output_info(self, model_name: str | None = None) -> dict[str, dict[str, Any]]:
        """The outputs by name."""
        return {tensor.name: _info(tensor) for tensor in self._runner(model_name).outputs}

    def show_input_output_info(self, model_name: str | None = None) -> None:
        """Print both."""
        print(self.get_input_info(model_name), self.get_output_info(model_name))

    def get_profile(self) -> dict[str, dict[str, float]]:
        """Milliseconds of the frames so far."""
        spent = self._spent or [0.0]
        times = {"avg": float(np.mean(spent)), "min": min(spent), "max": max(spent)}
        return {f"{part}_duration": dict(times) for part in ("frame", "board", "infer")}

    def close_server(self) -> None:
        """End the board's process."""
        time.sleep(SLOW_SECONDS if self._fault == "stuck" else 0)
        if self in _OPEN:
            _OPEN.remove(self)
            _note("ended")


def _info(tensor: TensorTold) -> dict[str, Any]:
    return {
        "valid_shape": list(tensor.shape),
        "tensor_type": f"DATA_TYPE_{tensor.dtype}",
        "quanti_type": "QUANTI_TYPE_SCALE" if tensor.scales else "QUANTI_TYPE_NONE",
        "quantizeAxis": tensor.axis or 0,
        "scale_data": list(tensor.scales),
        "zero_point_data": list(tensor.zero_points),
    }


def _note(event: str) -> None:
    """One line more in the file that tells of the servers."""
    if "STAND_IN_SERVERS" in os.environ:
        with Path(os.environ["STAND_IN_SERVERS"]).open("a", encoding="utf-8") as stream:
            stream.write(f"{event}\n")


@atexit.register
def _tell_left() -> None:
    for _ in _OPEN:
        print(LEFT, file=sys.stderr, flush=True)
