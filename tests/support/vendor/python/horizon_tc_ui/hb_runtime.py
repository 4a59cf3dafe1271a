"""STAND-IN for horizon_tc_ui.hb_runtime, for tests only: files of `support.vendor.models`, run by ONNX Runtime.

As the real one it prints to stdout, takes feeds by name, checks their types, and gives a list in output order.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[4]))

from support.vendor.files import is_packed, read
from support.vendor.running import Runner, accepted

#: How it misbehaves, for tests: die, hang, few (one output too few).
FAULT = os.environ.get("STAND_IN_FAULT", "")


class HBRuntime:
    """What a path is loaded into; `current_phase` is `export` for an HBIR with fake quantisation (facts §5)."""

    def __init__(self, path: str) -> None:
        print("========= Model Input Info =========", flush=True)
        networks = read(Path(path))
        if is_packed(networks):
            raise ValueError(f"Input model {path} is a packed model and is not supported now.")
        (network,) = networks
        self._runner = Runner(network)
        self.input_names = [tensor.name for tensor in self._runner.inputs]
        self.output_names = [tensor.name for tensor in self._runner.outputs]
        if network.ending == ".bc":
            is_fake = network.told.get("phase") == "float" and network.told.get("fake_quant", True)
            self.current_phase = "export" if is_fake else None

    def run(self, output_names: list[str] | None, feeds: dict[str, Any]) -> list[Any]:
        """The outputs in order, as the network has them: valid shape, raw type."""
        if FAULT == "die":
            os._exit(3)
        if FAULT == "hang":
            time.sleep(600)
        told = {tensor.name: tensor for tensor in self._runner.inputs}
        given = {name: accepted(told[name], value) for name, value in feeds.items()}
        made = list(self._runner.run(given, output_names).values())
        print("========= Model Run Success =========", flush=True)
        return made[:-1] if FAULT == "few" else made
