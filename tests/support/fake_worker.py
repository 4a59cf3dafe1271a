"""A worker that computes the tiny network with numpy, and misbehaves on request; run as a script only."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import zipfile
from collections.abc import Mapping, Sequence
from typing import Any

from worker_protocol import Failure, Infer, serve  # type: ignore[import-not-found]


def open_artifact(request: dict[str, Any], taps: Sequence[str]) -> tuple[dict[str, Any], Infer]:
    import numpy as np

    print("a tool's banner on stdout")
    print("{}")
    fault = request.get("fault", "")
    try:
        with np.load(request["path"], allow_pickle=False) as archive:
            weights = dict(archive)
    except (OSError, zipfile.BadZipFile, ValueError) as error:
        raise Failure("artifact", "artifact-unreadable", path=request["path"], reason=str(error)) from error
    unknown = [tap for tap in taps if tap != "h"]
    if unknown:
        raise Failure("tool", "torch-tap-unknown", taps=unknown)
    if fault == "leave a grandchild":
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])

    def infer(feeds: dict[str, Any]) -> Mapping[str, Any]:
        print("a print of the user's code in the middle of a sample")
        os.write(1, b"a C library's print\n")
        if fault == "die":
            print("about to fall over", file=sys.stderr, flush=True)
            os._exit(3)
        if fault == "hang":
            print("thinking", file=sys.stderr, flush=True)
            time.sleep(600)
        if fault == "raise":
            raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")
        if fault == "exit":
            sys.exit("the user's code leaves")
        if fault == "read stdin":
            assert sys.stdin.read() == ""
        h = feeds["x"] @ weights["weight"]
        outputs = {"y": np.maximum(h, 0) + weights["bias"]}
        return {**outputs, "h": h} if taps else outputs

    inputs = [{"name": "x", "dtype": "float32", "shape": [1, 3]}, {"name": "extra", "optional": True}]
    return {"inputs": inputs, "provider": "fake", "level": "none", "threads": 1}, infer


if __name__ == "__main__":
    sys.exit(serve([], open_artifact))
