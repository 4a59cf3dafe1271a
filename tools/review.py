"""Maintainers only: reports to look at before they are called done: every fault of the demo, MTCNN's ONet, PP-OCR's
text detector. `make review` makes them and takes their pictures.

python tools/review.py FOLDER
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import onnx
from onnx import version_converter

# skimage is of the field tests' environment alone.
from skimage.data import page  # type: ignore[import-not-found, unused-ignore]
from skimage.transform import resize  # type: ignore[import-not-found, unused-ignore]

from driftgate.demo.faults import FAULTS
from support.field import mtcnn
from support.field.quantize import calibrate, optimise
from support.field.wheels import RAPIDOCR_DETECTOR, members

ONET = """
version: 1
subjects:
  onet:
    artifacts:
      pytorch: {{backend: torch, python: [{python}], load: "onet_loader:load", weights: onet.pt, search-path: [.]}}
      onnx: onet.onnx
      optimized_float: onet_optimized.onnx
      calibrated: onet_miscalibrated.onnx
    outputs: {{box: output.0, landmarks: output.1, probability: output.2}}
    samples: {{raw: faces.npz}}
    score: {{task: classification, labels: labels.npz, output: probability, baseline: {{top1: 200/200}}}}
"""
DETECTOR = """
version: 1
subjects:
  det:
    artifacts: {onnx: det.onnx, optimized_float: det_optimized.onnx, calibrated: det_calibrated.onnx}
    samples: {raw: pages.npz}
"""
SHAPE = (1, 3, 480, 640)


def face_network(folder: Path) -> str:
    """ONet, calibrated with pixels that nobody normalised."""
    mtcnn.build(folder)
    pixels = [{"x": face[None] * np.float32(127.5) + np.float32(127.5)} for face in mtcnn.images()[::5]]
    name = onnx.load(folder / "onet.onnx").graph.input[0].name
    feeds = [{name: one["x"]} for one in pixels]
    calibrate(folder / "onet.onnx", folder / "onet_miscalibrated.onnx", feeds, weight_bits=7)
    return ONET.format(python=sys.executable)


def text_detector(folder: Path) -> str:
    """PP-OCRv4's detector in INT8 as a first try makes it: it fails by itself."""
    (shipped,) = members(RAPIDOCR_DETECTOR).values()
    network = version_converter.convert_version(onnx.load(shipped), 17)
    for dimension, size in zip(network.graph.input[0].type.tensor_type.shape.dim, SHAPE, strict=True):
        dimension.dim_value = size
    onnx.save(network, folder / "det.onnx")
    scan = page() / 255
    turned = (scan, scan[::-1, ::-1], scan[:, ::-1], scan[::-1])
    pages = np.stack([resize(one, SHAPE[2:], order=1) for one in turned])
    feeds = np.repeat((pages[:, None] - 0.5) / 0.5, 3, axis=1).astype(np.float32)
    name = network.graph.input[0].name
    np.savez(folder / "pages.npz", allow_pickle=False, **{name: feeds})
    optimise(folder / "det.onnx", folder / "det_optimized.onnx", "basic")
    calibrate(folder / "det.onnx", folder / "det_calibrated.onnx", [{name: feeds[:1]}], weight_bits=8)
    return DETECTOR


NETWORKS = {"mtcnn-onet": face_network, "ppocr-det": text_detector}


def main(target: Path) -> int:
    """Make every report below `target`; exit code 1 where one that should fail does not."""
    target.mkdir(parents=True, exist_ok=True)
    passed = []
    for fault in FAULTS:
        if _driftgate("demo", "--fault", fault, "--out", str(target / fault)) != 1:
            passed.append(fault)
    for name, build in NETWORKS.items():
        project = target / f"{name}-project"
        project.mkdir(exist_ok=True)
        (project / "driftgate.yaml").write_text(build(project), "utf-8")
        begun = time.monotonic()
        code = _driftgate("check", "-c", str(project / "driftgate.yaml"), "--out", str(target / name))
        print(f"{name}: exit code {code} after {time.monotonic() - begun:.1f} s")
        if code != 1:
            passed.append(name)
    print(f"these should fail and do not: {', '.join(passed)}" if passed else f"reports in {target}")
    return 1 if passed else 0


def _driftgate(*arguments: str) -> int:
    line = [sys.executable, "-m", "driftgate", *arguments]
    return subprocess.run(line, stdin=subprocess.DEVNULL, timeout=600).returncode


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
