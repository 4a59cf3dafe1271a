"""What the vendor asks for, by the stage that fails: complete where the build is there, and else how to get it."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from driftgate.domain.bundles import BundledLink, BundleManifest, Role, Status
from driftgate.domain.chain import CHAINS
from driftgate.storage.bundle import open_bundle
from driftgate.vendor.checklists import CHECKLISTS, TUNING, Kind
from support.chains import Chain
from support.commandline import call

INCLUDED, WITHHELD, MISSING = Status.INCLUDED, Status.WITHHELD, Status.MISSING
OPTIMIZED, PTQ, QUANTIZED, HBM = "optimized_float", "ptq", "quantized", "hbm"
FILES = {
    "original_float": "net_original_float_model.onnx",
    OPTIMIZED: "net_optimized_float_model.onnx",
    "calibrated": "net_calibrated_model.onnx",
    PTQ: "net_ptq_model.onnx",
    QUANTIZED: "net_quantized_model.bc",
    HBM: "net.hbm",
}

#: The vendor's own table (联系地平线时应保留的产物): failing candidate → entries.
LISTS = {
    OPTIMIZED: [("keep-model", "original_float"), ("keep-model", OPTIMIZED), ("keep-log", ""), ("keep-input", "")],
    PTQ: [
        *(("keep-model", stage) for stage in ("original_float", OPTIMIZED, "calibrated", PTQ)),
        ("keep-log", ""),
        ("keep-input", ""),
    ],
    QUANTIZED: [
        *(("keep-model", stage) for stage in (PTQ, QUANTIZED)),
        ("keep-quant-config", ""),
        ("keep-log", ""),
        ("keep-input", ""),
        ("keep-runtime-input", ""),
    ],
    HBM: [
        *(("keep-model", stage) for stage in (QUANTIZED, HBM)),
        ("keep-quant-config", ""),
        ("keep-log", ""),
        ("keep-infer-output", ""),
        ("keep-board-output", ""),
        ("keep-input", ""),
        ("keep-board-input", ""),
    ],
}
#: Of the simulated .hbm nobody has these.
ELSEWHERE = {"keep-infer-output", "keep-board-output"}
OF_TOOLS = {"keep-model", "keep-log", "keep-quant-config"}


def broken(folder: Path, stage: str) -> Chain:
    """A chain in which one stage is that of another network."""
    chain = Chain(folder, ("J6M",)).made()
    other = chain.build("J6M", seed=5, folder="other")
    shutil.copy(other / FILES[stage], chain.output() / FILES[stage])
    chain.check(code=1)
    return chain


def manifest_of(chain: Chain, *arguments: str) -> BundleManifest:
    """The manifest of a bundle that is written anew."""
    path = chain.root / "again.zip"
    told = call("bundle", chain.root / "out", "-c", chain.root / "driftgate.yaml", "--out", path, *arguments)
    assert told.code == 0, told.out + told.err
    with open_bundle(path) as bundle:
        return bundle.manifest


def entries(link: BundledLink) -> list[tuple[str, str]]:
    return [(one.what.code, str(one.what.get("stage") or "")) for one in link.wanted]


@pytest.mark.parametrize("stage", LISTS)
def test_the_list_is_the_vendors_and_says_of_each_file_where_it_is(stage: str, tmp_path: Path) -> None:
    chain = broken(tmp_path, stage)
    kept_back = manifest_of(chain)
    (link,) = kept_back.links
    assert entries(link) == LISTS[stage]
    for one in link.wanted:
        wanted = WITHHELD if one.what.code in OF_TOOLS else MISSING if one.what.code in ELSEWHERE else INCLUDED
        assert one.status is wanted, one
        assert (one.how is None) == (wanted is INCLUDED)
        assert bool(one.paths) == (wanted is not MISSING)
    there = {file.path for file in kept_back.files}
    hashes = {one.path: one.sha256 for one in kept_back.withheld}
    for one in link.wanted:
        assert set(one.paths) <= (there if one.status is INCLUDED else hashes.keys())
        assert all(hashes[path] for path in one.paths if one.status is WITHHELD)
    assert {file.role for file in kept_back.files}.isdisjoint({Role.MODEL, Role.VENDOR_FILE, Role.REPRO})

    whole = manifest_of(chain, "--include-models")
    (link,) = whole.links
    assert entries(link) == LISTS[stage]
    for one in link.wanted:
        assert one.status is (MISSING if one.what.code in ELSEWHERE else INCLUDED), one
    sources = {file.path: file.source or file.sha256 for file in whole.files}
    assert {path: sources[path] for path in hashes if path in sources} == hashes, "the same files, as they were"


@pytest.mark.parametrize("stage", LISTS)
def test_what_is_missing_says_how_to_get_it(stage: str, tmp_path: Path) -> None:
    """Stages named one by one, without the folder of the build."""
    chain = broken(tmp_path, stage)
    given = {name: str(chain.output() / file) for name, file in FILES.items()}
    del chain.artifacts["build"]
    chain.artifacts.update({name: path for name, path in given.items() if name not in ("original_float", "calibrated")})
    chain.check(code=1)
    (link,) = manifest_of(chain).links
    status = {(one.what.code, str(one.what.get("stage") or "")): (one.status, one.how) for one in link.wanted}
    lost = [
        key
        for key in status
        if key[0] in ("keep-log", "keep-quant-config") or key[1] in ("original_float", "calibrated")
    ]
    assert lost
    for key in lost:
        found, how = status[key]
        assert found is MISSING
        assert how is not None
        assert how.code == f"keep-how-{key[0].removeprefix('keep-')}"
    readme = tmp_path / "README.md"
    with open_bundle(chain.root / "again.zip") as bundle:
        bundle.unpack(tmp_path, below="README.md")
    assert "hb\\_compile writes it where it is started" in readme.read_text("utf-8")


def test_the_files_are_what_the_stages_were_fed(tmp_path: Path) -> None:
    chain = broken(tmp_path, HBM)
    manifest_of(chain)
    with open_bundle(tmp_path / "again.zip") as bundle:
        bundle.unpack(tmp_path / "x", below="net/J6M/")
    vendor = tmp_path / "x" / "net" / "J6M" / "vendor"
    (sample,) = np.load(tmp_path / "eval.npz")["image"][:1]
    fed = np.load(vendor / "input_0_image.npy")
    eval_set = np.load(tmp_path / "eval.npz")["image"]
    assert any(np.array_equal(fed, one[None]) for one in eval_set)
    assert fed.shape == (1, *sample.shape)
    planes = sorted(file.name for file in vendor.glob("board_input_*"))
    assert planes == ["board_input_0_image_y.npy", "board_input_1_image_uv.npy"]
    assert np.load(vendor / planes[0]).dtype == np.uint8


def test_for_what_is_not_its_own_the_vendor_wants_nothing() -> None:
    stages = {stage.name for chain in CHAINS.values() for stage in chain.stages}
    assert CHECKLISTS.keys() | set(TUNING) | {"pytorch", "onnx", "original_float", "qat_export", "qat_bc"} == stages
    assert not CHECKLISTS.keys() & set(TUNING)
    assert all(stage in stages for keep in CHECKLISTS.values() for one in keep for stage in one.stages)
    assert all(bool(one.stages) == (one.kind is Kind.MODEL) for keep in CHECKLISTS.values() for one in keep)


@pytest.mark.parametrize(("fault", "code"), [("input-scale", "keep-nothing"), ("calibration-range", "keep-tuning")])
def test_where_it_wants_nothing_that_is_said(fault: str, code: str, tmp_path: Path) -> None:
    assert call("check", "-c", f"demo:{fault}", "--out", tmp_path / "out").code == 1
    with open_bundle(tmp_path / "out" / "bundle.zip") as bundle:
        (link,) = bundle.manifest.links
    assert (link.wanted, [note.code for note in link.notes]) == ((), [code])
