"""STAND-IN for hb_model_info: what a .bc, .hbm or .onnx tells of itself, in the tool's layout (facts §3)."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from support.vendor import describing
from support.vendor.files import Network, read
from support.vendor.journal import Journal
from support.vendor.options import TOOL
from support.vendor.running import Runner

LOG = "hb_model_info.log"
DELETED = "deleted_nodes_info.txt"
FOREVER = 1 << 30


def main(arguments: Sequence[str] | None = None) -> int:
    """One call of the tool in the current folder; 255 where it fails. `-v` starts a server and never returns."""
    parser = argparse.ArgumentParser(prog="hb_model_info")
    parser.add_argument("path", type=Path)
    parser.add_argument("-n", "--name", default="")
    parser.add_argument("-v", "--visualize", action="store_true")
    parser.add_argument("--version", action="version", version=f"hb_model_info, version {TOOL}")
    asked = parser.parse_args(arguments)
    journal = Journal(Path(LOG).absolute(), sys.stdout, source="hb_model_info")
    for line in (f"log will be stored in {journal.log}", "Start hb_model_info....", f"hb_model_info version {TOOL}"):
        journal.say(line)
    try:
        networks = read(asked.path)
    except (OSError, RuntimeError) as error:
        journal.say(f"The model file {asked.path} is invalid: {error}", "ERROR")
        journal.written()
        return 255
    for network in networks:
        if asked.name in ("", network.name):
            for line in _lines(network):
                journal.say(line)
            _write_aside(network)
    journal.written()
    if asked.visualize:
        print("Serving at http://localhost:8080", flush=True)
        time.sleep(FOREVER)
    return 0


def _lines(network: Network) -> Iterator[str]:
    runner = Runner(network)
    if network.desc:
        yield from describing.blocks(network.desc)
    if network.told.get("removable"):
        yield describing.banner("Removable node info")
        yield from describing.barred(("Node Name", "Node Type"), network.told["removable"])
    if network.ending == ".hbm":
        yield from describing.memory(runner.inputs, runner.outputs, network.march or "", len(network.body))
    yield from describing.io_table(runner.inputs, runner.outputs)


def _write_aside(network: Network) -> None:
    """The description in a folder of the tool's own, and the nodes that were taken away."""
    folder = Path(".hb_model_info")
    folder.mkdir(exist_ok=True)
    (folder / f"{network.name}.json").write_text(json.dumps(network.desc, indent=2), "utf-8")
    if removed := network.told.get("removed"):
        Path(DELETED).write_text("".join(f"{node} {kind}\n" for node, kind in removed), "utf-8")
