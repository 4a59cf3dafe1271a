"""Every fault of the demo: a bundle that explains itself elsewhere, as facts and as evidence, and fails again there."""

from __future__ import annotations

from pathlib import Path

import pytest

from driftgate.demo.build import build
from driftgate.demo.faults import FAULTS
from driftgate.storage.bundle import open_bundle
from support.commandline import call, process
from support.handed import hand_on

#: Fault → its cause, and whether its evidence folder alone tells it, without the models and with them. A board's
#: padding, channels and scale are recordings: their layers are in the folder, and no model needs to be.
CAUSES = {
    "input-scale": ("input-scale-255", False, True),
    "optimizer-fold": ("bn-fold-error", False, True),
    "calibration-range": ("calibration-not-representative", False, True),
    "board-padding": ("device-op-error", True, True),
    "board-channels": ("device-op-error", True, True),
    "board-scale": ("device-op-error", True, True),
}


def test_every_fault_is_here() -> None:
    assert CAUSES.keys() == FAULTS.keys()


@pytest.mark.parametrize("fault", CAUSES)
def test_a_bundle_explains_itself_alone_in_an_empty_folder(fault: str, tmp_path: Path) -> None:
    assert call("check", "-c", f"demo:{fault}", "--out", tmp_path / "out").code == 1
    said = hand_on(tmp_path / "out", tmp_path / "handed")
    assert said["findings"][0]["code"] == CAUSES[fault][0]

    alone = process("explain", "bundle.zip", "--json", folder=tmp_path / "handed")
    assert (alone.code, alone.json["findings"][0]["code"]) == (1, CAUSES[fault][0])


@pytest.mark.parametrize("models", [False, True], ids=["confidential", "with models"])
@pytest.mark.parametrize("fault", CAUSES)
def test_the_evidence_folder_is_looked_into_anew(fault: str, models: bool, tmp_path: Path) -> None:
    """Nothing of the judgement is in it: the same cause is found once more, or, without the models, no other one."""
    arguments = ["--include-models"] if models else []
    assert call("check", "-c", f"demo:{fault}", "--out", tmp_path / "out", *arguments).code == 1
    with open_bundle(tmp_path / "out" / "bundle.zip") as bundle:
        bundle.unpack(tmp_path / "x", below="digits/J6M/link/")
    found = call("explain", tmp_path / "x" / "digits" / "J6M" / "link", "--json").json
    cause, without, with_models = CAUSES[fault]
    confirmed = [entry["code"] for entry in found["findings"] if entry["confirmed"]]
    if with_models if models else without:
        assert found["findings"][0]["code"] == cause
    else:
        assert set(confirmed) <= {cause}
    assert found["verdict"] != "PASS"


@pytest.mark.parametrize("fault", CAUSES)
def test_a_bundle_with_models_fails_again_and_a_mended_network_does_not(fault: str, tmp_path: Path) -> None:
    assert call("check", "-c", f"demo:{fault}", "--out", tmp_path / "out").code == 1
    (tmp_path / "handed").mkdir()
    bundle = (tmp_path / "out" / "bundle.zip").rename(tmp_path / "handed" / "bundle.zip")
    again = call("replay", bundle, "-c", tmp_path / "out" / "project" / "driftgate.yaml", "--json")
    assert (again.code, again.json["outcome"]) == (1, "still-fails")
    assert all("to the bit" in note for note in again.json["links"][0]["notes"][:2])

    healthy = build(tmp_path / "healthy")
    mended = call("replay", bundle, "-c", healthy, "--json")
    if fault == "input-scale":  # what is wrong is the sample, which is in the bundle
        assert mended.json["outcome"] == "still-fails"
    elif fault == "calibration-range":  # the score of all samples failed; these few have none
        assert (mended.code, mended.json["outcome"]) == (2, "unknown")
    else:
        assert (mended.code, mended.json["outcome"]) == (0, "passes"), mended.json
