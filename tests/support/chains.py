"""Whole chains of one small camera network, built and run by STAND-INs of the vendor's tools (tests/support/vendor)."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import yaml
from numpy.typing import NDArray

from driftgate.domain.judgement import Judgement
from driftgate.domain.platforms import PLATFORMS
from driftgate.domain.results import Results
from driftgate.storage.document import read_results
from support.commandline import call
from support.handed import hand_on
from support.nets import Builder
from support.vendor.models import interpreter
from support.vendor.toolchain import build, tool

Array = NDArray[Any]
SIZE = 36  # rows of 36 bytes, which no platform's alignment divides
MEAN, SCALE = (128.0,), (1 / 64,)
SAMPLES, CALIBRATED = 4, 8
MARCHES = {name: one.march for name, one in PLATFORMS.items()}


def pixels(count: int, seed: int) -> Array:
    """Smooth pictures (count, 3, SIZE, SIZE) of 8 bits, as a camera's: each 2 × 2 pixels have one colour."""
    rng = np.random.default_rng(seed)
    small = rng.integers(0, 256, (count, 3, SIZE // 4, SIZE // 4)).astype(np.float64)
    return np.rint(small.repeat(4, 2).repeat(4, 3) * 0.7 + rng.uniform(0, 70, (count, 3, 1, 1)))


def normalised(pictures: Array) -> Array:
    """As the float network eats them."""
    return ((pictures - MEAN[0]) * SCALE[0]).astype(np.float32)


def network(seed: int = 0) -> onnx.ModelProto:
    """Pictures to a map (1, 6, SIZE / 2, SIZE / 2) and to scores (1, 10); the seed is that of its weights."""
    net = Builder(seed, channels={"image": 3})
    x = net.activation(net.conv("image", 8, stride=2), "Relu")
    x = net.activation(net.conv(x, 8), "Relu")
    heat = net.conv(x, 6, 1, name="heat")
    pooled = net.node("Flatten", [net.node("GlobalAveragePool", [x])])
    scores = net.dense(pooled, 8, 10, name="scores")
    return net.model({"image": (1, 3, SIZE, SIZE)}, [heat, scores])


@dataclass(slots=True)
class Chain:
    """A project in a folder: the network, its builds by target, and a configuration that can be changed."""

    root: Path
    targets: tuple[str, ...] = ("J6M",)
    rt: str = "nv12"
    options: Mapping[str, Any] = field(default_factory=dict)
    subject: dict[str, Any] = field(default_factory=dict)

    def made(self, **options: Any) -> Chain:
        """With builds for all targets, and the configuration that goes with them."""
        for target in self.targets:
            self.build(target, **options)
        self.root.mkdir(exist_ok=True)
        onnx.save(network(), str(self.root / "net.onnx"))
        np.savez(self.root / "eval.npz", image=normalised(pixels(SAMPLES, 1)))
        declared = {"train": "rgb", "rt": self.rt, "mean": list(MEAN), "scale": list(SCALE)}
        self.subject = {
            "targets": list(self.targets),
            "artifacts": {"onnx": "net.onnx", "build": {"from": "build_{target}/model_output", "prefix": "net"}},
            "samples": {
                "raw": "eval.npz",
                "block": 2,
                **({"declared": {"image": declared}} if self.rt != "featuremap" else {}),
            },
        }
        return self

    def build(self, target: str, *, seed: int = 0, folder: str = "", **options: Any) -> Path:
        """A build for a target; another `seed` is another network."""
        picture = {} if self.rt == "featuremap" else {"mean": MEAN, "scale": SCALE, "train": "rgb"}
        return build(
            self.root / (folder or f"build_{target}"),
            network(seed),
            **{
                "march": MARCHES[target],
                "rt": self.rt,
                "calibration": {"image": normalised(pixels(CALIBRATED, 2))},
                **picture,
                **options,
            },
        )

    def output(self, target: str = "") -> Path:
        """Where the build of a target lies."""
        return self.root / f"build_{target or self.targets[0]}" / "model_output"

    @property
    def artifacts(self) -> dict[str, Any]:
        """The artifacts of the configuration."""
        found: dict[str, Any] = self.subject["artifacts"]
        return found

    def feeds(self, target: str = "") -> list[dict[str, Array]]:
        """The runtime samples, as driftgate makes them."""
        from driftgate.settings.samples import SampleSettings

        data = SampleSettings.model_validate(self.subject["samples"]).data(self.root)
        found = [data.read(sample) for sample in data.ids()]
        return [dict(next(tensors for kind, tensors in one.items() if kind.value == "runtime")) for one in found]

    def on_the_board(self, feeds: list[dict[str, Array]], *, target: str = "", **flags: str) -> None:
        """The .hbm run by hrt_model_exec on these feeds, its dumps and model_info recorded as the stage hbm."""
        target = target or self.targets[0]
        model = self.output(target) / "net.hbm"
        march = MARCHES[target]
        info = ran(tool("hrt_model_exec", STAND_IN_MARCH=march), "model_info", f"--model_file={model}")
        (self.root / "model_info.log").write_text(info)
        for number, tensors in enumerate(feeds):
            folder = self.root / "dumps" / f"{number:04}"
            folder.mkdir(parents=True, exist_ok=True)
            paths = []
            for name, value in tensors.items():
                paths.append(str(folder / f"in-{name}.bin"))
                Path(paths[-1]).write_bytes(np.ascontiguousarray(value).tobytes())
            ran(
                tool("hrt_model_exec", STAND_IN_MARCH=march),
                "infer",
                f"--model_file={model}",
                f"--input_file={','.join(paths)}",
                "--enable_dump=true",
                f"--dump_path={folder}",
                "--dump_format=bin",
                *(f"--{name}={value}" for name, value in flags.items()),
            )
        self.artifacts["hbm"] = {"backend": "recorded", "path": "dumps", "model-info": "model_info.log"}

    def check(self, *, code: int, **top: Any) -> Results:
        """What `driftgate check` says, and, where a check fails, its bundle elsewhere."""
        document = {
            "version": 1,
            "defaults": {"hbruntime": {"python": interpreter(), "timeout": 60}},
            "subjects": {"net": self.subject},
            **top,
        }
        config = self.root / "driftgate.yaml"
        config.write_text(yaml.safe_dump(document, sort_keys=False), "utf-8")
        told = call("check", "-c", config, "--out", self.root / "out")
        assert told.code == code, told.out + told.err
        if code == 1:
            hand_on(self.root / "out", self.root / f"handed-{sum(1 for _ in self.root.glob('handed-*'))}")
        return read_results(self.root / "out")


def ran(command: tuple[str, ...], *arguments: str) -> str:
    """What a tool prints; it must succeed."""
    done = subprocess.run([*command, *arguments], capture_output=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.decode()


def only(results: Results) -> Judgement:
    """The judgement of the one target."""
    (found,) = results.judgements or ()
    return found


def outcomes(judgement: Judgement) -> dict[str, str]:
    """slug → outcome."""
    return {check.slug: check.outcome.value for check in judgement.checks}


def confirmed(judgement: Judgement) -> set[str]:
    """Codes of the findings that are certain."""
    return {finding.code for finding in judgement.findings if finding.confirmed}
