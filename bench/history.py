"""What a branch's history costs beside the comparison with a baseline that it comes with: time, memory, bytes.

200 runs of 50 subjects, the same runs of one subject and 10 runs of the same subjects go through every step in turn,
and so do 50 subjects and one through the comparison. Every tenth subject has one number that erodes so slowly that no
single step is worth a word: where others are found, or not all of these, it ends with that. No time is asserted.
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from driftgate.commands.versions import past_of
from driftgate.comparing.compare import compare_results
from driftgate.comparing.history import MOST_RUNS, continued, slid
from driftgate.comparing.levels import LOWER, levels
from driftgate.domain.comparisons import PastRun, RowKind
from driftgate.domain.facts import Facts
from driftgate.domain.history import History, Level
from driftgate.domain.judgement import HISTORY_RUNS, SLIDES, Slide, Slides
from driftgate.domain.results import Results
from driftgate.domain.runs import performance
from driftgate.judgement.criteria import FPS, LATENCY, MEMORY
from driftgate.storage.document import FACTS, RESULTS, encode_results, read_results
from driftgate.storage.folder import write_all
from driftgate.storage.history import HISTORY, encode_history, read_history

ROOT = Path(__file__).parents[1]
RESULT = ROOT / ".cache" / "bench" / "history.json"
SUBJECTS, FEW_RUNS = 50, 10
CASES = ((MOST_RUNS, SUBJECTS), (MOST_RUNS, 1), (FEW_RUNS, SUBJECTS))
#: Threads and core under which the board was asked; each gives latency, frames and memory.
BOARD = ((1, "0"), (1, "1"), (2, "any"))
INT8_LINK = "optimized_float..calibrated"
#: Every so many subjects one has a number that erodes: each time the next of these.
EVERY = 10
ERODING: tuple[tuple[RowKind, str, str, Slide], ...] = (
    (RowKind.SCORE, "hbm", "score", Slide.SCORE_DROP),
    (RowKind.LINK, INT8_LINK, "relative-error", Slide.ERROR_RISE),
    (RowKind.SPEED, "hbm", LATENCY, Slide.LATENCY_RISE),
    (RowKind.SPEED, "hbm", FPS, Slide.FPS_DROP),
    (RowKind.SPEED, "hbm", MEMORY, Slide.MEMORY_RISE),
)
#: In limits: how far those have slid, and by how much every number wavers.
SLID, WAVERS = 1.6, 0.1
OF_SPEED = {LATENCY: Slide.LATENCY_RISE, FPS: Slide.FPS_DROP, MEMORY: Slide.MEMORY_RISE}
DEFAULTS = Slides(limits=tuple(SLIDES.items()))
TODAY = PastRun("f" * 40, "1000", "2026-12-01")
MIB = 1 << 20
#: The steps of a history within a check: `tell` is what the verbs call, of which `slid` is the part without `numbers`.
STEPS = ("read", "numbers", "slid", "tell", "continue", "write")
COMPARING = ("read results", "compare")


@dataclass(frozen=True, slots=True)
class Case:
    """A history on disk, and today's results, up to which it leads."""

    runs: int
    subjects: int
    folder: Path
    today: Results
    found: tuple[Level, ...]
    history: History

    @property
    def name(self) -> str:
        """What it is called in the table."""
        return f"{self.runs} runs × {self.subjects}"


def main() -> None:
    """Measure, print, keep as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--alone", choices=[*ALONE], help="Do this in the folder, and print the peak of memory.")
    parser.add_argument("--folder", type=Path)
    asked = parser.parse_args()
    if asked.alone:
        ALONE[asked.alone](asked.folder)
        print(_high_water())
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        base, head = _versions(folder)
        cases = [_case(runs, _of(head, subjects), folder) for runs, subjects in CASES]
        pairs: dict[int, tuple[Path, Results]] = {}
        for subjects in (SUBJECTS, 1):
            place = folder / f"compared-{subjects}"
            for side, results in (("base", _of(base, subjects)), ("head", _of(head, subjects))):
                write_all(place / side, encode_results(results))
            pairs[subjects] = (place, read_results(place / "head"))
        for case in cases:
            _check(case)
        seconds = _in_turns(cases, pairs, asked.rounds)
        bytes_of = {case.name: (case.folder / HISTORY).stat().st_size for case in cases}
        for subjects, (place, _) in pairs.items():
            files = (place / "base" / file for file in (RESULTS, FACTS))
            bytes_of[f"baseline × {subjects}"] = sum(file.stat().st_size for file in files)
        start = _peak("nothing", folder)
        peaks = {case.name: _peak("history", case.folder) - start for case in cases}
        for subjects, (place, _) in pairs.items():
            peaks[f"baseline × {subjects}"] = _peak("comparison", place) - start
    told = {case.name: f"{len(case.found)} numbers a run" for case in cases}
    medians = {name: {step: statistics.median(row) for step, row in steps.items()} for name, steps in seconds.items()}
    _tell(medians, bytes_of, peaks, told)
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    result = {"rounds": asked.rounds, "bytes": bytes_of, "peak_mib": peaks, "medians": medians, "seconds": seconds}
    RESULT.write_text(json.dumps(result, indent=1) + "\n", "utf-8")
    print(f"kept in {RESULT.relative_to(ROOT)}")


def _versions(folder: Path) -> tuple[Results, Results]:
    """The healthy demo with a board's speed, and the same with one more sample lost on the board."""
    sys.path.insert(0, str(ROOT / "tests"))
    from support.commandline import call
    from support.edits import edited, wrong_on

    if (told := call("demo", "--out", folder / "demo")).code:
        sys.exit(told.err)
    demo = read_results(folder / "demo")
    return edited(demo, _with_speeds), edited(demo, _with_speeds, wrong_on(1, "hbm"))


def _with_speeds(facts: Facts) -> Facts:
    (run,) = facts.runs_of("hbm")
    made = (
        performance(
            run.id,
            [4.0 * threads, 4.01 * threads, 4.02 * threads],
            [240.0, 241.0, 242.0],
            source="perf",
            threads=threads,
            core=core,
            memory_bytes=8 * MIB,
        )
        for threads, core in BOARD
    )
    return replace(facts, performance=tuple(made))


def _of(one: Results, subjects: int) -> Results:
    """The same subject under so many names."""
    (facts,), (judgement,) = one.facts, one.judgements or ()
    plans = [replace(facts.plan, subject=f"s{number:02}") for number in range(subjects)]
    return replace(
        one,
        facts=tuple(replace(facts, plan=plan) for plan in plans),
        judgements=tuple(replace(judgement, subject=plan.subject, plan=plan.digest) for plan in plans),
    )


def _case(runs: int, today: Results, folder: Path) -> Case:
    """So many runs up to today's, which is not in the history; written and read again."""
    found = tuple(levels(today))
    planted = {level.name for level in _planted(found)}
    random = np.random.default_rng(1)
    paths = [_path(level, runs, random, is_eroding=level.name in planted) for level in found]
    history = History()
    for run in range(runs):
        now = [replace(level, value=path[run]) for level, path in zip(found, paths, strict=True)]
        history = continued(history, PastRun(f"{run:040x}", str(run), "2026-11-01"), now)
    place = folder / f"history-{runs}-{len(today.facts)}"
    write_all(place, {HISTORY: encode_history(history)})
    return Case(runs, len(today.facts), place, today, found, _read(place))


def _planted(found: Sequence[Level]) -> list[Level]:
    """One number of every tenth subject."""
    subjects = sorted({level.subject for level in found})[::EVERY]
    made = []
    for number, subject in enumerate(subjects):
        kind, where, criterion, _ = ERODING[number % len(ERODING)]
        wanted = (subject, kind, where, criterion)
        made.append(next(one for one in found if (one.subject, one.kind, one.key[0], one.criterion) == wanted))
    return made


def _path(level: Level, runs: int, random: np.random.Generator, *, is_eroding: bool) -> list[float]:
    """The number in every run before today's; what erodes does so over the last runs that a default looks at."""
    limit = SLIDES[_slide(level)]
    wavering = 1 + WAVERS * limit * random.uniform(-1, 1, runs)
    window = min(runs, HISTORY_RUNS)
    left = np.minimum(1, np.arange(runs, 0, -1) / window) if is_eroding else np.zeros(runs)
    sign = 1 if level.better == LOWER else -1
    values: list[float] = (level.value * wavering / (1 + sign * SLID * limit * left)).tolist()
    return values


def _slide(level: Level) -> Slide:
    if level.kind is RowKind.SPEED:
        return OF_SPEED[level.criterion]
    return Slide.SCORE_DROP if level.kind is RowKind.SCORE else Slide.ERROR_RISE


def _check(case: Case) -> None:
    """Ends the benchmark where not exactly the planted numbers have slid."""
    told = past_of(tuple(levels(case.today)), case.history, {})
    found = {(*key, one.kind, one.key, one.criterion) for key, past in told.items() for one in past.erosions}
    wanted = {(one.subject, one.target, one.kind, one.key, one.criterion) for one in _planted(case.found)}
    if found != wanted:
        sys.exit(f"{case.name}: too many {sorted(found - wanted)}, missing {sorted(wanted - found)}")
    if {past.runs for past in told.values()} != {min(case.runs, HISTORY_RUNS)}:
        sys.exit(f"{case.name}: told over {sorted({past.runs for past in told.values()})} runs")


def _in_turns(
    cases: Sequence[Case], pairs: Mapping[int, tuple[Path, Results]], rounds: int
) -> dict[str, dict[str, list[float]]]:
    """Seconds of every step of every case; what else the machine does falls on all."""
    todo: list[tuple[str, str, Callable[[], object]]] = []
    for case in cases:
        todo += [(case.name, step, action) for step, action in _steps(case).items()]
    for subjects, (place, head) in pairs.items():
        base = read_results(place / "base")
        name = f"baseline × {subjects}"
        todo.append((name, "read results", partial(read_results, place / "base")))
        todo.append((name, "compare", partial(_compared, base, head)))
    seconds: dict[str, dict[str, list[float]]] = {}
    for turn in range(rounds + 1):
        for name, step, action in todo:
            gc.collect()
            began = time.perf_counter()
            action()
            spent = time.perf_counter() - began
            if turn > 0:  # the first of each warms the caches
                seconds.setdefault(name, {}).setdefault(step, []).append(spent)
    return seconds


def _steps(case: Case) -> dict[str, Callable[[], object]]:
    longer = continued(case.history, TODAY, case.found)
    return {
        "read": lambda: _read(case.folder),
        "numbers": lambda: tuple(levels(case.today)),
        "slid": lambda: slid(case.history, case.found, DEFAULTS),
        "tell": lambda: past_of(tuple(levels(case.today)), case.history, {}),
        "continue": lambda: continued(case.history, TODAY, case.found),
        "write": lambda: encode_history(longer),
    }


def _read(folder: Path) -> History:
    history = read_history(folder)
    if history is None:
        sys.exit(f"no {HISTORY} in {folder}")
    return history


def _compared(base: Results, head: Results) -> None:
    if not compare_results(base, head, labels=("base", "head")).subjects:
        sys.exit("no subject was compared")


def _alone_history(folder: Path) -> None:
    history = _read(folder)
    found = [
        Level(one.subject, one.target, one.kind, one.key, one.criterion, one.better, one.values[-1], one.bases[-1])
        for one in history.series
    ]
    slid(history, found, DEFAULTS)
    write_all(folder / "next", {HISTORY: encode_history(continued(history, TODAY, found))})


def _alone_comparison(folder: Path) -> None:
    _compared(read_results(folder / "base"), read_results(folder / "head"))


#: What is done in a process of its own; the first is what others are held against.
ALONE: Mapping[str, Callable[[Path], None]] = {
    "nothing": lambda _: None,
    "history": _alone_history,
    "comparison": _alone_comparison,
}


def _high_water() -> float:
    """This process's own peak of resident memory in MiB: what the kernel tells of a child has its parent's in it."""
    status = Path("/proc/self/status").read_text("utf-8")
    return int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1]) / 1024


def _peak(what: str, folder: Path) -> float:
    words = (sys.executable, __file__, "--alone", what, "--folder", str(folder))
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr)
    return float(done.stdout)


def _tell(
    medians: Mapping[str, Mapping[str, float]],
    bytes_of: Mapping[str, int],
    peaks: Mapping[str, float],
    told: Mapping[str, str],
) -> None:
    """The table in ms, and the ratios: how it grows, and what it is beside the comparison."""
    print(f"exactly what was planted has slid in every case: {len(range(0, SUBJECTS, EVERY))} of {SUBJECTS} subjects")
    columns = (*STEPS, *COMPARING)
    print("".join([f"{'ms':16}", *(f"{step:>14}" for step in columns), f"{'MiB on disk':>14}", f"{'MiB at most':>14}"]))
    for name, row in medians.items():
        cells = [f"{1000 * row[step]:14.1f}" if step in row else f"{'':14}" for step in columns]
        extra = f"{bytes_of[name] / MIB:14.2f}{peaks[name]:14.1f}"
        print(f"{name:16}{''.join(cells)}{extra}  {told.get(name, '')}".rstrip())
    large, one, few = (f"{runs} runs × {subjects}" for runs, subjects in CASES)
    for wide, narrow, what in (
        (large, one, f"{SUBJECTS} times the subjects"),
        (large, few, f"{MOST_RUNS // FEW_RUNS} times the runs"),
        (f"baseline × {SUBJECTS}", "baseline × 1", f"comparing {SUBJECTS} times the subjects"),
    ):
        ratios = [f"{step} {medians[wide][step] / medians[narrow][step]:.1f}" for step in medians[wide]]
        print(f"{what}: {', '.join(ratios)}, bytes {bytes_of[wide] / bytes_of[narrow]:.1f} times")
    compared = f"baseline × {SUBJECTS}"
    whole, beside = _added(medians[large]), math.fsum(medians[compared].values())
    print(
        f"{large} subjects add {whole:.2f} s to a check, comparing {beside:.2f} s: {whole / beside:.2f} of its time, "
        f"{bytes_of[large] / bytes_of[compared]:.2f} of its bytes, {peaks[large] / peaks[compared]:.2f} of its memory"
    )


def _added(row: Mapping[str, float]) -> float:
    """What a history adds to a check: it is read, told of, continued by this run's numbers, and written."""
    return math.fsum(row[step] for step in ("read", "tell", "numbers", "continue", "write"))


if __name__ == "__main__":
    main()
