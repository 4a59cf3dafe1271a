"""The reusable workflow under act: the tree that holds it, and a consumer whose board is this machine."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from support.act.rig import LABELS, ActRun, Rig
from support.chains import Chain, normalised, pixels
from support.vendor.models import interpreter
from support.vendor.toolchain import tool

WORKFLOWS = Path(".github", "workflows")
NAMES = ("four-segment.yml", "four-segment-ghes.yml")
#: What act does not know, and what stands there for it.
UNKNOWN_TO_ACT = (
    (r"uses: \$/(\w+)", r"uses: driftgate/driftgate/\1@v0"),
    (r"(?m)^ +queue: max\n", ""),
    # a matrix is made before the `if` of its job is looked at, and outputs of a skipped job are their own expressions
    (
        r"fromJSON\((needs\.plan\.outputs\.\w+)\) }}",
        r"fromJSON(startsWith(\1, '[') && \1 || '[{}]') }}",
    ),
)
BOARD_LABEL = "j6"
SAMPLES, BLOCK = 6, 2
_LEG = re.compile(r"\w+/\w+/(?:host|board)/\d+-\d+(?=-\d+$|$)")
#: What the job of a board alone is told.
SECRET = "J6_PASSWORD=hunter22\n\nJ6_HOST=192.0.2.17\n"


def with_workflow(rig: Rig, folder: Path) -> Rig:
    """A rig whose tree has the workflows as act can run them, and whose runners have the board's label."""
    tree = folder / "tree-for-act"
    shutil.copytree(rig.tree, tree)
    for name in NAMES:
        file = tree / WORKFLOWS / name
        text = file.read_text("utf-8")
        for pattern, instead in UNKNOWN_TO_ACT:
            text = re.sub(pattern, instead, text)
        file.write_text(text, "utf-8")
    return replace(rig, tree=tree, labels=(*LABELS, BOARD_LABEL), secrets={"BOARDS": SECRET})


def caller(folder: Path, workflow: str = NAMES[0], **inputs: Any) -> Path:
    """The workflow of a consumer, which calls ours; `inputs` in snake case."""
    document: dict[str, Any] = {
        "name": "driftgate",
        "on": ["push", "pull_request", "schedule", "release", "workflow_dispatch"],
        "permissions": {},
        "jobs": {
            "chain": {
                "uses": f"driftgate/driftgate/{(WORKFLOWS / workflow).as_posix()}@v0",
                "permissions": {"contents": "read", "actions": "write", "pull-requests": "write"},
                "with": {name.replace("_", "-"): value for name, value in inputs.items()},
                "secrets": {"boards": "${{ secrets.BOARDS }}"},
            }
        },
    }
    file = folder / "driftgate.yml"
    file.write_text(yaml.safe_dump(document, sort_keys=False), "utf-8")
    return file


def ran(done: ActRun) -> dict[str, str]:
    """Job, without what act puts before and behind its name → its result. What act has skipped is not in it."""
    found: dict[str, str] = {}
    for name, result in done.results.items():
        leg = _LEG.search(name)
        found[f"{name.split('/')[1].split()[0]} {leg[0]}" if leg else name.split("/")[1]] = result
    return found


def consumer(
    folder: Path, subjects: tuple[str, ...] = ("net",), targets: tuple[str, ...] = ("J6M",), **more: Any
) -> Path:
    """A repository of so many networks, whose .hbm runs on a board of the pool `lab`; three blocks each.

    The board's tool and the vendor's interpreter write down their environments beside the repository, in `board.env`
    and `host.env`; `board.sh` and `host.sh` there are what they do before their work.
    """
    root = folder / "consumer"
    chain = Chain(root, targets).made()
    np.savez(root / "eval.npz", image=normalised(pixels(SAMPLES, 1)))
    np.savez(root / "labels.npz", labels=np.arange(SAMPLES) % 10)
    chain.subject["samples"]["block"] = BLOCK
    chain.subject["score"] = {"task": "classification", "labels": "labels.npz", "output": "scores"}
    board = _spying(folder, "board", tool("hrt_model_exec"))
    host = _spying(folder, "host", interpreter())
    document = {
        "version": 1,
        "defaults": {"hbruntime": {"python": [str(host)], "timeout": 60}, "board": "lab"},
        "boards": {
            "lab": {
                "transport": "local",
                "password": "${J6_PASSWORD}",  # the boards' jobs alone have it
                "labels": ["self-hosted", BOARD_LABEL],
                "folder": str(folder / "on-the-board"),
                "tool": str(board),
                "lease": 4,
            }
        },
        "policies": {"release": {"require": ["float-int8", "bc-hbm", "board"]}},
        "subjects": dict.fromkeys(subjects, chain.subject),
        **more,
    }
    (root / "driftgate.yaml").write_text(yaml.safe_dump(document, sort_keys=False), "utf-8")
    return root


def _spying(folder: Path, name: str, command: Sequence[str]) -> Path:
    """A program that writes down its environment, does what a test has told it to, and becomes the command."""
    program = folder / name
    lines = ("#!/bin/sh", f'env > "{program}.env"', f'[ ! -e "{program}.sh" ] || . "{program}.sh"')
    program.write_text("\n".join((*lines, f'exec {shlex.join(command)} "$@"', "")), "utf-8")
    program.chmod(0o755)
    return program
