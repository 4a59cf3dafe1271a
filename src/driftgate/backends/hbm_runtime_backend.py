"""Runs an .hbm on the board that this program itself runs on, with the vendor's hbm_runtime."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from driftgate.backends.board.cores import runtime_cores
from driftgate.backends.foreign import WORKERS, ForeignSession, WorkerCall, open_foreign
from driftgate.backends.quantfile import read_quantization, signature_path
from driftgate.backends.vendorfiles import vendor_digest, vendor_path
from driftgate.sessions import Artifact

SCRIPT = WORKERS / "hbm_runtime_worker.py"
DEFAULT_SECONDS = 600.0


class HbmRuntimeBackend:
    """The artifact is an .hbm, the machine a board with HB_HBMRuntime (toolchain facts §8).

    Options: `python` (command of an interpreter that has hbm_runtime), `timeout` (seconds an answer may take), `model`
    (the network, where a packed .hbm has several), `core` (counted from 0), `priority` (of its tasks). Nothing can be
    tapped. Scales are what the runtime tells; `<name>.signature.json` beside the file goes before it.
    """

    needs_feeds = True

    def digest(self, artifact: Artifact) -> str:
        """SHA-256 over the file, and the signature.json."""
        return vendor_digest(artifact)

    def open(self, artifact: Artifact, taps: Sequence[str] = ()) -> ForeignSession:
        """Start the worker and let it load the file. Raises LoadRefused for what the runtime does not load."""
        path, options = vendor_path(artifact), artifact.options
        priority = options.get("priority")
        request = {
            "path": str(path.absolute()),
            "model": options.get("model"),
            "cores": list(runtime_cores(options.get("core"))),
            "priority": None if priority is None else int(priority),
        }
        return open_foreign(
            WorkerCall(
                stage=artifact.stage,
                interpreter=tuple(options.get("python") or (sys.executable,)),
                script=SCRIPT,
                request=request,
                seconds=float(options.get("timeout") or DEFAULT_SECONDS),
                taps=tuple(taps),
                quantization=read_quantization(signature_path(path)) or {},
            )
        )
