"""What comparing two networks node by node costs: beside Polygraphy, beside ONNX Runtime's own comparison, in memory.

Every contender runs in processes of its own, in turn, so that what else the machine does falls on all. Medians and
ratios are printed and kept as JSON; nothing here asserts anything. The goals are what the project set itself; on a
machine whose inference is fast and whose memory is slow, shares of inference come out larger.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / ".cache" / "bench"
RESULT = FOLDER / "localisation.json"
CONTENDERS = Path(__file__).with_name("contenders.py")
SECONDS = 1800
MIB = 1 << 20
#: What a compiled kernel would still have to do: read both tensors once, 8 bytes a number.
KERNEL_BYTES = 8
#: What the peer holds of 32 pictures of 224 × 224, with room to spare.
PEER_BYTES = 16 << 30


@dataclass(frozen=True, slots=True)
class Case:
    """Two forms of a network, and samples."""

    name: str
    a: Path
    b: Path
    feeds: Path
    samples: int


def main() -> None:
    """Prepare, measure in turns, print, keep."""
    sys.path.insert(0, str(ROOT / "tests"))
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="*", choices=[*PARTS], default=[*PARTS])
    chosen = parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    found: dict[str, Any] = {"machine": machine()}
    for part in chosen.only:
        print(f"\n== {part}", flush=True)
        found[part] = PARTS[part](chosen.rounds)
        for name, value in found[part].items():
            print(f"  {name:48} {value:.4g}" if isinstance(value, float) else f"  {name:48} {value}", flush=True)
    RESULT.write_text(json.dumps(found, indent=1), "utf-8")
    print(f"\nwritten: {RESULT.relative_to(ROOT)}")


def beside_polygraphy(rounds: int) -> dict[str, Any]:
    """All layers of a float network and its optimised form, 8 samples; goal: 6 times as fast."""
    told: dict[str, Any] = {"goal: times as fast": 6.0}
    for case in (classifier_optimised(8), residual_optimised(8)):
        turns = in_turns(case, ("driftgate", "polygraphy"), rounds)
        ours, theirs = median(turns["driftgate"], "seconds"), median(turns["polygraphy"], "seconds")
        command_line = polygraphy_commands(case)
        told |= {
            f"{case.name}: seconds": ours,
            f"{case.name}: seconds, Polygraphy in process": theirs,
            f"{case.name}: seconds, Polygraphy's command line": command_line,
            f"{case.name}: times as fast": theirs / ours,
            f"{case.name}: times as fast as the command line": command_line / ours,
            f"{case.name}: MiB at most": median(turns["driftgate"], "peak") / MIB,
            f"{case.name}: MiB at most, Polygraphy": median(turns["polygraphy"], "peak") / MIB,
            f"{case.name}: tensors compared": ", ".join(str(side[0]["compared"]) for side in turns.values()),
        }
    return told


def beside_qdq_loss_debug(rounds: int) -> dict[str, Any]:
    """A float network and its QDQ form, 32 samples, 256 MiB for taps; goal: 3 times as fast in a twelfth of the
    memory."""
    told: dict[str, Any] = {"goal: times as fast": 3.0, "goal: share of its memory": 1 / 12}
    for case in (classifier_quantised(32), residual_quantised(32)):
        turns = in_turns(case, ("driftgate", "qdq-loss-debug"), rounds, memory=256 * MIB)
        ours, theirs = turns["driftgate"], turns["qdq-loss-debug"]
        grown = [statistics.median(float(turn["peak"] - turn["start"]) for turn in side) for side in (ours, theirs)]
        told |= {
            f"{case.name}: seconds": median(ours, "seconds"),
            f"{case.name}: seconds, qdq_loss_debug": median(theirs, "seconds"),
            f"{case.name}: times as fast": median(theirs, "seconds") / median(ours, "seconds"),
            f"{case.name}: MiB at most": median(ours, "peak") / MIB,
            f"{case.name}: MiB at most, qdq_loss_debug": median(theirs, "peak") / MIB,
            f"{case.name}: share of its memory": median(ours, "peak") / median(theirs, "peak"),
            f"{case.name}: share of what it adds to the start": grown[0] / grown[1],
            f"{case.name}: tensors compared": ", ".join(str(side[0]["compared"]) for side in turns.values()),
        }
    return told


def share_of_inference(rounds: int) -> dict[str, Any]:
    """What metrics cost beside the tapped runs, in one window; goals: 35 % of them, and 1.6 times them in all."""
    told: dict[str, Any] = {"goal: metrics' share of tapped inference": 0.35, "goal: whole run": 1.6}
    for case in (residual_optimised(32), classifier_optimised(32)):
        turns = in_turns(case, ("driftgate",), rounds, memory=4096 * MIB)["driftgate"]
        seconds, inference, metrics = (median(turns, key) for key in ("seconds", "inference", "metrics"))
        told |= {
            f"{case.name}: metrics' share of tapped inference": metrics / inference,
            f"{case.name}: whole run in inference runs": seconds / inference,
            f"{case.name}: seconds of inference, of metrics": f"{inference:.2f}, {metrics:.2f}",
        }
        if case.name.startswith("residual"):
            numbers = compared_numbers(case) * case.samples
            told[f"{case.name}: ns a number now"] = metrics / numbers * 1e9
            told[f"{case.name}: ns a number for 10 %"] = inference / numbers * 1e8
            told[f"{case.name}: ns to read a number's two sides once"] = KERNEL_BYTES / bandwidth()
    told["what would bring it to 10 %"] = (
        "one compiled pass over both tensors instead of twelve vectorised ones, run while they are still in the "
        "cache; memory that is read once more costs the last line above"
    )
    return told


def memory(rounds: int) -> dict[str, Any]:
    """A detector with half a gigabyte of tensors a sample; goals: 700 MiB, and nothing that grows with samples."""
    del rounds  # memory does not vary
    from support.field import peak

    a, b = detector()
    told: dict[str, Any] = {"goal: MiB at most": 700, "goal: 64 samples to 8": 1.1}

    def investigated(height: int, width: int, samples: int, limit: int) -> dict[str, Any]:
        return child(sys.executable, peak.__file__, a, b, height, width, samples, limit)

    whole = investigated(480, 640, 2, 128 * MIB)
    told["detector, 128 MiB for taps: MiB at most"] = whole["peak"] / MIB
    told["detector, 128 MiB for taps: seconds"] = whole["seconds"]
    few, many = (investigated(160, 160, samples, 32 * MIB) for samples in (8, 64))
    told["detector at 160 × 160: MiB with 8 and 64 samples"] = f"{few['peak'] / MIB:.0f}, {many['peak'] / MIB:.0f}"
    told["detector at 160 × 160: 64 samples to 8"] = many["peak"] / few["peak"]
    return told


PARTS: Mapping[str, Callable[[int], dict[str, Any]]] = {
    "polygraphy": beside_polygraphy,
    "qdq-loss-debug": beside_qdq_loss_debug,
    "share": share_of_inference,
    "memory": memory,
}


def in_turns(case: Case, names: Sequence[str], rounds: int, memory: int = 512 * MIB) -> dict[str, list[dict[str, Any]]]:
    """Each contender once a round, after one round that warms the caches."""
    turns: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    for turn in range(rounds + 1):
        for name in names:
            limit = (memory,) if name == "driftgate" else ()
            told = child(sys.executable, CONTENDERS, name, case.a, case.b, case.feeds, case.samples, *limit)
            if turn:
                turns[name].append(told)
    return turns


def child(*command: object) -> dict[str, Any]:
    """What a process of its own prints as JSON on its last line."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "tests"), "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(
        [str(word) for word in command],
        check=True,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=SECONDS,
        env=environment,
    )
    told: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return told


def median(turns: Sequence[Mapping[str, Any]], key: str) -> float:
    """Of one number over all turns."""
    return float(statistics.median(turn[key] for turn in turns))


def polygraphy_commands(case: Case) -> float:
    """Seconds of Polygraphy's command line for the same: each model is run, the second one compared."""
    from polygraphy.json import save_json  # type: ignore[import-not-found]

    inputs, outputs = FOLDER / "inputs.json", FOLDER / "outputs.json"
    with np.load(case.feeds, allow_pickle=False) as archive:
        feeds = {name: archive[name] for name in archive.files}
    save_json([{name: feed[n : n + 1] for name, feed in feeds.items()} for n in range(case.samples)], str(inputs))
    run = [str(Path(sys.executable).with_name("polygraphy")), "run"]
    shared = ["--onnxrt", "--onnx-outputs", "mark", "all", "--load-inputs", str(inputs), "--silent"]
    started = time.perf_counter()
    for model, more in ((case.a, ["--save-outputs", str(outputs)]), (case.b, ["--load-outputs", str(outputs)])):
        # It ends with 1 where tensors differ by more than its own tolerance, which they may.
        subprocess.run(
            [*run, str(model), *shared, *more],
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=SECONDS,
        )
    spent = time.perf_counter() - started
    for written in (inputs, outputs):
        written.unlink(missing_ok=True)
    return spent


def compared_numbers(case: Case) -> int:
    """Numbers of one sample that are compared: those of all pairs, by one look at a sample."""
    from driftgate.backends.onnxruntime_backend import OnnxRuntimeBackend
    from driftgate.localisation.investigate import investigate
    from driftgate.localisation.subject import read_subject
    from driftgate.sessions import Artifact

    backend = OnnxRuntimeBackend()
    with np.load(case.feeds, allow_pickle=False) as archive:
        feeds = {name: archive[name][:1] for name in archive.files}
    a, b = (
        read_subject(stage, Artifact(stage, "onnxruntime", path), backend, backend, lambda _: feeds)
        for stage, path in (("a", case.a), ("b", case.b))
    )
    found = investigate("a..b", a, b, ("0",), outputs={})
    return int(sum(node.total.count[0] for node in found.nodes))


def bandwidth() -> float:
    """Bytes that this machine reads in a nanosecond, one core, from memory that is in use already."""
    block = np.ones(1 << 26, np.float32)
    best = float("inf")
    for _ in range(5):
        started = time.perf_counter()
        block.max()
        best = min(best, time.perf_counter() - started)
    return block.nbytes / best / 1e9


def classifier() -> tuple[Path, np.ndarray[Any, Any]]:
    """PP-OCR's classifier of text direction at opset 17, with its dynamic sides fixed, and 32 pictures of noise."""
    import onnx
    from onnx import version_converter

    from support.field.wheels import RAPIDOCR, members

    path = FOLDER / "classifier.onnx"
    (shipped,) = members(RAPIDOCR).values()
    model = version_converter.convert_version(onnx.load(shipped), 17)
    for dimension, size in zip(model.graph.input[0].type.tensor_type.shape.dim, (1, 3, 48, 192), strict=True):
        dimension.dim_value = size
    onnx.save(model, str(path))
    return path, pictures((32, 3, 48, 192))


def detector() -> tuple[Path, Path]:
    """PP-OCR's text detector as shipped and optimised."""
    from networks import optimised

    from support.field.wheels import RAPIDOCR_DETECTOR, members

    (shipped,) = members(RAPIDOCR_DETECTOR).values()
    return shipped, optimised(shipped, FOLDER / "detector_optimised.onnx")


def classifier_optimised(samples: int) -> Case:
    """As exported and optimised."""
    from networks import optimised

    path, feeds = classifier()
    return Case("classifier", path, optimised(path, FOLDER / "classifier_optimised.onnx"), kept("x", feeds), samples)


def classifier_quantised(samples: int) -> Case:
    """As exported and calibrated."""
    path, feeds = classifier()
    return Case("classifier", path, quantised(path, "x", feeds[:8]), kept("x", feeds), samples)


def residual_optimised(samples: int) -> Case:
    """Of ResNet-50's shape, pictures of 224 × 224."""
    from networks import optimised, residual_network

    path = residual_network(FOLDER / "residual.onnx")
    feeds = kept("image", pictures((samples, 3, 224, 224)))
    return Case("residual 224", path, optimised(path, FOLDER / "residual_optimised.onnx"), feeds, samples)


def residual_quantised(samples: int) -> Case:
    """The same and its QDQ form; for pictures of 112 × 112 where this machine does not hold what the peer taps."""
    from networks import residual_network

    side = 224 if available() > PEER_BYTES else 112
    path = residual_network(FOLDER / f"residual_{side}.onnx", side=side)
    feeds = pictures((samples, 3, side, side))
    return Case(f"residual {side}", path, quantised(path, "image", feeds[:4]), kept("image", feeds), samples)


def available() -> int:
    """Bytes of memory that are free on this machine; 0 where it does not say."""
    try:
        told = Path("/proc/meminfo").read_text("ascii")
    except OSError:
        return 0
    return next((int(line.split()[1]) << 10 for line in told.splitlines() if line.startswith("MemAvailable")), 0)


def quantised(path: Path, feed: str, calibration: np.ndarray[Any, Any]) -> Path:
    """The QDQ form, made once a run."""
    from support.field.quantize import calibrate

    target = path.with_name(f"{path.stem}_qdq.onnx")
    return calibrate(path, target, [{feed: one[None]} for one in calibration], weight_bits=7)


def pictures(shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Smooth noise, samples along axis 0."""
    rough = np.random.default_rng(11).normal(size=shape).astype(np.float32)
    return np.asarray((rough + np.roll(rough, 1, -1) + np.roll(rough, 1, -2)) / np.sqrt(3), np.float32)


def kept(feed: str, values: np.ndarray[Any, Any]) -> Path:
    """The feeds as a file."""
    from driftgate.storage.npz import write_npz

    path = FOLDER / f"feeds_{'x'.join(map(str, values.shape))}.npz"
    write_npz(path, {feed: values}, compressed=False)
    return path


def machine() -> dict[str, Any]:
    """Where the numbers come from."""
    import onnxruntime  # type: ignore[import-untyped]

    return {
        "processor": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "onnxruntime": onnxruntime.__version__,
        "load": os.getloadavg(),
    }


if __name__ == "__main__":
    main()
