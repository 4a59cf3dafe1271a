"""Investigates two forms of a network in a process of its own and prints the most memory that it took, as JSON.

`python peak.py A B HEIGHT WIDTH SAMPLES MEMORY`; MEMORY in bytes, the feeds are pictures of noise that are made
anew whenever they are asked for.
"""

from __future__ import annotations

import json
import resource
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from driftgate.backends.onnxruntime_backend import OnnxRuntimeBackend
from driftgate.localisation.investigate import investigate
from driftgate.localisation.subject import Subject, read_subject
from driftgate.sessions import Artifact


def most_bytes() -> int:
    """The most memory this program had, without that of the process that started it, which Linux counts in."""
    status = Path("/proc/self/status")
    if status.is_file():
        (line,) = (line for line in status.read_text("ascii").splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) << 10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def subject(stage: str, path: str, height: int, width: int) -> Subject:
    """One side."""
    backend = OnnxRuntimeBackend()
    artifact = Artifact(stage, "onnxruntime", Path(path), {"threads": 1})
    with backend.open(artifact) as session:
        (feed,) = (spec.name for spec in session.signature.inputs)

    def feeds(sample: str) -> dict[str, NDArray[np.float32]]:
        random = np.random.default_rng(int(sample))
        return {feed: random.normal(size=(1, 3, height, width)).astype(np.float32)}

    return read_subject(stage, artifact, backend, backend, feeds)


def main() -> None:
    """Investigate and tell."""
    first, second, height, width, count, memory = sys.argv[1:]
    a, b = (subject(s, p, int(height), int(width)) for s, p in (("a", first), ("b", second)))
    outputs = dict(zip(a.outputs, b.outputs, strict=True))
    found = investigate("a..b", a, b, tuple(map(str, range(int(count)))), outputs=outputs, memory=int(memory))
    inference = a.count.seconds + b.count.seconds
    told = {"peak": most_bytes(), "pairs": len(found.pairs), "seconds": found.seconds, "inference": inference}
    print(json.dumps({**told, "runs": found.runs}))


if __name__ == "__main__":
    main()
