"""How often the planted cause is found first: `PYTHONPATH=tests python tests/diagnosis/report.py`."""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from diagnosis.running import Answer, answers, blamed_pairs, commit
from faultgen.catalogue import FAMILIES, PLANTERS, instances
from faultgen.healthy import pairs


def table(title: str, answered: Sequence[Answer], key: Callable[[Answer], str]) -> str:
    """Instances, first right, share and mean seconds by a key, as lines."""
    lines = [f"{title:<45} {'right':>5} {'of':>5} {'share':>7} {'plant':>7} {'explain':>8}"]
    for name in sorted({key(item) for item in answered}):
        mine = [item for item in answered if key(item) == name]
        lines.append(_line(name, mine))
    return "\n".join([*lines, _line("all", list(answered))])


def _line(name: str, mine: Sequence[Answer]) -> str:
    right = sum(item.is_right for item in mine)
    times = [sum(getattr(item, part) for item in mine) / len(mine) for part in ("planting", "explaining")]
    return f"{name:<45} {right:>5} {len(mine):>5} {100 * right / len(mine):>6.1f}% {times[0]:>6.2f}s {times[1]:>7.2f}s"


def main() -> None:
    """Read the options, run, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", action="append", help="text the instances come from; default: commit and a fixed one")
    parser.add_argument("--count", type=int, default=4, help="instances of every planter for every seed")
    parser.add_argument("--family", choices=FAMILIES)
    parser.add_argument("--code", help="only planters whose name begins so")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--keep", type=Path, help="keep the folders of the misses there")
    parser.add_argument("--healthy", type=int, default=0, help="pairs of every healthy kind for every seed")
    chosen = parser.parse_args()
    seeds = chosen.seed or [*commit(), "driftgate"]
    wanted = [
        instance
        for instance in instances(seeds, chosen.count)
        if chosen.family in (None, instance.planter.family) and instance.planter.name.startswith(chosen.code or "")
    ]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        answered = answers(wanted, folder, chosen.jobs)
        print(f"seeds {', '.join(seeds)}; {len(PLANTERS)} planters\n")
        if answered:
            print(table("planter", answered, lambda item: item.instance.planter.name), "\n")
            print(table("code", answered, lambda item: item.instance.planter.code), "\n")
            print(table("family", answered, lambda item: item.instance.planter.family), "\n")
        for item in answered:
            if not item.is_right:
                said = ", ".join(item.codes[:4]) or "nothing"
                sure = "" if item.confirmed or not item.codes else " (suspected)"
                print(f"MISS {item.instance.name}: {item.verdict} {said}{sure}")
                if chosen.keep:
                    shutil.copytree(item.folder, chosen.keep / item.folder.name, dirs_exist_ok=True)
        if chosen.healthy:
            made = list(pairs(seeds, chosen.healthy))
            found = blamed_pairs(made, folder, chosen.jobs)
            print(f"\nhealthy: {len(made)} pairs, {len(found)} with a FAIL finding")
            for name, codes in found.items():
                print(f"BLAMED {name}: {', '.join(codes)}")
                if chosen.keep:
                    shutil.copytree(
                        folder / name.replace(":", "_"), chosen.keep / name.replace(":", "_"), dirs_exist_ok=True
                    )


if __name__ == "__main__":
    main()
