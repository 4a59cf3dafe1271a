"""driftgate.yaml: every problem at once, each with its line, what was found, what was wanted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator

from driftgate.demo.build import build
from driftgate.domain.judgement import Limit, LimitOrigin
from driftgate.errors import ConfigError
from driftgate.settings.load import config_schema, load
from support.project import two_stages, whole_chain

HEAD = """\
version: 1
subjects:
  net:
    artifacts: {pytorch: pytorch.npz, onnx: net.onnx}
    samples: {raw: eval.npz}
"""


def problems(folder: Path, text: str) -> list[tuple[int, str]]:
    """Line and code of each problem with a configuration beside which the files of two stages lie."""
    project = two_stages(folder)
    with pytest.raises(ConfigError) as caught:
        load(project.text(text))
    found = []
    for problem in caught.value.problems:
        line = problem.get("line")
        assert line is None or f":{line}: " in str(ConfigError(problem))
        found.append((int(str(line or 0)), problem.code))
    return found


def sentences(folder: Path, text: str) -> str:
    """What is said about a configuration."""
    project = two_stages(folder)
    with pytest.raises(ConfigError) as caught:
        load(project.text(text))
    return str(caught.value)


def test_shorthand_names_the_backend_by_the_ending(tmp_path: Path) -> None:
    project = two_stages(tmp_path)
    (tmp_path / "recording").mkdir()
    (tmp_path / "script.pt").touch()
    project.artifacts.update(calibrated={"path": "net.onnx", "level": "all"}, ptq="recording", hbm="script.pt")
    artifacts = load(project.write()).settings.subjects["net"].artifacts
    assert {stage: artifact.backend for stage, artifact in artifacts.items()} == {
        "pytorch": "recorded",
        "onnx": "onnxruntime",
        "calibrated": "onnxruntime",
        "ptq": "recorded",
        "hbm": "torch",
    }


def test_everything_that_is_wrong_is_said_at_once_in_the_order_of_the_file(tmp_path: Path) -> None:
    text = """\
version: 2
defaults: {threads: many, platform: J7}
subjects:
  net:
    artifacts:
      pytorch: {backend: torch}
      onnx: {path: net.onnx, level: fast, treads: 3}
      hbm: not-there.npz
    samples: {raw: eval.npz, origin: fake, block: 0}
    sampels: 1
    frobnicate: 1
policies:
  strict: {float-int8: {score-drop: lots, cosin: 1}, require: some}
"""
    assert problems(tmp_path, text) == [
        (1, "config-wrong-value"),
        (2, "config-refused-value"),
        (2, "config-wrong-value"),
        (6, "config-refused-value"),
        (7, "config-unknown-key-near"),
        (7, "config-wrong-value"),
        (9, "config-wrong-value"),
        (9, "config-wrong-value"),
        (10, "config-unknown-key-near"),
        (11, "config-unknown-key"),
        (13, "config-unknown-key-near"),
        (13, "config-wrong-value"),
        (13, "config-wrong-value"),
    ]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("    sampels: {}", "6: subjects.net has the unknown key sampels; did you mean samples?"),
        ("polices: {}", "6: driftgate.yaml has the unknown key polices; did you mean policies?"),
        ("    custom_ops: []", "6: subjects.net has the unknown key custom_ops; did you mean custom-ops?"),
        ("    inputs: 3", "6: subjects.net.inputs is 3; wanted: keys with values"),
        ("    platform: J7", '6: subjects.net.platform is "J7": not a platform; known: J6B'),
        ("    custom-ops: lib.so", '6: subjects.net.custom-ops is "lib.so"; wanted: a list'),
        ("defaults: {threads: 1.5}", "6: defaults.threads is 1.5; wanted: a whole number"),
        ("policies: {p: {require: some}}", "6: policies.p.require is \"some\"; wanted: 'all', or a list"),
        ("policies: {p: {bc-hbm: {cosine: .nan}}}", "6: policies.p.bc-hbm.cosine is NaN; wanted: a number"),
        (
            "policies: {p: {hbm: {fps: 9}}}",
            '6: policies.p is {"hbm": {"fps": 9}}: hbm.fps: speed and memory are limited',
        ),
        (
            "policies: {p: {board: {fps: 5%}}}",
            '6: policies.p is {"board": {"fps": "5%"}}: board.fps is a number of frames',
        ),
        (
            "policies: {p: {board: {latency: 1}}}",
            "6: policies.p.board has the unknown key latency; did you mean latency-ms?",
        ),
        ("policies: {p: {bc-hbm: {cosin: 1}}}", "6: policies.p.bc-hbm has the unknown key cosin; did you mean cosine?"),
    ],
)
def test_a_problem_says_where_what_was_found_and_what_was_wanted(tmp_path: Path, line: str, said: str) -> None:
    assert f"driftgate.yaml:{said}" in sentences(tmp_path, f"{HEAD}{line}\n")


def test_missing_keys_are_named_where_they_are_missing(tmp_path: Path) -> None:
    text = "version: 1\nsubjects:\n  net:\n    artifacts: {onnx: net.onnx}\n"
    assert "driftgate.yaml:3: subjects.net lacks the key samples" in sentences(tmp_path, text)


def test_missing_files_are_named_together_even_beside_an_unknown_key(tmp_path: Path) -> None:
    text = """\
version: 1
subjects:
  net:
    sampels: {}
    artifacts:
      pytorch: a/pytorch.npz
      onnx: {path: net2.onnx, custom-ops: [o.so]}
      hbm: {backend: torch, load: "a:b", weights: w.pth, search-path: [s]}
    samples:
      manifest: m.json
      raw: eval2.npz
      runtime: rt
    score: {task: classification, labels: l.csv}
    custom-ops: [lib.so]
"""
    lines = sentences(tmp_path, text).splitlines()
    names = ["a/pytorch.npz", "net2.onnx", "o.so", "w.pth", "s", "m.json", "eval2.npz", "rt", "l.csv", "lib.so"]
    absent = [(int(line.split(":")[1]), line) for line in lines[1:]]
    assert [number for number, _ in absent] == [6, 7, 7, 8, 8, 10, 11, 12, 13, 14]
    for (_, line), name in zip(absent, names, strict=True):
        assert f": {name} is not there" in line


def test_a_wrong_value_is_not_counted_as_absent_too(tmp_path: Path) -> None:
    assert problems(tmp_path, HEAD.replace("eval.npz", "[eval.npz]")) == [(5, "config-wrong-value")]


def test_names_that_point_nowhere(tmp_path: Path) -> None:
    text = """\
version: 1
subjects:
  net:
    artifacts:
      pytorch: pytorch.npz
      onnxx: net.onnx
      hbm: {backend: ssh, path: eval.npz}
    outputs: {y: {permute: {hmb: [1, 0]}}}
    samples: {raw: eval.npz}
  other: {chain: nope, artifacts: {onnx: net.onnx}, samples: {raw: eval.npz}}
policies:
  a: {float-int88: {cosine: 1}}
  b: {onnx..pytorch: {cosine: 1}}
  c: {onnx..: {cosine: 1}}
  d: {require: [boarrd]}
  e: {extends: nobody}
  f: {extends: g}
  g: {extends: f}
"""
    assert problems(tmp_path, text) == [
        (6, "config-unknown-name"),
        (7, "config-unknown-name"),
        (8, "config-unknown-name"),
        (10, "config-unknown-name"),
        (12, "config-unknown-name"),
        (13, "config-unknown-name"),
        (14, "config-unknown-name"),
        (15, "config-unknown-name"),
        (16, "config-extends"),
        (17, "config-extends"),
        (18, "config-extends"),
    ]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", (0, "config-not-mapping")),
        ("- a\n", (0, "config-not-mapping")),
        ("a: [1\n", (2, "config-no-yaml")),
        ("a:\n\t- b\n", (2, "config-no-yaml")),
        ('a: 1\nb: "\x01"\n', (2, "config-no-yaml")),
        ("a: !!python/name:os.system x\n", (1, "config-no-yaml")),
        ("a: &a [*a]\n", (0, "config-nested")),
        ("version: 1\nsubjects: {}\n", (2, "config-wrong-value")),
        ("version: 1\nsubjects: {net: }\n", (2, "config-wrong-value")),
        (f"{HEAD}    samples: {{raw: eval.npz}}\n", (6, "config-key-twice")),
        (HEAD.replace("raw: eval.npz", ""), (5, "config-no-samples")),
    ],
)
def test_a_file_that_is_no_configuration(tmp_path: Path, text: str, found: tuple[int, str]) -> None:
    assert problems(tmp_path, text) == [found]


def test_aliases_that_make_a_small_file_a_huge_one(tmp_path: Path) -> None:
    rows = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    rows += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    assert problems(tmp_path, "\n".join(rows)) == [(0, "config-nested")]


def test_a_file_that_is_not_there_or_not_text(tmp_path: Path) -> None:
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00")
    for name, code in (("absent.yaml", "config-absent"), (".", "config-absent"), ("binary.yaml", "config-encoding")):
        with pytest.raises(ConfigError) as caught:
            load(tmp_path / name)
        assert [problem.code for problem in caught.value.problems] == [code]


def test_what_a_merge_key_brings_may_be_overridden(tmp_path: Path) -> None:
    project = two_stages(tmp_path)
    text = HEAD.replace("samples: {raw", "samples: &samples {raw").replace("  net:", "  net: &net")
    config = load(project.text(f"{text}  other:\n    <<: *net\n    samples: {{<<: *samples, block: 4}}\n"))
    subjects = config.settings.subjects
    assert (subjects["net"].samples.block, subjects["other"].samples.block) == (16, 4)
    assert subjects["net"].artifacts == subjects["other"].artifacts


def test_paths_start_from_the_configurations_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = two_stages(tmp_path / "project")
    project.write()
    monkeypatch.chdir(tmp_path)
    config = load(Path("project/driftgate.yaml"))
    made = (
        config.settings.subjects["net"].artifacts["onnx"].artifact("onnx", root=config.root, threads=3, custom_ops=())
    )
    assert (made.path, made.options["threads"]) == (tmp_path / "project" / "net.onnx", 3)


def test_a_policy_adds_to_the_one_it_extends(tmp_path: Path) -> None:
    project = whole_chain(tmp_path)
    project.write(
        policies={
            "base": {"float-int8": {"score-drop": "1%", "cosine": 0.9}, "require": ["baseline"]},
            "strict": {"extends": "base", "float-int8": {"cosine": 0.99}, "pytorch..onnx": {"range": 1e-6}},
            "all": {"extends": "strict", "require": "all"},
        }
    )
    config = load(project.config)
    strict = config.policy("strict", "net")
    assert dict(strict.limits) == {
        "float-int8": (Limit("score-drop", 0.01, LimitOrigin.POLICY), Limit("cosine", 0.99, LimitOrigin.POLICY)),
        "pytorch..onnx": (Limit("range", 1e-6, LimitOrigin.POLICY),),
    }
    assert strict.required == ("baseline",)
    assert config.policy("all", "net").required == tuple(check.slug for check in config.chain("net").checks)
    assert config.policy(None, "net").required is None


@pytest.mark.parametrize(
    ("chain", "said"),
    [
        ({"stages": [{"name": "a"}, {"name": "a", "kind": "exact"}]}, "a stage stands twice"),
        ({"stages": [{"name": "a", "kind": "exact"}, {"name": "b", "kind": "exact"}]}, "a is the first stage"),
        ({"stages": [{"name": "a"}, {"name": "b"}]}, "kind is missing at b"),
        ({"stages": [{"name": "a"}, {"name": "b", "kind": "loose"}]}, "wanted: 'exact', 'compiled'"),
        ({"stages": [{"name": "a"}]}, "wanted: 2 or more entries"),
        ({"checks": [{"slug": "x", "title": "X", "stages": ["c"]}]}, "stages that the chain has not: c"),
        ({"checks": [{"slug": "x", "title": "X", "stages": ["a"]}]}, "exactly one check of kind links: b"),
        ({"checks": [{"slug": "Not a slug", "title": "X", "stages": ["b"]}]}, "wanted: a text of the form"),
    ],
)
def test_a_chain_of_ones_own_must_be_sound(tmp_path: Path, chain: dict[str, object], said: str) -> None:
    sound = {
        "stages": [{"name": "a"}, {"name": "b", "kind": "exact"}],
        "checks": [{"slug": "x", "title": "X", "stages": ["b"]}],
    }
    project = two_stages(tmp_path)
    with pytest.raises(ConfigError) as caught:
        load(project.write(chains={"own": {**sound, **chain}}))
    assert said in str(caught.value)


def valid(document: object) -> list[str]:
    return [error.message for error in Draft202012Validator(config_schema()).iter_errors(document)]


def test_the_schema_takes_what_driftgate_takes(tmp_path: Path) -> None:
    build(tmp_path / "demo")
    assert valid(yaml.safe_load((tmp_path / "demo" / "driftgate.yaml").read_text("utf-8"))) == []
    project = whole_chain(tmp_path / "own")
    project.subject |= {
        "inputs": {"x": "input", "z": ["a", "b"]},
        "outputs": {"y": "y2", "q": None, "r": ["s"], "t": {"names": ["u"], "permute": {"hbm": [0, 1]}}},
        "platform": "J6P",
        "state": {"h": "h_in"},
    }
    project.artifacts["onnx"] = {"path": "net.onnx", "custom-ops": [], "threads": 1}
    project.subject["score"]["baseline"] = {"top1": 0.99}
    board = {"latency-ms": 15, "latency-rise": "5%", "fps": 60.5, "memory-mib": 64, "score-drop": "1%"}
    limits = {"bc-hbm": {"decimals": 5, "score-drop": "1%"}, "board": board}
    policies = {"p": {**limits, "require": "all", "uncertainty": "fail"}}
    document = yaml.safe_load(project.write(policies=policies).read_text("utf-8"))
    load(project.config)
    assert valid(document) == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"version": 2},
        {"sampels": 1},
        {"policies": {"p": {"bc-hbm": {"cosin": 1}}}},
        {"policies": {"p": {"bc-hbm": {"cosine": "high"}}}},
        {"policies": {"p": {"bc-hbm": {"latency-ms": 15}}}},
        {"policies": {"p": {"board": {"latency-ms": "5%"}}}},
        {"policies": {"p": {"board": {"latency": 15}}}},
        {"defaults": {"threads": 0}},
        {"subjects": {}},
        {"subjects": {"net": {"artifacts": {"onnx": {"backend": "onnxruntime", "path": "a", "l": 1}}, "samples": {}}}},
    ],
)
def test_the_schema_refuses_what_driftgate_refuses(tmp_path: Path, wrong: dict[str, object]) -> None:
    project = two_stages(tmp_path)
    document = json.loads(json.dumps(yaml.safe_load(project.write().read_text("utf-8")) | wrong))
    project.text(yaml.safe_dump(document))
    with pytest.raises(ConfigError):
        load(project.config)
    assert valid(document)
