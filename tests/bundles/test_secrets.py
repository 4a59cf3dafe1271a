"""Secrets planted wherever a project may have them, and looked for in every byte that any verb leaves or says."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import re
import shutil
import sys
import zipfile
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, BinaryIO

import onnx
import pytest
import yaml

from driftgate.masking.masks import Mask
from support.chains import Chain
from support.commandline import Answer, call, process
from support.models import tiny
from support.project import Project, biased, two_stages, whole_chain
from support.vendor.models import interpreter

Places = dict[str, bytes]

# --- what is planted

HOST, NUMBERS, JUMP = "board4711kx.rack.example", "10.99.88.77", "gate5150qv.rack.example"
PROXY = "proxy6262hj.rack.example"
TOKEN = "tOk/+81kdQ92wXpL4u&=="
PIP = "pip%2F88Kd02mZvRq"
KEY = ("b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQ", "Zq0Vd8LwT1xkY3mRf7NpJ5uHs2BcGi9oEa4QyW6vKt")
LONG = "".join(f"L{number:03}g" for number in range(80))
#: What the job has in its environment.
ENVIRONMENT = {
    "MY_TOKEN": TOKEN,
    "J6_PASSWORD": "boardPw77Lq;x",
    "PIP_INDEX_URL": f"https://ci:{PIP}@pypi.example/simple",
    "DEPLOY_KEY": "\n".join(("-----BEGIN OPENSSH PRIVATE KEY-----", *KEY, "-----END OPENSSH PRIVATE KEY-----", "")),
    "SERVICE_CREDENTIALS": LONG,
    "MODEL_API_KEY": "modelKey55Wc83Tz",
    "J6_HOST": "root@hidden17ab.rack.example:2222",
    "J6_ADDRESS": "hidden17ab.rack.example",
    "J6_JUMP": "203.0.113.45",
}
#: What stands in files of the project and in no variable.
IN_COMMENT = "ghp_c0mmentAbCdEfGh1JkLmN0pQrStUvWxYz12"
IN_LOG, IN_LOG_HEADER, IN_LOG_ADDRESS = "logPass91Vn", "logBearer37Tk82Wq", "198.51.100.23"
IN_YAML, IN_QUANT = "glpat-yaml7Kd93Lm20Xc41Zp8", "hf_quantAbCdEfGhIjKlMnOpQrStUv"


def in_base64(value: str) -> str:
    """As a program writes a secret that it sends."""
    return re.escape(base64.b64encode(value.encode()).decode().rstrip("="))


IN_MODEL = "key in a model"
#: Secret → what betrays it, however else it is escaped.
NEEDLES: Mapping[str, str] = {
    "token": "81kdQ92wXpL4u",
    "token in base64": in_base64(TOKEN),
    "password of the boards": "boardPw77Lq",
    "password of the boards in base64": in_base64(ENVIRONMENT["J6_PASSWORD"]),
    "password of an address": "88Kd02mZvRq",
    "first line of a key": KEY[0],
    "last line of a key": KEY[1],
    "piece of a long secret": r"(?:L\d{3}g){4}",
    IN_MODEL: ENVIRONMENT["MODEL_API_KEY"],
    "host": "board4711kx",
    "address": re.escape(NUMBERS),
    "jump host": "gate5150qv",
    "host of a proxy command": "proxy6262hj",
    "host in a variable": "hidden17ab",
    "jump host in a variable": re.escape(ENVIRONMENT["J6_JUMP"]),
    "token in a comment": IN_COMMENT,
    "password in the log": IN_LOG,
    "header in the log": IN_LOG_HEADER,
    "address in the log": re.escape(IN_LOG_ADDRESS),
    "token in hb_compile's YAML": re.escape(IN_YAML),
    "token in the quant_config": IN_QUANT,
}
#: Those that the worker says, and the post-processing most of them; the others stand in files.
SPOKEN = (
    "token",
    "token in base64",
    "password of the boards",
    "password of the boards in base64",
    "password of an address",
    "first line of a key",
    "last line of a key",
    "piece of a long secret",
    "host",
    "address",
    "jump host",
    "host of a proxy command",
    "host in a variable",
    "jump host in a variable",
)
TOLD = f"""
import base64, os, sys
from urllib.parse import quote, unquote

told = os.environ
token, password = told["MY_TOKEN"], told["J6_PASSWORD"]

def in_base64(text):
    return base64.b64encode(text.encode()).decode()

WORDS = [
    f"401 for {{token}} at {{told['J6_ADDRESS']}} through {{told['J6_JUMP']}}",
    f"sent {{quote(token, safe='')}}, {{in_base64(token)}} and {{in_base64(password)}} for {{password}}",
    f"index {{told['PIP_INDEX_URL']}}, that is {{unquote('{PIP}')}}",
    "known are {HOST}, {NUMBERS}, {JUMP} and {PROXY}",
]
"""
DIES = f"""{TOLD}
print(*WORDS, told["DEPLOY_KEY"], told["SERVICE_CREDENTIALS"], sep="\\n", file=sys.stderr, flush=True)
sys.exit(3)
"""
RAISES = f"""{TOLD}
def post(outputs):
    raise RuntimeError(" / ".join(WORDS))
"""
BOARDS = {
    "lab": {
        "hosts": [f"root@{HOST}:2200", NUMBERS, "${J6_HOST}"],
        "password": "${J6_PASSWORD}",
        "jump": {"host": f"me@{JUMP}"},
    },
    "far": {
        "hosts": ["${J6_ADDRESS}"],
        "jump": {"host": "${J6_JUMP}"},
        "proxy-command": ["ssh", "-W", "%h:%p", PROXY],
    },
}


def planted(root: Path) -> Path:
    """The configuration of a project with all of them: a chain of the vendor's with a stale .bc, ONNX files that
    differ, one that ONNX Runtime refuses, a worker that dies and a post-processing that raises."""
    (root / "dies.py").write_text(DIES)
    (root / "post.py").write_text(RAISES)
    pair = whole_chain(made(root / "pair"), count=4)
    pair.onnx("optimized.onnx", holding(biased(0.3), ENVIRONMENT["MODEL_API_KEY"]))
    refused = two_stages(made(root / "refused"))
    refused.artifacts["optimized_float"] = refused.onnx("odd.onnx", odd(TOKEN))
    dies = two_stages(made(root / "dies"))
    dies.artifacts["pytorch"] = worker(root)
    raises = whole_chain(made(root / "raises"), count=4)
    raises.subject["score"]["postprocess"] = {"function": "post:post", "search-path": ["."]}
    projects = {"pair": pair, "refused": refused, "dies": dies, "raises": raises}
    document = {
        "version": 1,
        "defaults": {"hbruntime": {"python": interpreter(), "timeout": 60}},
        "boards": BOARDS,
        "subjects": {"net": built(root), **{name: below(one.subject, one.root) for name, one in projects.items()}},
    }
    told = f"# fetched with {IN_COMMENT}\n{yaml.safe_dump(document, sort_keys=False)}"
    return Project(root).text(told)


def made(folder: Path) -> Path:
    """A new folder."""
    folder.mkdir()
    return folder


def worker(root: Path) -> dict[str, Any]:
    """An artifact whose interpreter says on stderr whatever it knows, and ends."""
    return {"backend": "torch", "load": "net:load", "python": [sys.executable, str(root / "dies.py")]}


def built(root: Path) -> dict[str, Any]:
    """The chain, of whose files many tell something."""
    chain = Chain(root, ("J6M",)).made()
    other = chain.build("J6M", seed=5, folder="other")
    shutil.copy(other / "net_quantized_model.bc", chain.output() / "net_quantized_model.bc")
    ptq = chain.output() / "net_ptq_model.onnx"
    onnx.save(holding(onnx.load(str(ptq)), ENVIRONMENT["MODEL_API_KEY"]), str(ptq))
    folder = chain.output().parent
    said = f"login: password={IN_LOG}\nAuthorization: Bearer {IN_LOG_HEADER}\nlicence from {IN_LOG_ADDRESS}\n"
    for log in folder.rglob("hb_compile.log"):
        log.write_text(log.read_text("utf-8") + said, "utf-8")
    document = yaml.safe_load((folder / "net.yaml").read_text("utf-8"))
    document["calibration_parameters"]["quant_config"] = "quant.json"
    (folder / "net.yaml").write_text(f"# by {IN_YAML}\n{yaml.safe_dump(document, sort_keys=False)}", "utf-8")
    (folder / "quant.json").write_text(json.dumps({"model_config": {"comment": IN_QUANT}}))
    return chain.subject


def holding(model: onnx.ModelProto, secret: str) -> onnx.ModelProto:
    """A model whose exporter wrote down more than it should have."""
    model.doc_string = f"exported with {secret}"
    onnx.helper.set_model_props(model, {"key": secret})
    for node in model.graph.node:
        node.doc_string = f"see https://models.example/?by={secret}"
    return model


def odd(name: str) -> onnx.ModelProto:
    """A model that ONNX Runtime refuses, with words about a node of that name."""
    model = tiny()
    model.graph.node[0].op_type = "Conv"
    model.graph.node[0].name = name
    return model


def below(value: Any, folder: Path) -> Any:
    """A configuration with its files looked for in a folder below its own."""
    if isinstance(value, dict):
        return {key: below(item, folder) for key, item in value.items()}
    is_file = isinstance(value, str) and (folder / value).is_file()
    return f"{folder.name}/{value}" if is_file else value


# --- what is looked through


def contents(path: Path) -> Places:
    """Every file below a path by where it stands, and every member of every archive."""
    files = [path] if path.is_file() else sorted(file for file in path.rglob("*") if file.is_file())
    found: Places = {}
    for file in files:
        place = path.name if file == path else f"{path.name}/{file.relative_to(path).as_posix()}"
        found |= dict(members(place, file.read_bytes()))
    return found


def members(place: str, content: bytes) -> Iterator[tuple[str, bytes]]:
    """The bytes as they lie there, and what is packed in them."""
    yield place, content
    if zipfile.is_zipfile(io.BytesIO(content)):
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            for name in archive.namelist():
                yield from members(f"{place}/{name}", archive.read(name))


def said(verb: str, answer: Answer) -> Places:
    """What a verb printed."""
    return {f"{verb}, stdout": answer.out.encode(), f"{verb}, stderr": answer.err.encode()}


def betraying(places: Places, secret: str) -> list[str]:
    """Where a secret can be read."""
    needle = re.compile(NEEDLES[secret].encode(), re.I)
    return [place for place, content in places.items() if needle.search(content)]


#: What makes a bundle of a check, and one more.
WISH = ("--bundle", "always", "--include-models", "--full-bundle")
#: Bundles that verbs are asked for beside those of their folders.
BUNDLES = ("full.zip", "json.zip", "again.zip", "again-full.zip", "report.zip")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the project."""
    root = tmp_path_factory.mktemp("secrets")
    planted(root)
    return root


def as_it_is(mask: Mask, value: Any) -> Any:
    """Stands in for a mask."""
    return value


def held_by_nothing(mask: Mask, stream: BinaryIO) -> bool:
    """Stands in for a look into a file."""
    return False


@pytest.fixture(scope="module")
def shown(project: Path) -> Places:
    """All that a check leaves and says where nothing is masked."""
    out, full = project / "unmasked", project / "unmasked.zip"
    with pytest.MonkeyPatch.context() as patch:
        for name, value in ENVIRONMENT.items():
            patch.setenv(name, value)
        for name in ("text", "value", "facts"):
            patch.setattr(Mask, name, as_it_is)
        patch.setattr(Mask, "is_held_by", held_by_nothing)
        answer = call("check", "-c", project / "driftgate.yaml", "--out", out, *WISH, full)
    assert answer.code == 1, answer.out + answer.err
    return {**contents(out), **contents(full), **said("check", answer)}


def ran(*arguments: str | Path) -> Answer:
    """A verb as a process of its own, in a job that has secrets."""
    answer = process(*arguments, environment=ENVIRONMENT)
    assert "internal error" not in answer.err
    return answer


@pytest.fixture(scope="module")
def left(project: Path) -> Places:
    """All that verbs leave and say: a check for people, one for programs, and what is done with a bundle afterwards."""
    config, out = project / "driftgate.yaml", project / "out"
    full, as_json, again, more, reported = (project / name for name in BUNDLES)
    checks: dict[str, tuple[str | Path, ...]] = {
        "check": ("check", "-c", config, "--out", out, *WISH, full),
        "check --json": ("check", "-c", config, "--out", project / "json", "--json", *WISH, as_json),
    }
    rest: dict[str, tuple[str | Path, ...]] = {
        "bundle": ("bundle", out, "-c", config, "--out", again, *WISH[2:], more),
        "explain": ("explain", out / "bundle.zip"),
        "explain --json": ("explain", out, "--json"),
        "report": ("report", out / "bundle.zip", "-c", config, "--out", project / "report", *WISH, reported),
        "replay": ("replay", out / "bundle.zip"),
        "replay -c": ("replay", full, "-c", config, "--json"),
    }
    found: Places = {}
    with ThreadPoolExecutor() as pool:
        for verbs in (checks, rest):
            answers = dict(zip(verbs, pool.map(lambda words: ran(*words), verbs.values()), strict=True))
            for name, answer in answers.items():
                assert answer.code == (0 if name == "bundle" else 1), answer.err
                found |= said(name, answer)
    for name in ("out", "json", "report", *BUNDLES):
        found |= contents(project / name)
    return found


# --- what must not be found

REPORTS = ("results.json", "summary.md", "comment.md", "junit.xml", "driftgate.log")
LOG, COMPILE, QUANT = (f"bundle.zip/net/J6M/vendor/{name}" for name in ("hb_compile.log", "net.yaml", "quant.json"))
SAID_BY_A_WORKER = (*REPORTS, *(f"bundle.zip/{name}" for name in REPORTS))
#: Secret → where it is to be read in the folder of a check that masks nothing.
REACHED: Mapping[str, tuple[str, ...]] = {
    "token": (
        *SAID_BY_A_WORKER,
        "annotations.json",
        "bundle.zip/README.md",
        "bundle.zip/refused/J6M/link/load_error.txt",
    ),
    "token in base64": SAID_BY_A_WORKER,
    "password of the boards": SAID_BY_A_WORKER,
    "password of the boards in base64": SAID_BY_A_WORKER,
    "password of an address": SAID_BY_A_WORKER,
    "first line of a key": SAID_BY_A_WORKER,
    "last line of a key": SAID_BY_A_WORKER,
    "piece of a long secret": SAID_BY_A_WORKER,
    IN_MODEL: (
        "bundle.zip/net/J6M/link/model_a.onnx",
        "bundle.zip/pair/J6M/link/model_b.onnx",
        "bundle.zip/pair/J6M/repro/repro.onnx",
    ),
    "host": (*SAID_BY_A_WORKER, "bundle.zip/driftgate.yaml"),
    "address": (*SAID_BY_A_WORKER, "bundle.zip/driftgate.yaml"),
    "jump host": (*SAID_BY_A_WORKER, "bundle.zip/driftgate.yaml"),
    "host of a proxy command": (*SAID_BY_A_WORKER, "bundle.zip/driftgate.yaml"),
    "host in a variable": (*SAID_BY_A_WORKER, "annotations.json", "bundle.zip/README.zh-CN.md"),
    "jump host in a variable": (*SAID_BY_A_WORKER, "annotations.json"),
    "token in a comment": ("bundle.zip/driftgate.yaml",),
    "password in the log": (LOG,),
    "header in the log": (LOG,),
    "address in the log": (LOG,),
    "token in hb_compile's YAML": (COMPILE,),
    "token in the quant_config": (QUANT,),
}


@pytest.mark.parametrize("secret", NEEDLES)
def test_a_check_that_masks_nothing_shows_each_secret_where_it_is_planted(secret: str, shown: Places) -> None:
    found = betraying(shown, secret)
    assert {f"unmasked/{place}" for place in REACHED[secret]} <= set(found)
    assert any(place.startswith("unmasked.zip/") for place in found)
    assert ("check, stdout" in found) is (secret in SPOKEN)


@pytest.mark.parametrize("secret", NEEDLES)
def test_no_byte_that_any_verb_leaves_or_says_shows_a_secret(secret: str, left: Places) -> None:
    """A repro beside the reports is the user's own model, written for this machine: what stood in it stands in it."""
    own = re.compile(r"(?:out|json)/repro/")
    assert [place for place in betraying(left, secret) if secret != IN_MODEL or not own.match(place)] == []


def test_nothing_vanishes_because_it_is_masked(shown: Places, left: Places) -> None:
    """Every file that a check leaves without a mask is there with one, but for models that hold a secret."""
    masked = {place.removeprefix("out/") for place in left if place.startswith("out/")}
    unmasked = {place.removeprefix("unmasked/") for place in shown if place.startswith("unmasked/")}
    assert unmasked - masked == {f"bundle.zip/{path}" for path in HELD_BACK}
    assert masked <= unmasked


# --- what becomes of the files

#: Models that a secret of the environment stands in.
HELD_BACK = {
    "net/J6M/link/model_a.onnx",
    "pair/J6M/link/model_b.onnx",
    "pair/J6M/repro/model_b.onnx",
    "pair/J6M/repro/repro.onnx",
    "refused/J6M/link/model_b.onnx",
}


@pytest.mark.parametrize("bundle", ["out/bundle.zip", "json/bundle.zip", "full.zip", "again.zip", "again-full.zip"])
def test_a_model_that_holds_a_secret_is_kept_back_also_where_models_are_included(bundle: str, left: Places) -> None:
    manifest = json.loads(left[f"{bundle}/MANIFEST.json"])
    withheld = {one["path"]: one for one in manifest["withheld"]}
    assert manifest["models_included"] is True
    assert {path for path, one in withheld.items() if one["reason"]["code"] == "bundle-holds-secret"} == HELD_BACK
    assert all(one["bytes"] and one["sha256"] for one in withheld.values())
    there = {one["path"] for one in manifest["files"]}
    assert there.isdisjoint(HELD_BACK)
    assert {"pair/J6M/link/model_a.onnx", "refused/J6M/link/model_a.onnx"} <= there


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        (LOG, ("login: password=***", "Authorization: Bearer ***", "licence from (address)")),
        (COMPILE, ("# by ***",)),
        (
            "bundle.zip/driftgate.yaml",
            ("# fetched with ***", "  - root@lab:2200", "  - lab", "    password: ${J6_PASSWORD}"),
        ),
    ],
    ids=["hb_compile.log", "hb_compile's YAML", "driftgate.yaml"],
)
def test_texts_are_in_a_bundle_without_what_they_told(name: str, lines: tuple[str, ...], left: Places) -> None:
    told = left[f"out/{name}"].decode().splitlines()
    assert [line for line in lines if line.strip() not in {one.strip() for one in told}] == []


def test_of_a_text_that_was_changed_the_manifest_has_the_hash_of_the_original(project: Path, left: Places) -> None:
    listed = {one["path"]: one for one in json.loads(left["out/bundle.zip/MANIFEST.json"])["files"]}
    folder = project / "build_J6M"
    for name, original in ((COMPILE, folder / "net.yaml"), (QUANT, folder / "quant.json")):
        entry = listed[name.removeprefix("bundle.zip/")]
        assert entry["source"] == hashlib.sha256(original.read_bytes()).hexdigest()
        assert entry["sha256"] == hashlib.sha256(left[f"out/{name}"]).hexdigest() != entry["source"]


@pytest.mark.parametrize("name", [*REPORTS, "bundle.zip/refused/J6M/link/load_error.txt"])
def test_what_a_worker_said_is_there_but_for_the_secrets(name: str, left: Places) -> None:
    told = left[f"out/{name}"].decode()
    assert "***" in told or "\\*\\*\\*" in told
    assert name not in REPORTS or "401 for" in told


# --- other verbs


#: What the tests above are about, in every output alike.
OTHERWISE = ("piece of a long secret", "host of a proxy command")


def spoken(places: Places, *but: str) -> dict[str, list[str]]:
    """Which of the secrets that the worker says can be read where."""
    found = {secret: betraying(places, secret) for secret in SPOKEN if secret not in but}
    return {secret: where for secret, where in found.items() if where}


def test_a_verbose_check_says_no_secret_either(project: Path, tmp_path: Path) -> None:
    words = ("--subject", "dies", "--no-nodes", "--bundle", "never", "--verbose")
    answer = ran("check", "-c", project / "driftgate.yaml", "--out", tmp_path, *words)
    assert "401 for" in answer.err
    assert spoken(said("check", answer), *OTHERWISE) == {}


def test_a_shard_shows_no_secret(project: Path, tmp_path: Path) -> None:
    config = project / "driftgate.yaml"
    with pytest.MonkeyPatch.context() as patch:
        for name, value in ENVIRONMENT.items():
            patch.setenv(name, value)
        planned = call("plan", "-c", config, "--subject", "dies", "--json").json
    (leg,) = planned["subjects"][0]["legs"]
    answer = ran("run", "-c", config, "--leg", leg["id"], "--out", tmp_path)
    assert b"401 for" in (tmp_path / "results.json").read_bytes()
    assert spoken({**contents(tmp_path), **said("run", answer)}, *OTHERWISE) == {}


def test_what_an_interpreter_says_to_the_doctor_is_masked(project: Path) -> None:
    document = yaml.safe_load((project / "driftgate.yaml").read_text("utf-8"))
    document["subjects"] = {"dies": document["subjects"]["dies"]}
    del document["boards"]  # it would try to reach them
    config = project / "doctor.yaml"
    config.write_text(yaml.safe_dump(document), "utf-8")
    answer = ran("doctor", "-c", config)
    assert "ended with exit code 3" in answer.out
    assert betraying(said("doctor", answer), "last line of a key") == []


@pytest.mark.parametrize(
    "pool",
    [{"transport": "local", "hosts": [HOST]}, {"hosts": [f"{HOST} "]}, {"hosts": [HOST], "folder": "relative"}],
    ids=["local", "blank", "folder"],
)
def test_an_address_in_a_configuration_that_is_refused_is_not_repeated(pool: dict[str, Any], tmp_path: Path) -> None:
    project = two_stages(tmp_path)
    answer = call("check", "-c", project.write(boards={"lab": pool}), "--out", tmp_path / "out")
    assert answer.code == 2
    assert "boards.lab" in answer.err
    assert betraying(said("check", answer), "host") == []
