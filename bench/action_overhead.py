"""What the action costs beside the check that it runs: its steps, warm, against `driftgate check` alone.

Both are started as their users start them, in turn, many times in one run, so that what else the machine does falls
on both. The publishing step speaks to a GitHub on the loopback interface. Nothing here asserts anything.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / ".cache" / "bench"
RESULT = FOLDER / "action_overhead.json"
TOKEN = "ghs_actions"  # noqa: S105 (the loopback server's)
STEP_SECONDS = 900


def main() -> None:
    """Measure, print the medians, keep them as JSON."""
    sys.path.insert(0, str(ROOT / "tests"))
    from driftgate.demo.build import build
    from support.act.events import pull_request
    from support.github.server import GitHub

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    rounds = parser.parse_args().rounds

    workspace = FOLDER / "workspace"
    build(workspace)
    with GitHub() as github:
        event = FOLDER / "event.json"
        event.write_text(json.dumps(pull_request(github).payload), "utf-8")
        environment = _environment(workspace, event, github.url)
        python = _install(environment)
        steps = {
            "install": ("bash", str(ROOT / "src" / "install.sh")),
            "check": (python, "-I", "-X", "utf8", "-m", "driftgate.action"),
            "publish": (python, "-I", "-X", "utf8", "-m", "driftgate.publication"),
        }
        alone = (python, "-I", "-X", "utf8", "-m", "driftgate", "check", "--out", "alone")
        seconds: dict[str, list[float]] = {name: [] for name in ("alone", *steps)}
        for turn in range(rounds + 1):
            for name, command in {"alone": alone, **steps}.items():
                spent = _timed(command, environment)
                if turn > 0:  # the first of each warms the caches
                    seconds[name].append(spent)

    medians = {name: statistics.median(values) for name, values in seconds.items()}
    action = sum(medians[name] for name in steps)
    _tell(medians, action)
    result = {
        "rounds": rounds,
        "machine": {"processors": os.cpu_count(), "python": platform.python_version(), "system": platform.platform()},
        "medians_seconds": medians,
        "overhead_seconds": action - medians["alone"],
        "ratio": action / medians["alone"],
        "seconds": seconds,
    }
    RESULT.write_text(json.dumps(result, indent=1) + "\n", "utf-8")


def _environment(workspace: Path, event: Path, api_url: str) -> Mapping[str, str]:
    """What a runner sets, and what action.yml does with its inputs left alone."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    kept |= {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
    inputs = {"config": "driftgate.yaml", "out": "driftgate-out", "report": "driftgate-out", "comment": "auto"}
    inputs |= {"delete_when_green": "false", "upload": "never", "python": sys.executable}
    return {
        **kept,
        **{f"DRIFTGATE_{name.upper()}": value for name, value in inputs.items()},
        "GITHUB_WORKSPACE": str(workspace),
        "GITHUB_OUTPUT": str(FOLDER / "output"),
        "GITHUB_STEP_SUMMARY": str(FOLDER / "summary"),
        "GITHUB_EVENT_PATH": str(event),
        "GITHUB_EVENT_NAME": "pull_request",
        "GITHUB_API_URL": api_url,
        "GITHUB_SERVER_URL": "https://github.com",
        "GITHUB_REPOSITORY": "acme/models",
        "GITHUB_WORKFLOW": "driftgate",
        "GITHUB_RUN_ID": "1",
        "GITHUB_RUN_NUMBER": "1",
        "GITHUB_SHA": "c" * 40,
        "GITHUB_TOKEN": TOKEN,
        "RUNNER_TOOL_CACHE": str(FOLDER / "tools"),
    }


def _install(environment: Mapping[str, str]) -> str:
    """The Python that the first step gives to the others; the only time that may be cold."""
    spent = _timed(("bash", str(ROOT / "src" / "install.sh")), environment)
    print(f"first installation: {spent:.1f} s")
    found = re.findall(r"^python<<(\S+)\n(.*)\n\1$", Path(environment["GITHUB_OUTPUT"]).read_text("utf-8"), re.M)
    return str(found[-1][1])


def _timed(command: Sequence[str], environment: Mapping[str, str]) -> float:
    for file in ("output", "summary"):
        (FOLDER / file).unlink(missing_ok=True)
    begin = time.perf_counter()
    done = subprocess.run(
        list(command),
        cwd=environment["GITHUB_WORKSPACE"],
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=STEP_SECONDS,
    )
    spent = time.perf_counter() - begin
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stdout}")
    return spent


def _tell(medians: Mapping[str, float], action: float) -> None:
    for name, spent in medians.items():
        print(f"{name:8} {spent:6.3f} s")
    alone = medians["alone"]
    print(f"action   {action:6.3f} s = check alone + {action - alone:.3f} s, ratio {action / alone:.3f}")
    print(f"kept in {RESULT.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
