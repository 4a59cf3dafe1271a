"""Stands in for an interpreter with PyTorch: `python torch_stand_in.py FAULT MARK WORKER`; run as a script only.

It computes the tiny network with numpy instead of running the worker. At its third sample it makes the file MARK
and shows the fault: die, hang, garbage. `count` is none: it adds a line to MARK for each time it is asked.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

FAULT, MARK, WORKER = sys.argv[1:]
FAULTY = 2  # the sample it happens at
FOREVER = 600

if FAULT == "die at start":
    sys.exit("libtorch.so is not here")
if FAULT == "greet with garbage":
    print("Welcome to the container", flush=True)
    time.sleep(FOREVER)

sys.path.insert(0, str(Path(WORKER).parent))

from worker_protocol import Infer, serve  # type: ignore[import-not-found]  # noqa: E402

ANSWERS = os.dup(1)  # the protocol's stdout, before the worker's side takes it away


def open_artifact(request: dict[str, Any], taps: Sequence[str]) -> tuple[dict[str, Any], Infer]:
    import numpy as np

    with np.load(request["weights"], allow_pickle=False) as archive:
        weights = dict(archive)
    done = 0

    def infer(feeds: dict[str, Any]) -> Mapping[str, Any]:
        nonlocal done
        done += 1
        if FAULT == "count":
            with Path(MARK).open("a") as mark:
                mark.write("infer\n")
        elif FAULT and done > FAULTY:
            Path(MARK).touch()
            print("out of memory", file=sys.stderr, flush=True)
            if FAULT == "die":
                os._exit(3)
            if FAULT == "hang":
                time.sleep(FOREVER)
            os.write(ANSWERS, b"\x1b[31mSegmentation fault\xff\n")
            time.sleep(FOREVER)
        made = np.maximum(feeds["x"] @ weights["weight"], 0) + weights["bias"]
        return {"y": made + feeds["extra"] if "extra" in feeds else made}

    inputs = [{"name": "x", "dtype": "float32", "shape": [1, 3]}, {"name": "extra", "optional": True}]
    return {"inputs": inputs, "provider": "stand-in", "level": "none", "threads": 1}, infer


if __name__ == "__main__":
    sys.exit(serve([], open_artifact))
