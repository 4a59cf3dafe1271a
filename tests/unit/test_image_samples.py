"""One folder of images and one declaration as the raw and runtime samples of all stages, in a manifest."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from jsonschema import Draft202012Validator
from PIL import Image

from driftgate.domain.chain import FeedKind
from driftgate.errors import ConfigError, SampleError
from driftgate.settings.load import config_schema, load
from driftgate.settings.samples import SampleSettings
from driftgate.storage.imagefolder import image_files
from driftgate.storage.manifest import manifest_schema, read_listing, read_manifest
from driftgate.storage.sampledata import Order, SampleData, changes, ordered
from driftgate.storage.tensorfiles import open_source
from support.commandline import Answer, call
from support.images import folder, picture, save
from support.project import Project, two_stages

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
PREPROCESS: dict[str, Any] = {"size": [32, 48], "mean": MEAN, "std": STD}
SAMPLES = {"raw": "images", "preprocess": PREPROCESS, "manifest": "samples.json"}


def project(root: Path, **changes: Any) -> Project:
    """A project whose samples are three images; `changes` are further keys of `samples`."""
    made = two_stages(root)
    folder(root / "images")
    made.subject["samples"] = {**SAMPLES, **changes}
    made.write()
    return made


def samples(made: Project, *more: str | Path) -> Answer:
    return call("samples", "-c", made.config, *more)


def data(made: Project) -> SampleData:
    return load(made.config, for_samples=True).settings.subjects["net"].samples.data(made.root)


def manifest(made: Project) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((made.root / "samples.json").read_text("utf-8"))
    return found


# --- the feeds


def test_images_become_the_raw_samples_of_their_declaration(tmp_path: Path) -> None:
    read = data(project(tmp_path)).read("a")
    assert read[FeedKind.RUNTIME] is read[FeedKind.RAW]
    assert [*read[FeedKind.RAW]] == ["images"]
    tensor = read[FeedKind.RAW]["images"]
    assert tensor.shape == (1, 3, 32, 48)
    assert tensor.dtype == np.float32
    inside = Image.open(tmp_path / "images" / "a.png").resize((48, 24), Image.Resampling.BILINEAR)
    canvas = Image.new("RGB", (48, 32), (114, 114, 114))
    canvas.paste(inside, (0, 4))
    wanted = (np.asarray(canvas, np.float32) / 255 - np.array(MEAN)) / np.array(STD)
    assert np.allclose(tensor[0].transpose(1, 2, 0), wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("colour", ["rgb", "bgr", "gray", "yuv444", "nv12"])
def test_runtime_samples_are_the_same_images_as_8_bit_pixels(tmp_path: Path, colour: str) -> None:
    made = project(tmp_path, runtime={"from": "images", "as": colour})
    both = data(made)
    assert both.ids() == ("a", "b", "c")
    runtime = both.read("a")[FeedKind.RUNTIME]
    assert {tensor.dtype for tensor in runtime.values()} == {np.dtype(np.uint8)}
    shapes = {name: tensor.shape for name, tensor in runtime.items()}
    assert (
        shapes
        == {
            "rgb": {"images": (1, 32, 48, 3)},
            "bgr": {"images": (1, 32, 48, 3)},
            "yuv444": {"images": (1, 32, 48, 3)},
            "gray": {"images": (1, 1, 32, 48)},
            "nv12": {"images_y": (1, 32, 48, 1), "images_uv": (1, 16, 24, 2)},
        }[colour]
    )
    if colour in ("rgb", "bgr"):
        raw = both.read("a")[FeedKind.RAW]["images"][0].transpose(1, 2, 0)
        pixels = (raw * STD + MEAN) * 255
        step = 1 if colour == "rgb" else -1
        assert np.abs(runtime["images"][0][:, :, ::step] - pixels).max() < 1e-3


def test_a_runtime_feed_may_have_a_name_and_a_layout_of_its_own(tmp_path: Path) -> None:
    made = project(tmp_path, runtime={"from": "images", "as": "bgr", "layout": "NCHW", "feed": "data"})
    assert data(made).read("b")[FeedKind.RUNTIME]["data"].shape == (1, 3, 32, 48)


def test_feeds_never_share_memory(tmp_path: Path) -> None:
    both = data(project(tmp_path, runtime={"from": "images", "as": "rgb"}))
    both.read("a")[FeedKind.RUNTIME]["images"][:] = 0
    assert both.read("a")[FeedKind.RUNTIME]["images"].any()


def test_ids_are_paths_without_endings(tmp_path: Path) -> None:
    for name in ("b.v2.PNG", "a.png", "cat/1.png", "cat/old/1.png", ".hidden.png", ".trash/x.png"):
        save(tmp_path / name, picture(3, 3), format="PNG")
    (tmp_path / "notes.txt").write_text("no image")
    assert list(image_files(tmp_path)) == ["a", "b.v2", "cat__1", "cat__old__1"]
    save(tmp_path / "a.bmp", picture(3, 3))
    with pytest.raises(SampleError, match=r"the images a\.bmp, a\.png would have one sample id"):
        image_files(tmp_path)


# --- the manifest


def test_a_configuration_makes_its_manifest(tmp_path: Path) -> None:
    made = project(tmp_path, profiles={"pull-request": 2, "nightly": 3}, origin="calibration", block=2)
    found = samples(made)
    assert (found.code, found.err) == (0, "")
    assert "with 3 samples" in found.out
    assert "pull-request: the first 2" in found.out
    listing = read_listing(tmp_path / "samples.json")
    assert listing.samples == read_manifest(tmp_path / "samples.json")
    assert listing.samples == data(made).sample_set("images", origin=listing.samples.origin, block=2)
    assert listing.decoder is not None and listing.decoder.startswith("Pillow ")
    assert {name: (g.resized_width, g.resized_height, g.left, g.top) for name, g in listing.geometry.items()} == {
        "a": (48, 24, 0, 4),
        "b": (13, 32, 17, 0),
        "c": (48, 32, 0, 0),
    }
    assert {name: data(made).geometry(name) for name in "abc"} == dict(listing.geometry)
    Draft202012Validator(manifest_schema()).validate(manifest(made))
    assert samples(made, "--check").code == 0


def test_a_manifest_is_where_it_was_and_holds_no_path_of_the_machine(tmp_path: Path) -> None:
    made = project(tmp_path / "here", manifest="deep/down/samples.json")
    assert samples(made).code == 0
    text = (tmp_path / "here" / "deep" / "down" / "samples.json").read_text("utf-8")
    assert str(tmp_path) not in text
    assert '"../../images/a.png"' in text


def test_only_files_that_somebody_touched_are_read_again(tmp_path: Path) -> None:
    """Seen by a digest that nobody would compute."""
    made = project(tmp_path)
    assert samples(made).code == 0
    document = manifest(made)
    for entry in document["samples"]:
        entry["digest"] = f"not read: {entry['id']}"
    (tmp_path / "samples.json").write_text(json.dumps(document))
    os.utime(tmp_path / "images" / "b.png", ns=(1, 1))
    assert samples(made).code == 0
    digests = read_manifest(tmp_path / "samples.json").digests
    assert (digests[0], digests[2]) == ("not read: a", "not read: c")
    assert len(digests[1]) == 64


def test_trusting_looks_at_stamps_and_checking_at_everything(tmp_path: Path) -> None:
    made = project(tmp_path)
    assert samples(made).code == 0
    path = tmp_path / "images" / "b.png"
    listing = read_listing(tmp_path / "samples.json")

    def changed(*, trusting: bool) -> list[str]:
        found = changes(data(made), listing, "abc", manifest=tmp_path / "samples.json", trusting=trusting)
        return [str(problem.get("ids")) for problem in found]

    save(path, picture(20, 50, seed=9))
    assert changed(trusting=True) == ["('b',)"]
    assert changed(trusting=False) == ["('b',)"]
    assert "these samples are not what" in samples(made, "--check").err

    folder(tmp_path / "images")
    assert changed(trusting=True) == []

    save(path, picture(20, 50, seed=9))
    forged = {"images/b.png": (path.stat().st_size, path.stat().st_mtime_ns)}
    document = manifest(made)
    document["samples"][1]["files"] = forged
    (tmp_path / "samples.json").write_text(json.dumps(document))
    listing = read_listing(tmp_path / "samples.json")
    assert changed(trusting=True) == []
    assert changed(trusting=False) == ["('b',)"]
    assert "these samples are not what" in samples(made, "--check").err


def test_another_declaration_is_another_manifest(tmp_path: Path) -> None:
    made = project(tmp_path, runtime={"from": "images", "as": "rgb"})
    assert samples(made).code == 0
    made.subject["samples"]["preprocess"] = {**PREPROCESS, "colour": "bgr", "pad": 0}
    made.write()
    found = samples(made, "--check")
    assert found.code == 2
    assert "made with another preprocessing, fit.pad, raw.colour differ" in found.err
    digests = read_manifest(tmp_path / "samples.json").digests
    assert samples(made).code == 0
    assert not {*digests} & {*read_manifest(tmp_path / "samples.json").digests}
    assert samples(made, "--check").code == 0


def test_another_decoder_reads_everything_and_is_named_where_pixels_differ(tmp_path: Path) -> None:
    made = project(tmp_path)
    assert samples(made).code == 0
    document = manifest(made)
    document["decoder"] = "Pillow 1.0, libjpeg 6"
    (tmp_path / "samples.json").write_text(json.dumps(document))
    listing = read_listing(tmp_path / "samples.json")
    assert changes(data(made), listing, "abc", manifest=tmp_path / "samples.json", trusting=True) == ()
    document["samples"][0]["digest"] = "other pixels"
    (tmp_path / "samples.json").write_text(json.dumps(document))
    found = samples(made, "--check")
    assert found.code == 2
    assert "was made with Pillow 1.0, libjpeg 6, these images were read with Pillow " in found.err


def test_lost_and_added_images_are_named(tmp_path: Path) -> None:
    made = project(tmp_path)
    assert samples(made).code == 0
    (tmp_path / "images" / "a.png").rename(tmp_path / "images" / "z.png")
    found = samples(made, "--check")
    assert found.code == 2
    assert "are not in the data: a" in found.err
    assert ": z; make the manifest again" in found.err


def test_all_damaged_images_are_named_and_no_manifest_is_written(tmp_path: Path) -> None:
    made = project(tmp_path)
    (tmp_path / "images" / "a.png").write_bytes(b"nonsense")
    cut = (tmp_path / "images" / "c.png").read_bytes()
    (tmp_path / "images" / "c.png").write_bytes(cut[: len(cut) // 2])
    found = samples(made)
    assert found.code == 2
    assert [line.split("image ")[1].split(" cannot")[0] for line in found.err.splitlines()] == [
        str(tmp_path / "images" / name) for name in ("a.png", "c.png")
    ]
    assert not (tmp_path / "samples.json").exists()


def test_an_order_that_mixes_the_classes(tmp_path: Path) -> None:
    """Profiles are the first n: in the order of names these would be of one class only."""
    made = two_stages(tmp_path)
    for name in ("cat", "dog", "fox"):
        for number in range(4):
            save(tmp_path / "images" / name / f"{number}.png", picture(4, 4, seed=number))
    made.subject["samples"] = {**SAMPLES, "order": "spread", "profiles": {"quick": 5}}
    made.write()
    assert samples(made).code == 0
    ids = read_manifest(tmp_path / "samples.json").ids
    assert sorted(ids) == [f"{name}__{number}" for name in ("cat", "dog", "fox") for number in range(4)]
    assert len({sample[:3] for sample in ids[:5]}) > 1
    fewer = ordered([sample for sample in ids if sample != ids[3]], Order.SPREAD)
    assert fewer == tuple(sample for sample in ids if sample != ids[3])
    assert samples(made, "--check").code == 0


# --- the verb


def test_materialised_tensors_are_the_same_samples(tmp_path: Path) -> None:
    made = project(tmp_path, runtime={"from": "images", "as": "nv12"})
    assert samples(made, "--materialise", tmp_path / "tensors").code == 0
    listing = read_listing(tmp_path / "samples.json")
    stored = SampleData(open_source(tmp_path / "tensors" / "raw"), open_source(tmp_path / "tensors" / "runtime"))
    assert stored.sample_set("images", origin=listing.samples.origin, block=16) == listing.samples

    shutil.rmtree(tmp_path / "images")
    made.subject["samples"] |= {"raw": "tensors/raw", "runtime": "tensors/runtime"}
    made.write()
    assert samples(made, "--check").code == 0
    found = samples(made, "--materialise", tmp_path / "tensors")
    assert found.code == 2
    assert "is not empty" in found.err


def test_materialising_needs_no_manifest(tmp_path: Path) -> None:
    made = project(tmp_path)
    del made.subject["samples"]["manifest"]
    made.write()
    assert samples(made).code == 2
    assert samples(made, "--materialise", tmp_path / "tensors").code == 0
    assert {file.name for file in (tmp_path / "tensors" / "raw").iterdir()} == {"a.npz", "b.npz", "c.npz"}


def test_models_need_not_be_there_to_make_a_manifest(tmp_path: Path) -> None:
    made = project(tmp_path)
    for name in ("net.onnx", "pytorch.npz"):
        (tmp_path / name).unlink()
    assert samples(made).code == 0
    with pytest.raises(ConfigError, match=r"net\.onnx is not there"):
        load(made.config)


def test_subjects_share_a_manifest_where_they_share_the_samples(tmp_path: Path) -> None:
    made = project(tmp_path)
    more = {"profiles": {"quick": 1}}
    other = {**made.subject, "samples": {**SAMPLES, **more}}
    made.write(subjects={"one": made.subject, "two": other, "three": {**made.subject, "samples": {"raw": "eval.npz"}}})
    found = samples(made)
    assert (found.code, found.out.count("wrote")) == (0, 1)
    assert samples(made, "--subject", "two", "--check").code == 0
    assert "the subjects three name no manifest" in samples(made, "--subject", "three").err
    other["samples"]["preprocess"] = {**PREPROCESS, "filter": "area"}
    made.write(subjects={"one": made.subject, "two": other})
    assert "one and two name one manifest, samples.json, for different samples" in samples(made).err
    assert samples(made, "--subject", "two").code == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "give either RAW, or --config"),
        (("eval.npz", "-c", "driftgate.yaml"), "give either RAW, or --config"),
        (("eval.npz", "--subject", "net"), "--subject chooses from a configuration"),
        (("-c", "driftgate.yaml", "--block", "3", "--name", "x"), "--name, --block stand in the configuration"),
        (("-c", "driftgate.yaml", "--subject", "nett"), "nett"),
        (("-c", "driftgate.yaml", "--check"), "sample manifest samples.json cannot be read"),
    ],
)
def test_a_call_that_cannot_be_carried_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], said: str
) -> None:
    project(tmp_path)
    monkeypatch.chdir(tmp_path)
    found = call("samples", *arguments)
    assert found.code == 2
    assert said.replace("samples.json", str(tmp_path / "samples.json")) in found.err


def test_a_profile_larger_than_the_data(tmp_path: Path) -> None:
    found = samples(project(tmp_path, profiles={"nightly": 1000}))
    assert found.code == 2
    assert "nightly" in found.err


# --- the settings


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"size": None}, "size is missing"),
        ({"size": [640]}, "wanted [height, width]"),
        ({"size": [640, 0]}, "wanted: 1 or more"),
        ({"resize": "squash"}, "resize"),
        ({"shorter": 256}, "shorter is for resize: crop only"),
        ({"resize": "crop", "shorter": 40}, "shorter is 40, less than the size; wanted 48 or more"),
        ({"filter": "lanczos", "antialias": False}, "lanczos is with antialias: true only"),
        ({"pad": [1, 2]}, "pad has 2 numbers"),
        ({"pad": 256}, "pad"),
        ({"mean": [1, 2], "std": [1]}, "mean has 2 numbers; wanted one, or 3 for rgb"),
        ({"colour": "gray"}, "mean has 3 numbers; wanted one, or 1 for gray"),
        ({"std": 0}, "std is 0"),
        ({"dtype": "uint8", "range": "0-255"}, "dtype uint8 takes the pixels as they are"),
        ({"colour": "nv12"}, "colour"),
        ({"range": "0-2"}, "range"),
        ({"sise": [1, 1]}, "unknown key sise; did you mean size?"),
    ],
)
def test_a_declaration_that_cannot_be(tmp_path: Path, changes: Mapping[str, Any], said: str) -> None:
    made = project(tmp_path, preprocess={**PREPROCESS, **changes})
    with pytest.raises(ConfigError) as caught:
        load(made.config, for_samples=True)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"runtime": {"from": "images", "as": "nv21"}}, "as"),
        ({"runtime": {"from": "nowhere", "as": "rgb"}}, "nowhere is not there"),
        ({"runtime": {"from": "images", "as": "nv12", "layout": "NCHW"}}, "nv12 is NHWC"),
        ({"runtime": {"from": "images", "az": "rgb"}}, "unknown key az"),
        ({"runtime": {"from": "images", "as": "rgb"}, "preprocess": None}, "give preprocess"),
        ({"runtime": {"from": "images", "as": "nv12"}, "preprocess": {"size": [31, 48]}}, "nv12 needs an even height"),
    ],
)
def test_runtime_samples_that_cannot_be(tmp_path: Path, changes: Mapping[str, Any], said: str) -> None:
    made = project(tmp_path, **changes)
    with pytest.raises(ConfigError) as caught:
        load(made.config, for_samples=True)
    assert said in str(caught.value)


def test_images_need_a_declaration(tmp_path: Path) -> None:
    folder(tmp_path / "images")
    with pytest.raises(SampleError, match=r"give samples\.preprocess"):
        SampleSettings(raw=Path("images")).data(tmp_path)
    np.savez(tmp_path / "images" / "a.npz", x=np.ones(3))
    assert SampleSettings(raw=Path("images")).data(tmp_path).ids() == ("a",)
    both = SampleSettings.model_validate({"raw": "images", "preprocess": PREPROCESS})
    with pytest.raises(SampleError, match="has both images and tensors"):
        both.data(tmp_path)


def test_runtime_images_need_colours(tmp_path: Path) -> None:
    folder(tmp_path / "images")
    declared = SampleSettings.model_validate({"raw": "images", "runtime": "images", "preprocess": PREPROCESS})
    with pytest.raises(SampleError, match=r"runtime: \{from: images, as: rgb\}"):
        declared.data(tmp_path)


def test_the_schema_takes_declarations(tmp_path: Path) -> None:
    everything = {
        **PREPROCESS, "decoder": "pillow", "resize": "crop", "shorter": 50, "filter": "bicubic", "antialias": False,
        "pad": [1, 2, 3], "place": "corner", "colour": "bgr", "range": "-1-1", "layout": "NHWC", "dtype": "float32",
        "feed": "x",
    }  # fmt: skip
    made = project(tmp_path, preprocess=everything, order="spread", runtime={"from": "images", "as": "gray"})
    load(made.config, for_samples=True)
    schema = Draft202012Validator(config_schema())
    assert [error.message for error in schema.iter_errors(yaml.safe_load(made.config.read_text()))] == []
    wrong = yaml.safe_load(project(tmp_path, preprocess={**everything, "pad": 300}).config.read_text())
    assert not schema.is_valid(wrong)
