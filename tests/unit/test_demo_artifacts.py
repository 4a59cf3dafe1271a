"""The embedded demo: every stage reads 356 of 360 digits, and every fault shows on its own link and on no other."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from importlib.resources import files
from itertools import pairwise
from pathlib import Path

import numpy as np
import onnx
import onnxruntime  # type: ignore[import-untyped]
import pytest
import yaml
from numpy.typing import NDArray

from driftgate.demo.board import ALIGNMENT, pack, run_on_board, unpack
from driftgate.demo.build import build, pixels, recipe_for
from driftgate.demo.engine import Program, compile_program, quantize_input, run
from driftgate.demo.faults import FAULTS
from driftgate.demo.network import INPUT, LAYERS, LOGITS, fold, load, load_weights
from driftgate.demo.quantize import Int8s, quantize
from driftgate.domain.chain import PTQ
from driftgate.errors import UsageError

Logits = NDArray[np.float64]

HEALTHY = None
IMAGES = 360
ONNX_FILES = ("original", "optimized_float", "calibrated", "ptq")
STAGES = ("pytorch", "onnx", "optimized_float", "calibrated", "ptq", "quantized", "hbm")
FLOAT_LIMIT = 1e-4  # of the channel's range
STEPS = 3  # LSB
SCORE_DROP = 0.01

#: right answers by stage
SCORES: Mapping[str | None, tuple[int, ...]] = {
    HEALTHY: (356, 356, 356, 356, 356, 356, 356),
    "input-scale": (356, 56, 56, 56, 56, 56, 56),
    "optimizer-fold": (356, 356, 356, 356, 356, 356, 356),
    "calibration-range": (356, 356, 356, 28, 28, 28, 28),
    "board-padding": (356, 356, 356, 356, 356, 356, 275),
    "board-channels": (356, 356, 356, 356, 356, 356, 78),
    "board-scale": (356, 356, 356, 356, 356, 356, 356),
}

PROJECT = {
    "README.md",
    "data/eval.npz",
    "data/labels.npz",
    "driftgate.yaml",
    "stages/calibrated.onnx",
    "stages/hbm.npz",
    "stages/hbm.signature.json",
    "stages/optimized_float.onnx",
    "stages/original.onnx",
    "stages/ptq.onnx",
    "stages/pytorch.npz",
    "stages/quantized.npz",
    "stages/quantized.signature.json",
}


@pytest.fixture(scope="module")
def projects(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str | None, Path]:
    """The folder of every build: the healthy one under None, the others by fault."""
    root = tmp_path_factory.mktemp("demo")
    return {fault: build(root / str(fault), fault).parent for fault in (HEALTHY, *FAULTS)}


@pytest.fixture(scope="module")
def outputs(projects: Mapping[str | None, Path]) -> Mapping[str | None, Mapping[str, Logits]]:
    """Logits of every stage of every build, as real numbers."""
    return {fault: logits_by_stage(folder) for fault, folder in projects.items()}


def logits_by_stage(folder: Path) -> dict[str, Logits]:
    images = arrays(folder / "data" / "eval.npz")[INPUT]
    stages = folder / "stages"
    onnx_logits = [infer((stages / f"{name}.onnx").read_bytes(), images)[LOGITS] for name in ONNX_FILES]
    recorded = [arrays(stages / "pytorch.npz")[LOGITS], *onnx_logits]
    board_side = [dequantized(stages, name) for name in ("quantized", "hbm")]
    return dict(zip(STAGES, [*(logits.astype(np.float64) for logits in recorded), *board_side], strict=True))


def arrays(path: Path) -> dict[str, NDArray[np.generic]]:
    with np.load(path, allow_pickle=False) as archive:
        return dict(archive)


def infer(model: bytes, images: NDArray[np.generic]) -> dict[str, NDArray[np.generic]]:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, {INPUT: images}), strict=True))


def tapped(path: Path) -> bytes:
    """The model with every node's output as an output of its own."""
    model = onnx.load(path)
    known = {output.name for output in model.graph.output}
    produced = [name for node in model.graph.node for name in node.output]
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in produced if name not in known)
    content: bytes = model.SerializeToString()
    return content


def dequantized(stages: Path, stage: str) -> Logits:
    signature = json.loads((stages / f"{stage}.signature.json").read_text())["outputs"][LOGITS]
    logits = arrays(stages / f"{stage}.npz")[LOGITS]
    assert logits.dtype == np.int8
    zero_point, scale = int(signature["zero_points"][0]), float(signature["scales"][0])
    values: Logits = (logits.astype(np.float64) - zero_point) * scale
    return values


def step(folder: Path) -> float:
    signature = json.loads((folder / "stages" / "quantized.signature.json").read_text())
    return float(signature["outputs"][LOGITS]["scales"][0])


def right_answers(logits: Logits) -> int:
    return int((logits.argmax(axis=1) == load("digits")["labels"]).sum())


def fed_program(fault: str | None) -> tuple[Program, Int8s]:
    recipe, digits = recipe_for(fault), load("digits")
    layers = fold(load_weights(), epsilon=recipe.fold_epsilon)
    program = compile_program(quantize(layers, pixels(digits["calibration"], recipe.calibration_gain)))
    return program, quantize_input(program, pixels(digits["evaluation"], recipe.evaluation_gain))


# ---- the criteria of the links, in miniature


def equivalent(reference: Logits, candidate: Logits, _step: float) -> bool:
    error = np.abs(candidate - reference).max(axis=0) / np.ptp(reference, axis=0)
    return bool(error.max() <= FLOAT_LIMIT) and right_answers(candidate) >= right_answers(reference)


def lossy(reference: Logits, candidate: Logits, _step: float) -> bool:
    return right_answers(candidate) >= right_answers(reference) * (1 - SCORE_DROP)


def stepped(reference: Logits, candidate: Logits, one_step: float) -> bool:
    return bool(np.abs(candidate - reference).max() <= (STEPS + 0.5) * one_step)


def compiled(reference: Logits, candidate: Logits, _step: float) -> bool:
    return bool(np.array_equal(reference, candidate))


CRITERIA: tuple[Callable[[Logits, Logits, float], bool], ...] = (
    equivalent,
    equivalent,
    lossy,
    stepped,
    stepped,
    compiled,
)


def test_the_criteria_follow_the_chain() -> None:
    links = PTQ.links(STAGES)
    assert [link.name for link in links] == [f"{a}..{b}" for a, b in pairwise(STAGES)]
    assert [link.kind.value for link in links] == [criterion.__name__ for criterion in CRITERIA]


# ---- scores and links


@pytest.mark.parametrize("fault", SCORES)
def test_every_stage_has_its_known_score(outputs: Mapping[str | None, Mapping[str, Logits]], fault: str | None) -> None:
    assert tuple(right_answers(logits) for logits in outputs[fault].values()) == SCORES[fault]


@pytest.mark.parametrize("fault", SCORES)
def test_a_fault_breaks_its_own_link_and_no_other(
    projects: Mapping[str | None, Path], outputs: Mapping[str | None, Mapping[str, Logits]], fault: str | None
) -> None:
    logits = outputs[fault]
    broken = [
        candidate
        for (reference, candidate), holds in zip(pairwise(STAGES), CRITERIA, strict=True)
        if not holds(logits[reference], logits[candidate], step(projects[fault]))
    ]
    assert broken == ([] if fault is None else [FAULTS[fault].stage])


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_changes_nothing_before_its_stage_and_its_row_owns_the_link(
    outputs: Mapping[str | None, Mapping[str, Logits]], fault: str
) -> None:
    planted = FAULTS[fault]
    same = [stage for stage in STAGES if np.array_equal(outputs[fault][stage], outputs[HEALTHY][stage])]
    assert tuple(same) == STAGES[: STAGES.index(planted.stage)]
    link = next(link for link in PTQ.links(STAGES) if link.candidate == planted.stage)
    row = PTQ.check_of(link)
    assert row is not None
    assert row.slug == planted.check


def test_the_wrong_fold_is_far_above_the_limit_though_no_answer_changes(
    outputs: Mapping[str | None, Mapping[str, Logits]],
) -> None:
    logits = outputs["optimizer-fold"]
    error = np.abs(logits["optimized_float"] - logits["onnx"]).max(axis=0) / np.ptp(logits["onnx"], axis=0)
    assert error.max() > 100 * FLOAT_LIMIT
    assert np.array_equal(logits["optimized_float"].argmax(axis=1), logits["onnx"].argmax(axis=1))


def test_an_unknown_fault_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no fault gremlin; choose one of input-scale, .*board-scale"):
        build(tmp_path, "gremlin")
    assert list(tmp_path.iterdir()) == []


# ---- files


@pytest.mark.parametrize("fault", [HEALTHY, "input-scale", "board-scale"])
def test_a_build_is_the_same_bytes_again(
    projects: Mapping[str | None, Path], tmp_path: Path, fault: str | None
) -> None:
    build(tmp_path, fault)
    again = {str(path.relative_to(tmp_path)): path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert set(again) == PROJECT
    assert again == {name: (projects[fault] / name).read_bytes() for name in PROJECT}


def test_the_config_names_files_that_are_there(projects: Mapping[str | None, Path]) -> None:
    folder = projects[HEALTHY]
    subject = yaml.safe_load((folder / "driftgate.yaml").read_text())["subjects"]["digits"]
    artifacts = {
        stage: folder / (entry if isinstance(entry, str) else entry["path"])
        for stage, entry in subject["artifacts"].items()
    }
    assert tuple(artifacts) == STAGES
    assert all(path.is_file() for path in artifacts.values())
    samples = arrays(folder / subject["samples"]["raw"])[INPUT]
    assert samples.shape == (IMAGES, 1, 8, 8)
    assert samples.dtype == np.float32
    assert (samples.min(), samples.max()) == (0, 1)
    assert arrays(folder / subject["score"]["labels"])["labels"].shape == (IMAGES,)
    assert subject["score"]["baseline"] == {"top1": f"{SCORES[HEALTHY][0]}/{IMAGES}"}


def test_config_and_readme_say_that_the_last_stages_are_stand_ins(projects: Mapping[str | None, Path]) -> None:
    for name in ("driftgate.yaml", "README.md"):
        text = (projects[HEALTHY] / name).read_text().lower()
        assert "stand-in" in text
        assert "simulated" in text


def test_what_ships_is_small_and_listed() -> None:
    shipped = {path.name: len(path.read_bytes()) for path in (files("driftgate.demo") / "data").iterdir()}
    assert set(shipped) == {"README.md", "digits.npz", "driftgate.yaml", "pytorch.npz", "weights.npz"}
    assert sum(shipped.values()) < 450_000


def test_building_needs_numpy_and_onnx_only(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from driftgate.demo.build import build; build(Path(sys.argv[1]));"
        "print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    )
    result = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    loaded = set(result.stdout.split())
    assert {"numpy", "onnx"} <= loaded
    assert loaded.isdisjoint({"torch", "sklearn", "onnxruntime", "yaml", "click", "rich", "pydantic"})


# ---- networks


@pytest.mark.parametrize("name", ONNX_FILES)
def test_onnx_files_are_plain_onnx_with_a_free_batch(projects: Mapping[str | None, Path], name: str) -> None:
    path = projects[HEALTHY] / "stages" / f"{name}.onnx"
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    assert [(entry.domain, entry.version) for entry in model.opset_import] == [("", 19)]
    assert model.ir_version == 9
    images = arrays(projects[HEALTHY] / "data" / "eval.npz")[INPUT]
    together = infer(path.read_bytes(), images[:7])[LOGITS]
    alone = [infer(path.read_bytes(), images[index : index + 1])[LOGITS] for index in range(7)]
    assert np.allclose(together, np.concatenate(alone), atol=1e-5)


def test_the_exported_network_has_every_value_that_pytorch_had(projects: Mapping[str | None, Path]) -> None:
    recorded = load("pytorch")
    images = arrays(projects[HEALTHY] / "data" / "eval.npz")[INPUT]
    tensors = infer(tapped(projects[HEALTHY] / "stages" / "original.onnx"), images[:4])
    modules = [name.removeprefix("module.") for name in recorded if name.startswith("module.")]
    assert len(modules) == 14
    for module in modules:
        found = [name for name in tensors if name.startswith(f"/{module}/")] or [LOGITS]
        assert len(found) == 1
        assert np.allclose(tensors[found[0]], recorded[f"module.{module}"], rtol=0, atol=2e-5), module
    assert np.array_equal(recorded["module.fc"].shape, (4, 10))


@pytest.mark.parametrize(
    ("fault", "steps"),
    [(HEALTHY, 1), ("optimizer-fold", 2), ("calibration-range", 2), ("input-scale", 2)],  # 2: both addends are off by 1
)
def test_the_engine_is_within_a_step_or_two_of_the_int8_network_everywhere(
    projects: Mapping[str | None, Path], fault: str | None, steps: int
) -> None:
    program, images = fed_program(fault)
    engine = run(program, images)
    tensors = infer(
        tapped(projects[fault] / "stages" / "ptq.onnx"), arrays(projects[fault] / "data" / "eval.npz")[INPUT]
    )
    assert len(engine) == 8
    for name, integers in engine.items():
        difference = np.abs(integers.astype(int) - tensors[f"{name}_quantized"].astype(int))
        assert difference.max() <= steps, name
        assert name != LOGITS or difference.max() <= 1
        assert (difference > 0).mean() < 0.001, name


# ---- the board


def test_the_healthy_board_gives_what_the_engine_gives() -> None:
    program, images = fed_program(HEALTHY)
    dumped, computed = run_on_board(program, images), run(program, images)
    assert list(dumped) == list(computed)
    assert all(np.array_equal(dumped[name], computed[name]) for name in computed)


@pytest.mark.parametrize("shape", [(2, 1, 8, 8), (3, 10, 1, 1), (1, 16, 3, 5)])
def test_a_buffer_has_whole_rows_and_gives_the_tensor_back(shape: tuple[int, ...]) -> None:
    tensor = np.random.default_rng(0).integers(-128, 128, shape).astype(np.int8)
    buffer = pack(tensor)
    rows = buffer.reshape(shape[0], shape[2], -1)
    assert rows.shape[2] % ALIGNMENT == 0
    assert np.array_equal(rows[0, 0, : shape[1]].view(np.int8), tensor[0, :, 0, 0])
    assert np.array_equal(unpack(buffer, shape), tensor)


@pytest.mark.parametrize(("fault", "layer"), [("board-padding", 3), ("board-channels", 1), ("board-scale", 2)])
def test_a_board_fault_begins_at_its_layer(fault: str, layer: int) -> None:
    program, images = fed_program(fault)
    right, wrong = run(program, images), run(FAULTS[fault].recipe.compiled(program), images)
    differing = [entry.name for entry in LAYERS if not np.array_equal(right[entry.target], wrong[entry.target])]
    assert differing == [entry.name for entry in LAYERS[layer:]]
