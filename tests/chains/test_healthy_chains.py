"""Whole chains that are as they should be, through the vendor's tools (STAND-INs): every row asked for passes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.chains import SIZE, Chain, confirmed, only, outcomes

ASKED = ("onnx-optimized", "float-int8", "bc-hbm")


@pytest.mark.parametrize(
    ("target", "rt", "options"),
    [
        ("J6M", "featuremap", {}),
        ("J6M", "featuremap", {"remove": ("Quantize", "Dequantize")}),
        ("J6M", "nv12", {"remove": ("Dequantize",)}),
        ("J6P", "nv12", {}),
        ("J6P", "bgr", {}),
        ("J6E", "yuv444", {}),
    ],
    ids=lambda value: "-".join(value.get("remove", ["whole"])) if isinstance(value, dict) else str(value),
)
def test_all_stages_simulated(target: str, rt: str, options: dict[str, Any], tmp_path: Path) -> None:
    chain = Chain(tmp_path, (target,), rt).made(**options)
    results = chain.check(code=0)
    judgement = only(results)
    assert {outcomes(judgement)[slug] for slug in ASKED} == {"passed"}
    (facts,) = results.facts
    stages = {run.stage for run in facts.runs}
    assert ("quantized_removed" in stages) == ("remove" in options)
    assert facts.told("artifact", "march-fits", "hbm") == 1
    assert facts.told("log", "finished") == 1
    assert confirmed(judgement) == set()


@pytest.mark.parametrize("flags", [{}, {"remove_padding_process": "true"}], ids=["padded", "stripped"])
@pytest.mark.parametrize(
    ("target", "rt", "options"),
    [
        ("J6P", "nv12", {}),
        ("J6M", "nv12", {"remove": ("Dequantize",)}),
        ("J6M", "featuremap", {"remove": ("Dequantize",), "output_no_padding": True}),
    ],
    ids=["J6P", "J6M-removed", "J6M-no-padding"],
)
def test_outputs_of_the_board_as_it_dumps_them(
    target: str, rt: str, options: dict[str, Any], flags: dict[str, str], tmp_path: Path
) -> None:
    chain = Chain(tmp_path, (target,), rt).made(**options)
    chain.on_the_board(chain.feeds(), **flags)
    sizes = {path.stat().st_size for path in (tmp_path / "dumps").rglob("model_infer_output_0_*.bin")}
    valid = 6 * (SIZE // 2) ** 2 * 4
    assert len(sizes) == 1
    assert (sizes.pop() > valid) == (not flags and not options.get("output_no_padding"))
    judgement = only(chain.check(code=0))
    assert outcomes(judgement)["bc-hbm"] == "passed"


def test_two_targets_share_what_comes_before_quantisation(tmp_path: Path) -> None:
    chain = Chain(tmp_path, ("J6M", "J6P")).made()
    results = chain.check(code=0)
    assert [judgement.target for judgement in results.judgements or ()] == ["J6M", "J6P"]
    for judgement in results.judgements or ():
        assert {outcomes(judgement)[slug] for slug in ASKED} == {"passed"}
    runs = [{run.stage: run.id for run in facts.runs} for facts in results.facts]
    shared = {stage for stage in runs[0] if runs[0][stage] == runs[1][stage]}
    assert {"onnx", "original_float", "optimized_float"} <= shared
    assert "hbm" not in shared


def test_the_stages_of_quantisation_aware_training(tmp_path: Path) -> None:
    """qat.bc (before convert), quantized.bc, the one with the camera's input, and the .hbm."""
    chain = Chain(tmp_path, ("J6M",), "featuremap").made(debug=True, remove=("Dequantize",))
    camera = Chain(tmp_path, ("J6M",), "nv12").made(folder="camera", remove=("Dequantize",))
    camera.subject["artifacts"] = {
        "qat_bc": str(chain.output() / "net_ptq_model.bc"),
        "quantized": str(chain.output() / "net_quantized_model.bc"),
        "nv12_quantized": "camera/model_output/net_quantized_model.bc",
        "quantized_removed": "camera/model_output/net_quantized_removed_model.bc",
        "hbm": "camera/model_output/net.hbm",
    }
    camera.subject["chain"] = "qat"
    results = camera.check(code=0)
    found = outcomes(only(results))
    assert {found["qat-quantized"], found["bc-hbm"]} == {"passed"}
    assert results.facts[0].told("artifact", "phase", "qat_bc") == "float"
