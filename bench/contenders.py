"""The contenders, each run in a process of its own: `python contenders.py NAME A B FEEDS SAMPLES` prints JSON.

FEEDS is an `.npz` with one array a feed, samples along axis 0. What is measured is the work itself, without the
start of Python and the import of libraries; `peak` is that of the whole process, `start` that before the work.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from support.field.peak import most_bytes

Array = NDArray[np.float32]
Samples = list[dict[str, Array]]
MEMORY = 512 << 20


def read(path: Path, count: int) -> Samples:
    """The first samples, each with a batch axis of 1."""
    with np.load(path, allow_pickle=False) as archive:
        feeds = {name: archive[name] for name in archive.files}
    return [{name: feed[n : n + 1] for name, feed in feeds.items()} for n in range(count)]


def driftgate(a: Path, b: Path, samples: Samples, memory: int = MEMORY) -> dict[str, Any]:
    """Pairs by value and structure, errors as the sides run and of each node alone, within a budget of memory."""
    from driftgate.backends.onnxruntime_backend import OnnxRuntimeBackend
    from driftgate.localisation import nodeerrors
    from driftgate.localisation.investigate import investigate
    from driftgate.localisation.subject import read_subject
    from driftgate.numerics import sketches
    from driftgate.sessions import Artifact

    spent = _Spent()
    spent.watch_method(nodeerrors.Gathered, "add_total", "add_own", "node_errors")
    spent.watch(sketches, "sketch", "driftgate.localisation.sketching")

    def work() -> dict[str, Any]:
        backend = OnnxRuntimeBackend()
        first, second = (
            read_subject(
                stage,
                Artifact(stage, "onnxruntime", path, {"threads": 1}),
                backend,
                backend,
                lambda sample: samples[int(sample)],
            )
            for stage, path in (("a", a), ("b", b))
        )
        outputs = dict(zip(first.outputs, second.outputs, strict=True))
        names = tuple(map(str, range(len(samples))))
        found = investigate("a..b", first, second, names, outputs=outputs, memory=memory)
        inference = first.count.seconds + second.count.seconds
        return {"compared": len(found.nodes), "runs": found.runs, "inference": inference, "metrics": spent.seconds}

    return timed(work)


class _Spent:
    """Seconds in functions of a module, also where others have imported them by name."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._depth = 0

    def watch(self, module: Any, name: str, *users: str) -> None:  # noqa: ANN401 - a module
        """A function, also where other modules have imported it by name."""
        watched = self._watched(getattr(module, name))
        for user in users:
            __import__(user)
            setattr(sys.modules[user], name, watched)

    def watch_method(self, owner: type, *names: str) -> None:
        """Methods of a class."""
        for name in names:
            setattr(owner, name, self._watched(getattr(owner, name)))

    def _watched(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def watched(*args: Any, **named: Any) -> Any:  # noqa: ANN401 - whatever it takes and gives
            started = time.perf_counter()
            self._depth += 1
            try:
                made = function(*args, **named)
                return iter(list(made)) if isinstance(made, Iterator) else made
            finally:
                self._depth -= 1
                if not self._depth:
                    self.seconds += time.perf_counter() - started

        return watched


def polygraphy(a: Path, b: Path, samples: Samples) -> dict[str, Any]:
    """Polygraphy's comparator: all tensors of both models, compared where the names are the same."""
    import polygraphy.backend.onnx as graphs  # type: ignore[import-not-found]
    from polygraphy import constants
    from polygraphy.backend.onnxrt import OnnxrtRunner  # type: ignore[import-not-found]
    from polygraphy.comparator import Comparator, CompareFunc  # type: ignore[import-not-found]
    from polygraphy.logger import G_LOGGER  # type: ignore[import-not-found]

    G_LOGGER.module_severity = G_LOGGER.CRITICAL

    def work() -> dict[str, Any]:
        runners = [
            OnnxrtRunner(
                _session(
                    graphs.BytesFromOnnx(
                        graphs.ModifyOutputs(graphs.OnnxFromPath(str(path)), outputs=constants.MARK_ALL)
                    )
                ),
                name=path.stem,
            )
            for path in (a, b)
        ]
        results = Comparator.run(runners, data_loader=samples)
        compared = Comparator.compare_accuracy(results, compare_func=CompareFunc.simple(atol=1e-4, fail_fast=False))
        return {"compared": len(compared.output_names())}

    return timed(work)


def _session(model: Any) -> Callable[[], Any]:  # noqa: ANN401 - Polygraphy has no types
    """Opened as driftgate opens it: no optimisation, one thread."""

    def opened() -> Any:  # noqa: ANN401 - a session
        import onnxruntime as ort  # type: ignore[import-untyped]

        options = ort.SessionOptions()
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.intra_op_num_threads = 1
        options.log_severity_level = 4
        return ort.InferenceSession(model(), options, providers=["CPUExecutionProvider"])

    return opened


def qdq_loss_debug(a: Path, b: Path, samples: Samples) -> dict[str, Any]:
    """ONNX Runtime's own comparison of a float model and its QDQ form."""
    import onnxruntime as ort
    from onnxruntime.quantization import CalibrationDataReader, qdq_loss_debug  # type: ignore[import-untyped]

    class Reader(CalibrationDataReader):  # type: ignore[misc]
        def __init__(self) -> None:
            self._samples = iter(samples)

        def get_next(self) -> Mapping[str, Array] | None:
            return next(self._samples, None)

        def __iter__(self) -> Iterator[Mapping[str, Array]]:
            return iter(samples)

        def __next__(self) -> Mapping[str, Array]:
            return next(self._samples)

    def work() -> dict[str, Any]:
        options = ort.SessionOptions()
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.intra_op_num_threads = 1
        options.log_severity_level = 4
        collected = []
        with tempfile.TemporaryDirectory() as folder:
            for path in (a, b):
                tapped = Path(folder) / path.name
                qdq_loss_debug.modify_model_output_intermediate_tensors(str(path), str(tapped))
                collected.append(qdq_loss_debug.collect_activations(str(tapped), Reader(), options))
        matched = qdq_loss_debug.create_activation_matching(collected[1], collected[0])
        errors = qdq_loss_debug.compute_activation_error(matched)
        return {"compared": sum("xmodel_err" in error for error in errors.values())}

    return timed(work)


def timed(work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What the work tells, its seconds, and the memory of the process before and at most, in bytes."""
    before = most_bytes()
    started = time.perf_counter()
    told = work()
    return {**told, "seconds": time.perf_counter() - started, "start": before, "peak": most_bytes()}


CONTENDERS: dict[str, Callable[..., dict[str, Any]]] = {
    "driftgate": driftgate,
    "polygraphy": polygraphy,
    "qdq-loss-debug": qdq_loss_debug,
}


def main() -> None:
    """Run one and tell."""
    name, a, b, feeds, count, *memory = sys.argv[1:]
    told = CONTENDERS[name](Path(a), Path(b), read(Path(feeds), int(count)), *map(int, memory))
    print(json.dumps(told))


if __name__ == "__main__":
    main()
