"""Runs the vendor's stages in a worker under the vendor's interpreter or container: Hz ONNX, .bc, simulated .hbm."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from driftgate.backends.foreign import WORKERS, ForeignSession, WorkerCall, open_foreign
from driftgate.backends.quantfile import read_quantization, signature_path
from driftgate.backends.vendorfiles import vendor_digest, vendor_path
from driftgate.sessions import Artifact

SCRIPT = WORKERS / "hbruntime_worker.py"
#: An .hbm is simulated cycle by cycle on the host: tens of seconds for a small network (toolchain facts §1.6).
DEFAULT_SECONDS = 3600.0


class HbRuntimeBackend:
    """The artifact is a file that HBRuntime loads.

    Options: `python` (command of the vendor's interpreter, such as `docker run …`), `timeout` (seconds an answer
    may take), `model` (the network, where a packed .hbm has several). Nothing can be tapped: HBRuntime gives the
    network's outputs only. The scales of integer inputs and outputs, those of removed quantise and dequantise nodes,
    are what hbdk4.compiler tells where it is installed; `<name>.signature.json` beside the file goes before it.
    """

    needs_feeds = True

    def digest(self, artifact: Artifact) -> str:
        """SHA-256 over the file, and the signature.json."""
        return vendor_digest(artifact)

    def open(self, artifact: Artifact, taps: Sequence[str] = ()) -> ForeignSession:
        """Start the worker and let it load the file. Raises LoadRefused for what the runtime does not load."""
        path, options = vendor_path(artifact), artifact.options
        return open_foreign(
            WorkerCall(
                stage=artifact.stage,
                interpreter=tuple(options.get("python") or (sys.executable,)),
                script=SCRIPT,
                request={"path": str(path.absolute()), "model": options.get("model")},
                seconds=float(options.get("timeout") or DEFAULT_SECONDS),
                taps=tuple(taps),
                quantization=read_quantization(signature_path(path)) or {},
            )
        )
