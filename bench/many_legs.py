"""What it costs to plan for many machines and to merge what they report: time by leg, and memory.

One plan of 50 subjects in 256 legs, every leg run once; parts of it are planned and merged with the same shards. Work
that grows with the legs alone costs each leg the same however many there are. Nothing here asserts anything.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
RESULT = ROOT / ".cache" / "bench" / "many_legs.json"
#: Subjects, and how many of them are of 6 blocks; the others are of 5: 50 · 5 + 6 = 256 legs.
SUBJECTS, LONGER = 50, 6
PARTS = (12, 25, SUBJECTS)
#: The program, which tells its own peak: what the kernel tells of a child has its parent's in it.
PROGRAM = """
import atexit, pathlib, sys
from driftgate.cli import main
status = pathlib.Path("/proc/self/status")
atexit.register(lambda: print(next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))))
main(prog_name="driftgate")
"""


def main() -> None:
    """Measure, print, keep as JSON."""
    sys.path.insert(0, str(ROOT / "tests"))
    from support.commandline import call
    from support.project import Project, biased, inputs

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--block", type=int, default=20, help="Samples of a leg.")
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        project = Project(Path(name))
        subjects = {}
        for number in range(SUBJECTS):
            count = asked.block * (6 if number < LONGER else 5)
            artifacts = {
                "onnx": project.onnx(f"a{number}.onnx", biased(0)),
                "optimized_float": project.onnx(f"b{number}.onnx", biased(1e-7 * number)),
            }
            samples = {"raw": project.npz(f"x{number}.npz", x=inputs(count, number)), "block": asked.block}
            subjects[f"s{number:02}"] = {"artifacts": artifacts, "samples": samples}
        config = project.write(subjects=subjects)
        planned = project.root / "plan"
        told = call("plan", "-c", config, "--out", planned, "--host-legs", "6")
        if told.code:
            sys.exit(told.err)
        shards = {}
        for entry in json.loads((planned / "matrix.json").read_text())["host"]:
            shards[entry["leg"]] = project.root / "shards" / entry["slug"]
            given = ("--plan", planned / "plan.json", "--leg", entry["leg"], "--out", shards[entry["leg"]])
            told = call("run", "-c", config, *given)
            if told.code:
                sys.exit(told.err)
        print(f"{SUBJECTS} subjects, {len(shards)} legs of {asked.block} samples run")
        rows = []
        for count in PARTS:
            names = tuple(subjects)[:count]
            of_part = [path for leg, path in shards.items() if leg.split("/")[0] in names]
            part = project.root / f"plan-{count}"
            chosen = [word for subject in names for word in ("--subject", subject)]
            plan = ("plan", "-c", str(config), "--out", str(part), "--host-legs", "6", *chosen)
            report = ("report", *map(str, of_part), "--plan", str(part / "plan.json"), "-c", str(config))
            made = project.root / f"report-{count}"
            row = {"subjects": count, "legs": len(of_part)}
            for verb, words in (("plan", plan), ("merge", (*report, "--out", str(made)))):
                times, peaks = zip(*(_run(words) for _ in range(asked.rounds)), strict=True)
                row[f"{verb} s"], row[f"{verb} MiB"] = statistics.median(times), max(peaks)
            rows.append(row)
            print("  ".join(f"{key} {value:.4g}" for key, value in row.items()))
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    RESULT.write_text(json.dumps({"block": asked.block, "rows": rows}, indent=1))
    first, last = rows[0], rows[-1]
    for verb in ("plan", "merge"):
        time_ratio, memory = last[f"{verb} s"] / first[f"{verb} s"], last[f"{verb} MiB"] / first[f"{verb} MiB"]
        print(f"{verb}: {last['legs'] / first['legs']:.1f} times the legs, {time_ratio:.1f} times the time, ", end="")
        print(f"{memory:.2f} times the memory")


def _run(words: Sequence[str]) -> tuple[float, float]:
    """Seconds, and the peak of resident memory in MiB."""
    began = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", PROGRAM, *words], capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - began
    if done.returncode:
        sys.exit(done.stderr)
    return seconds, int(done.stdout.splitlines()[-1].split()[1]) / 1024


if __name__ == "__main__":
    main()
