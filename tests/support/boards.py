"""Projects whose .hbm runs on test boards: a small camera network, built by the stand-in toolchain."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from driftgate.domain.results import Results
from driftgate.storage.document import read_results
from support.board.lab import TestBoard
from support.chains import Chain, normalised, pixels
from support.commandline import Answer, call, process
from support.vendor.models import interpreter


def described(*boards: TestBoard, **more: Any) -> dict[str, Any]:
    """A pool as the configuration has it."""
    known = boards[0].known_hosts.with_name("known_hosts_of_the_pool")
    known.write_text("".join(board.known_hosts.read_text() for board in boards))
    return {
        "hosts": [f"{board.address}:{board.port}" for board in boards],
        "key": str(boards[0].key),
        "known-hosts": str(known),
        "folder": f"{boards[0].work}/driftgate",
        "tool": boards[0].tool,
        "lease": 4,
        "wait": 60,
        "patience": 40,
        "sample-timeout": 20,
        **more,
    }


@dataclass(slots=True)
class BoardProject:
    """A chain of onnx, .bc and an .hbm on a board, in a folder."""

    root: Path
    target: str = "J6M"
    samples: int = 6

    def made(self, pool: dict[str, Any], **options: Any) -> BoardProject:
        """With a build, samples and a configuration."""
        self.root.mkdir(parents=True, exist_ok=True)
        chain = Chain(self.root, (self.target,)).made(**options)
        np.savez(self.root / "eval.npz", image=normalised(pixels(self.samples, 1)))
        for name in ("original_float_model.onnx", "optimized_float_model.onnx", "calibrated_model.onnx"):
            (chain.output() / f"net_{name}").unlink()
        document = {
            "version": 1,
            "defaults": {"hbruntime": {"python": interpreter(), "timeout": 60}, "board": "lab"},
            "boards": {"lab": pool},
            "subjects": {"net": chain.subject},
        }
        self.config.write_text(yaml.safe_dump(document, sort_keys=False), "utf-8")
        return self

    @property
    def config(self) -> Path:
        """The configuration."""
        return self.root / "driftgate.yaml"

    def change(self, **pool: Any) -> None:
        """Other words about the pool."""
        document = yaml.safe_load(self.config.read_text())
        document["boards"]["lab"].update(pool)
        self.config.write_text(yaml.safe_dump(document, sort_keys=False), "utf-8")

    def without_the_vendors_interpreter(self) -> None:
        """The interpreter stands with the artifacts that need it, not for all."""
        document = yaml.safe_load(self.config.read_text())
        runtime = document["defaults"].pop("hbruntime")
        output = f"build_{self.target}/model_output"
        document["subjects"]["net"]["artifacts"] = {
            "quantized": {"path": f"{output}/net_quantized_model.bc", **runtime},
            "hbm": {"backend": "board", "path": f"{output}/net.hbm"},
        }
        self.config.write_text(yaml.safe_dump(document, sort_keys=False), "utf-8")

    def check(self, *arguments: str, out: str = "out") -> Answer:
        """What `driftgate check` comes to."""
        return call("check", "-c", self.config, "--out", self.root / out, *arguments)

    def process(self, *arguments: str, out: str = "out") -> Answer:
        """The same as a process of its own."""
        return process("check", "-c", self.config, "--out", self.root / out, *arguments)

    def results(self, out: str = "out") -> Results:
        """What it wrote."""
        return read_results(self.root / out)


def verdicts(results: Results) -> dict[str, str]:
    """slug → outcome of the one subject."""
    (judgement,) = results.judgements or ()
    return {check.slug: check.outcome.value for check in judgement.checks}


def left_behind(board: TestBoard) -> list[str]:
    """What lies in driftgate's folder on a board, the cache left out."""
    folder = board.root / "driftgate"
    if not folder.exists():
        return []
    return sorted(path.name for path in folder.iterdir() if path.name != "cache")
