"""What a run over SSH costs beside the tool's own time and what the line needs for its bytes.

A test board (root, see tests/support/board) with a line of a set rate. The tool is a stand-in: its time is that of a
small network, so that what is around it shows more than on a real board. Nothing here asserts anything.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from driftgate.domain.chain import FeedKind
    from driftgate.plan import Job
    from driftgate.sessions import Tensor, Tensors
    from support.board.lab import TestBoard

ROOT = Path(__file__).parents[1]
RESULT = ROOT / ".cache" / "bench" / "board.json"


def main() -> None:
    """Measure, print, keep as JSON."""
    sys.path.insert(0, str(ROOT / "tests"))
    from driftgate.backends.board.backend import BoardBackend
    from driftgate.plan import prepare
    from driftgate.settings.load import load
    from support.board.lab import TestBoard, missing_tools, ssh_command
    from support.boards import BoardProject, described

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--megabits", type=int, default=100)
    asked = parser.parse_args()
    if missing := missing_tools():
        print(f"left out: a test board needs {', '.join(missing)}")
        return
    with tempfile.TemporaryDirectory() as name, TestBoard(Path(name) / "board") as board:
        board.rate(asked.megabits * 1_000_000)
        made = BoardProject(Path(name) / "project", samples=asked.samples).made(described(board))
        (job,) = prepare(load(made.config))
        (hbm,) = [artifact for artifact in job.artifacts if artifact.stage == "hbm"]
        rounds = []
        for _ in range(asked.rounds):
            began = time.perf_counter()
            with BoardBackend().open(hbm) as session:
                kind = next(iter(k for k in job.data.read(job.plan.samples.ids[0]) if k.value == "runtime"))
                feeds_of = partial(_feeds, job, kind)
                session.ahead(job.plan.samples.ids, feeds_of, measures=False)
                made_bytes = 0
                for sample in job.plan.samples.ids:
                    made_bytes += sum(value.nbytes for value in session.infer({}, sample=sample).values())
            whole = time.perf_counter() - began
            feeds = job.data.read(job.plan.samples.ids[0])[kind]
            sent = sum(value.nbytes for value in feeds.values()) * asked.samples
            own = _alone(board, ssh_command(board), list(feeds.values()), asked.samples)
            line = 8 * (sent + made_bytes) / (asked.megabits * 1_000_000)
            rounds.append({"whole": whole, "tool": own, "line": line, "ratio": whole / (own + line)})
            print("  ".join(f"{key} {value:.2f}" for key, value in rounds[-1].items()))
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    RESULT.write_text(json.dumps({"samples": asked.samples, "megabits": asked.megabits, "rounds": rounds}, indent=1))
    best = sorted(entry["ratio"] for entry in rounds)[len(rounds) // 2]
    print(f"{asked.samples} samples over SSH: {best:.2f} times the tool's own time plus the line's (goal 1.3)")


def _feeds(job: Job, kind: FeedKind, sample: str) -> Tensors:
    return job.data.read(sample)[kind]


def _alone(board: TestBoard, ssh: Sequence[str], values: Sequence[Tensor], samples: int) -> float:
    """The tool on the board, as often, with nothing around it: one loop in the board's shell, inputs there already."""
    folder = board.root / "alone"
    folder.mkdir(exist_ok=True)
    files = []
    for number, value in enumerate(values):
        (folder / f"{number}.bin").write_bytes(value.tobytes())
        files.append(f"{board.work}/alone/{number}.bin")
    (model,) = (board.root / "driftgate" / "cache").glob("*.hbm")
    command = (
        f"{board.tool} infer --model_file={board.work}/driftgate/cache/{model.name} --input_file={','.join(files)} "
        f"--enable_dump=true --dump_format=bin --dump_path={board.work}/alone --core_id=0 > {board.work}/alone/log 2>&1"
    )
    loop = f"n=0; while [ $n -lt {samples} ]; do {command}; n=$((n + 1)); done"
    began = time.perf_counter()
    subprocess.run([*ssh, loop], check=True, stdin=subprocess.DEVNULL, capture_output=True)
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
