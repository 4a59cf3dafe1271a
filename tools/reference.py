"""Writes docs/reference and docs/zh/reference: every key of driftgate.yaml, and every code of a finding.

`python tools/reference.py` writes the four pages. With --check nothing is written: pages that are stale, and sentences
that tools/reference_zh.json lacks or has for nobody, are named, and the exit code is 1 where there are any.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from driftgate.domain.chain import CHAINS, LinkKind
from driftgate.domain.chain import Link as ChainLink
from driftgate.domain.judgement import Limit, Policy
from driftgate.domain.platforms import PLATFORMS
from driftgate.judgement.codes import CODES, Code, Segment, Verdict
from driftgate.judgement.criteria import CRITERIA, LIMIT_NAMES, PERFORMANCE
from driftgate.judgement.limits import Nature, output_limits, score_limit
from driftgate.messages.message import Message
from driftgate.messages.text import CHINESE_LANGUAGE, ENGLISH_LANGUAGE, in_language, text
from driftgate.scoring.tasks import TASKS
from driftgate.settings.artifacts import BY_SUFFIX

ROOT = Path(__file__).parents[1]
SCHEMA = ROOT / "schemas" / "config.schema.json"
TRANSLATIONS = Path(__file__).with_name("reference_zh.json")
#: Language → where its pages lie, below the root.
FOLDERS = {ENGLISH_LANGUAGE: "docs/reference", CHINESE_LANGUAGE: "docs/zh/reference"}
#: What the first line of each page says.
MADE = "<!-- Made by tools/reference.py; change the code or tools/reference_zh.json, not this page. -->"
NOTHING = "–"

Schema = Mapping[str, Any]
Extra = Callable[["Language"], Iterator[str]]


@dataclass(slots=True)
class Language:
    """What is said in one language; remembers what was asked for, and what it has no translation of."""

    code: str
    translations: Mapping[str, str] = field(default_factory=dict)
    asked: dict[str, None] = field(default_factory=dict)
    missing: dict[str, None] = field(default_factory=dict)

    def __call__(self, sentence: str, **parts: object) -> str:
        """A sentence of ours, filled in only where parts are given, since descriptions have braces of their own."""
        self.asked[sentence] = None
        told = sentence
        if self.code != ENGLISH_LANGUAGE:
            if sentence not in self.translations:
                self.missing[sentence] = None
            told = self.translations.get(sentence, sentence)
        return told.format(**parts) if parts else told

    def message(self, said: Message) -> str:
        """A sentence of the catalogue, ready for Markdown."""
        with in_language(self.code):
            return prose(text(said))


@dataclass(frozen=True, slots=True)
class Section:
    """A heading of the page on driftgate.yaml. `definition` is the schema's, empty for the file itself and None where
    there is none; `example` begins at the root of the file."""

    place: str
    level: int
    definition: str | None = None
    example: str = ""

    @property
    def heading(self) -> str:
        """As it stands on the page, without the language's own."""
        return f"`{self.place}`"


SECTIONS: tuple[Section, ...] = (
    Section(
        "driftgate.yaml",
        2,
        "",
        """
version: 1
subjects:
  net:
    artifacts: {onnx: net.onnx, hbm: {backend: recorded, path: recordings/board}}
    samples: {raw: data/raw}
""",
    ),
    Section("defaults", 2, "Defaults", "defaults: {chain: ptq, platform: J6P, threads: 1, board: lab}"),
    Section(
        "defaults.hbruntime",
        3,
        "HbRuntimeDefaults",
        """
defaults:
  hbruntime: {python: [docker, run, --rm, -i, -v, /tmp:/tmp, openexplorer/ai_toolchain_ubuntu_22_j6_cpu:3.9.1, python3]}
""",
    ),
    Section("defaults.verifier", 3, "VerifierSettings", "defaults: {verifier: {command: [hb_verifier], digits: 5}}"),
    Section(
        "subjects.NAME",
        2,
        "SubjectSettings",
        """
subjects:
  net:
    targets: [J6M, J6P]
    artifacts: {onnx: net.onnx, build: {from: "model_output_{target}"}}
    inputs: {images: [input, data]}
    outputs: {boxes: [output0, "1023"], debug: null}
    samples: {raw: data/raw}
    badcases: ["0017"]
""",
    ),
    Section("subjects.NAME.artifacts", 3),
    Section(
        "backend: onnxruntime",
        4,
        "OnnxRuntimeArtifact",
        "subjects: {net: {artifacts: {calibrated: {path: net_calibrated_model.onnx, threads: 2}}}}",
    ),
    Section(
        "backend: recorded",
        4,
        "RecordedArtifact",
        "subjects: {net: {artifacts: {hbm: {backend: recorded, path: dumps, model-info: model_info.log}}}}",
    ),
    Section(
        "backend: torch",
        4,
        "TorchArtifact",
        """
subjects:
  net:
    artifacts:
      pytorch: {python: [/opt/train/bin/python], load: "models.net:load", weights: net.pth}
""",
    ),
    Section(
        "backend: hbruntime",
        4,
        "HbRuntimeArtifact",
        "subjects: {net: {artifacts: {quantized: {path: net_quantized_model.bc, python: [/opt/oe/bin/python]}}}}",
    ),
    Section("backend: board", 4, "BoardArtifact", "subjects: {net: {artifacts: {hbm: {path: net.hbm, board: lab}}}}"),
    Section(
        "backend: hbm_infer",
        4,
        "HbmInferArtifact",
        "subjects: {net: {artifacts: {hbm: {backend: hbm_infer, path: net.hbm, board: lab}}}}",
    ),
    Section(
        "backend: hbm_runtime",
        4,
        "HbmRuntimeArtifact",
        "subjects: {net: {artifacts: {hbm: {backend: hbm_runtime, path: net.hbm, core: 0}}}}",
    ),
    Section("backend: OTHER", 4, "OtherArtifact"),
    Section(
        "subjects.NAME.build",
        3,
        "BuildSettings",
        'subjects: {net: {artifacts: {build: {from: "model_output_{target}", prefix: net}}}}',
    ),
    Section(
        "subjects.NAME.outputs.OUTPUT",
        3,
        "OutputSettings",
        "subjects: {net: {outputs: {boxes: {names: [output0], permute: {hbm: [0, 3, 1, 2]}}}}}",
    ),
    Section(
        "subjects.NAME.samples",
        3,
        "SampleSettings",
        """
subjects:
  net:
    samples:
      raw: data/raw
      runtime: data/runtime
      manifest: data/samples.json
      order: spread
      profiles: {pull-request: 32, nightly: 1000}
""",
    ),
    Section(
        "subjects.NAME.samples.preprocess",
        4,
        "PreprocessSettings",
        """
subjects:
  net:
    samples:
      raw: data/images
      preprocess: {size: [640, 640], resize: letterbox, pad: 114, colour: rgb, range: 0-1, layout: NCHW}
""",
    ),
    Section(
        "subjects.NAME.samples.runtime",
        4,
        "RuntimeImages",
        """
subjects:
  net:
    samples: {raw: data/images, preprocess: {size: 224}, runtime: {from: data/images, as: nv12}}
""",
    ),
    Section(
        "subjects.NAME.samples.declared.INPUT",
        4,
        "InputSettings",
        """
subjects:
  net:
    samples:
      raw: data/raw
      declared: {image: {train: rgb, rt: nv12, mean: [123.675, 116.28, 103.53], scale: [0.0171, 0.0175, 0.0174]}}
""",
    ),
    Section(
        "subjects.NAME.score",
        3,
        "ScoreSettings",
        "subjects: {net: {score: {task: classification, labels: data/labels.npz, baseline: {top1: 98.9%}}}}",
    ),
    Section(
        "subjects.NAME.score.labels",
        4,
        "LabelSettings",
        "subjects: {net: {score: {task: detection, labels: {path: data/coco.json, extra: ignore}}}}",
    ),
    Section(
        "subjects.NAME.score.postprocess",
        4,
        "PostprocessSettings",
        "subjects: {net: {score: {task: detection, labels: data/coco.json, postprocess: {ready: yolo, classes: 80}}}}",
    ),
    Section("subjects.NAME.speed", 3, "SpeedSettings", "subjects: {net: {speed: {latency-ms: 14.2, fps: 70}}}"),
    Section(
        "policies.NAME",
        2,
        "PolicySettings",
        """
policies:
  pull-request: {float-int8: {score-drop: 0.5%}}
  release:
    extends: pull-request
    require: all
    regressions: fail
    original_float..optimized_float: {range: 0.00001}
    board: {latency-ms: 15, fps-drop: 5%}
    accepts: [rounding-lsb]
""",
    ),
    Section(
        "policies.NAME.history",
        3,
        "HistorySettings",
        "policies: {release: {history: {runs: 50, score-drop: 0.5%, latency-rise: 5%}}}",
    ),
    Section(
        "waivers",
        2,
        "WaiverSettings",
        """
waivers:
  - subject: net
    link: optimized_float..calibrated
    limit: {score-drop: 2%}
    reason: "the calibration set is being remade"
    owner: quant-team
    expires: "2027-03-31"
""",
    ),
    Section(
        "boards.NAME",
        2,
        "BoardSettings",
        """
boards:
  lab: {hosts: ["${J6_HOST}"], march: nash-m, key: ~/.ssh/j6, environment: {LD_LIBRARY_PATH: /usr/hobot/lib}}
""",
    ),
    Section(
        "boards.NAME.jump",
        3,
        "JumpSettings",
        'boards: {lab: {hosts: [192.0.2.7], jump: {host: "${GATE}", key: ~/.ssh/gate}}}',
    ),
    Section(
        "boards.NAME.perf",
        3,
        "PerfSettings",
        "boards: {lab: {hosts: [192.0.2.7], perf: {runs: 5, frames: 500, threads: 2}}}",
    ),
    Section(
        "chains.NAME",
        2,
        "ChainSettings",
        """
chains:
  short:
    stages:
      - {name: pytorch}
      - {name: onnx, kind: equivalent}
      - {name: hbm, segment: 4, feeds: runtime, kind: lossy}
    checks:
      - {slug: baseline, title: Baseline, kind: baseline, stages: [pytorch]}
      - {slug: export, title: Export, stages: [onnx]}
      - {slug: chip, title: Chip, stages: [hbm]}
""",
    ),
    Section("chains.NAME.stages", 3, "StageSettings"),
    Section("chains.NAME.checks", 3, "CheckSettings"),
)

#: Definition and key → what the schema does not say of it.
UNTOLD: Mapping[tuple[str, str], str] = {
    ("", "version"): "of this format",
    ("", "policies"): "limits and what must be there, by the name that --policy takes",
    ("", "waivers"): "failures that are known: each with a reason, somebody who answers for it, and its last day",
    ("", "subjects"): "the networks under test, by name",
    ("", "boards"): "pools of boards, by name",
    ("", "chains"): "chains of your own, by name, beside ptq and qat",
    ("BoardSettings", "user"): "who logs in, where hosts do not say",
    ("ChainSettings", "stages"): "the stages in order",
    ("ChainSettings", "checks"): "the rows of the table in order",
    ("CheckSettings", "slug"): "its name in policies and outputs",
    ("CheckSettings", "title"): "its name in the table",
    ("CheckSettings", "kind"): "baseline: a declared score; links: stages held against those before them; regression: "
    "the score on the board against the float score",
    ("CheckSettings", "stages"): "candidates of its links; of other kinds, the stages whose score decides",
    ("Defaults", "chain"): "ptq, qat, or a name under `chains`",
    ("Defaults", "platform"): "one of the platforms below",
    ("OtherArtifact", "backend"): "the name that the package has registered",
    ("OtherArtifact", "path"): "the backend's file or folder",
    ("OutputSettings", "names"): "its names in other stages",
    ("PerfSettings", "frames"): "frames of each run",
    ("PerfSettings", "threads"): "`--thread_num` of the tool",
    ("ScoreSettings", "postprocess"): "what the outputs go through first; not for own",
    ("SpeedSettings", "latency-ms"): "milliseconds",
    ("SpeedSettings", "fps"): "frames a second",
    ("StageSettings", "name"): "its name under `artifacts`",
    ("StageSettings", "segment"): "which part of the way it belongs to: what a score loses is told by segment",
    ("StageSettings", "feeds"): "which samples it eats: raw for float models, runtime for the deployed one",
    ("StageSettings", "kind"): "what may differ from the stage before; the first has none",
    ("SubjectSettings", "chain"): "instead of defaults.chain",
    ("SubjectSettings", "platform"): "instead of defaults.platform",
    ("SubjectSettings", "samples"): "the data set that all stages share",
    ("SubjectSettings", "score"): "what tells whether a loss matters; without it tensors alone are compared",
}
BACKEND = "which backend runs it; needed where the ending of the path does not tell"

#: Definition and key → what a key of that mapping is; a name where nothing is said.
KEYS: Mapping[tuple[str, str], str] = {
    ("BoardSettings", "environment"): "variable",
    ("OutputSettings", "permute"): "stage",
    ("PolicySettings", "board"): "limit",
    ("SampleSettings", "calibration"): "input",
    ("SampleSettings", "declared"): "input",
    ("SampleSettings", "profiles"): "profile",
    ("ScoreSettings", "baseline"): "score",
    ("SubjectSettings", "artifacts"): "stage",
    ("SubjectSettings", "inputs"): "feed",
    ("SubjectSettings", "outputs"): "output",
    ("SubjectSettings", "state"): "output",
}

#: A pattern of the schema → what it says; another one must be added here.
PATTERNS: Mapping[str, str] = {
    "%$": "percentage",
    r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$": "`module:function`",
    r"^(\d+/[1-9]\d*|\d+(\.\d*)?%?)$": "percentage or fraction",
    "^[a-z0-9][a-z0-9-]*$": "lower-case letters, digits and hyphens",
}

#: Limit of a policy → what it is held against.
LIMITS: Mapping[str, str] = {
    "ulp": "largest difference, in ulp of float32 at the channel's peak",
    "range": "largest difference as a share of the channel's range",
    "decimals": "decimals that must agree; a difference within 4 ulp of the peak always does",
    "integers": "share of integers that differ",
    "lsb": "largest difference in steps of the tensor",
    "cosine": "cosine of the two tensors; never a verdict of its own",
    "centred-cosine": "cosine once the means are taken off",
    "bulk-cosine": "the same without the one outlier",
    "norm-ratio": "how many times longer the longer of the two is",
    "max-abs": "largest difference, in the tensor's unit",
    "sqnr": "signal to noise ratio, in dB",
    "dead-channels": "1 where a channel is constant that is not in the reference; 0 allows none",
    "score-drop": "loss of the score as a share of the reference's",
    "latency-ms": "median latency in milliseconds, a number",
    "fps": "frames a second, a number",
    "latency-rise": "rise over `speed.latency-ms`, as a share",
    "fps-drop": "drop below `speed.fps`, as a share",
    "memory-mib": "memory of the network on the board in MiB, a number",
}

#: What the links of a kind are.
LINK_KINDS: Mapping[LinkKind, str] = {
    LinkKind.EXACT: "nothing but the file changes",
    LinkKind.COMPILED: "another program with the same integers",
    LinkKind.EQUIVALENT: "another graph of the same value",
    LinkKind.STEPPED: "each tensor may be off by a few of its steps",
    LinkKind.LOSSY: "precision is given up",
}

SEGMENTS: Mapping[Segment, str] = {
    Segment.EXPORT: "PyTorch → ONNX: export, pre- and post-processing",
    Segment.OPTIMISE: "ONNX → optimized float: graph optimisation",
    Segment.QUANTISE: "Float → INT8: calibration and quantisation",
    Segment.BOARD: "Quantized → board: compilation, runtime, inputs and outputs on the board",
    Segment.EVIDENCE: "Evidence: what was collected or compared",
}

VERDICTS: Mapping[Verdict, str] = {
    Verdict.FAIL: "a fault, to be mended by whoever is named",
    Verdict.PASS: "a difference that is no fault",
    Verdict.ERROR: "nothing can be concluded before it is put right",
}


# --- Markdown


def prose(said: str) -> str:
    """A sentence for Markdown; what stands in code is left alone."""
    parts = said.split("`")
    return "`".join(re.sub(r"([<*])", r"\\\1", part) if at % 2 == 0 else part for at, part in enumerate(parts))


def row(*cells: str) -> str:
    """A row of a table."""
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"


def table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """A table with a line before it."""
    yield ""
    yield row(*titles)
    yield "|" + "---|" * len(titles)
    yield from (row(*cells) for cells in rows)


def slug(heading: str) -> str:
    """The anchor that GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def codes(names: Sequence[str]) -> str:
    """Names as code."""
    return ", ".join(f"`{name}`" for name in names)


def page(lines: Sequence[str]) -> str:
    """The page, its first line saying what made it."""
    return "\n".join((MADE, "", *lines)) + "\n"


def title(say: Language, name: str, file: str) -> Iterator[str]:
    """The heading of a page, and the way to the same page in the other language."""
    other = f"../../reference/{file}" if say.code == CHINESE_LANGUAGE else f"../zh/reference/{file}"
    yield f"# {say(name)}"
    yield ""
    yield f"[{'English' if say.code == CHINESE_LANGUAGE else '中文'}]({other})"
    yield ""


# --- types


class Kinds:
    """The schema's types in words."""

    def __init__(self, schema: Schema, say: Language) -> None:
        self._definitions: Schema = schema["$defs"]
        self._say = say
        self._headings = {section.definition: section.heading for section in SECTIONS if section.definition}

    def told(self, schema: Schema, *, key: str = "name") -> str:
        """What a value is; null stands for the absence of one and is not said."""
        parts = [self._one(part, key=key) for part in _alternatives(schema) if part.get("type") != "null"]
        told, *others = dict.fromkeys(parts)
        for other in others:
            told = self._say("{one} or {other}", one=told, other=other)
        return told

    def _one(self, schema: Schema, *, key: str) -> str:
        if "$ref" in schema:
            return self._reference(str(schema["$ref"]).rpartition("/")[2])
        if "const" in schema:
            return f"`{_shown(schema['const'])}`"
        if "enum" in schema:
            return codes([_shown(value) for value in schema["enum"]])
        kind = str(schema["type"])
        if kind == "array":
            return self._list(schema)
        if kind == "object":
            return self._mapping(schema, key)
        if kind == "boolean":
            return "`true`, `false`"
        if kind == "string":
            return self._text(schema)
        return f"{self._say(kind)} {_bounds(schema)}".strip()

    def _reference(self, name: str) -> str:
        definition = self._definitions[name]
        if "enum" in definition:
            return codes(definition["enum"])
        heading = self._headings[name]
        return f"[{heading}](#{slug(heading)})"

    def _text(self, schema: Schema) -> str:
        if "pattern" in schema:
            told = PATTERNS[schema["pattern"]]
            return told if told.startswith("`") else self._say(told)
        return self._say("path" if schema.get("format") == "path" else "text")

    def _list(self, schema: Schema) -> str:
        items = schema["prefixItems"][0] if "prefixItems" in schema else schema["items"]
        told = self.told(items)
        least, most = schema.get("minItems", 0), schema.get("maxItems")
        if least and least == most:
            return self._say("list ({count}) of: {items}", count=least, items=told)
        if least > 1:
            return self._say("list (at least {count}) of: {items}", count=least, items=told)
        return self._say("list of: {items}", items=told)

    def _mapping(self, schema: Schema, key: str) -> str:
        return f"{self._say(key)} → {self.told(schema['additionalProperties'])}"


def _alternatives(schema: Schema) -> Iterator[Schema]:
    """What may stand there, without nesting."""
    for word in ("anyOf", "oneOf"):
        if word in schema:
            for part in schema[word]:
                yield from _alternatives(part)
            return
    yield schema


def _bounds(schema: Schema) -> str:
    if "minimum" in schema and "maximum" in schema:
        return f"{_shown(schema['minimum'])} … {_shown(schema['maximum'])}"
    signs = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}
    return ", ".join(f"{sign} {_shown(schema[word])}" for word, sign in signs.items() if word in schema)


def _shown(value: object) -> str:
    """A value as it is written in YAML."""
    if isinstance(value, str):
        return value
    whole = int(value) if isinstance(value, float) and value.is_integer() else value
    return json.dumps(whole, ensure_ascii=False)


# --- driftgate.yaml


def published() -> dict[str, Any]:
    """The schema of the configuration as it is published: the same whatever version of a library makes it here."""
    found: dict[str, Any] = json.loads(SCHEMA.read_text("utf-8"))
    return found


def config_page(say: Language) -> str:
    """Every key, in the order of the file."""
    schema = published()
    kinds = Kinds(schema, say)
    lines = [*title(say, "driftgate.yaml: every key", "config.md")]
    lines += [
        say("Paths start from the folder of the file. Unknown keys are errors, and all problems are told at once."),
        say(
            "`driftgate schema config` prints the schema that this page is made of; {schema} is the same, for editors.",
            schema=f"[`config.schema.json`]({_up(say)}schemas/config.schema.json)",
        ),
        say("{nothing} stands for no default: the key may be left out, and nothing is taken instead.", nothing=NOTHING),
        "",
        *(f"{'  ' * (section.level - 2)}- [{section.heading}](#{slug(section.heading)})" for section in SECTIONS),
        f"- [{say('Platforms')}](#{slug(say('Platforms'))})",
    ]
    for section in SECTIONS:
        lines += _section(section, schema, kinds, say)
    lines += ["", f"## {say('Platforms')}", *_platforms(say)]
    return page(lines)


def _up(say: Language) -> str:
    """The root of the repository, from a page."""
    return "../" * (len(FOLDERS[say.code].split("/")))


def _section(section: Section, schema: Schema, kinds: Kinds, say: Language) -> Iterator[str]:
    yield from ("", f"{'#' * section.level} {section.heading}")
    if section.definition is not None:
        found = schema["$defs"][section.definition] if section.definition else schema
        yield from ("", prose(_sentence(say(" ".join(found["description"].split())), say)))
        rows = [_key(section.definition, name, one, found, kinds, say) for name, one in found["properties"].items()]
        if section.definition == "PolicySettings":
            limits = kinds.told(found["additionalProperties"], key="limit")
            rows.append(("`CHECK`, `STAGE..STAGE`", limits, NOTHING, say("limits of a check, or of a link")))
        yield from table([say(one) for one in ("key", "type", "default", "what it is")], rows)
    yield from EXTRAS.get(section.place, _nothing)(say)
    if section.example:
        yield from ("", "```yaml", section.example.strip(), "```")


def _sentence(said: str, say: Language) -> str:
    """With a full stop."""
    stop = "。" if say.code == CHINESE_LANGUAGE else "."
    return said if said.endswith((".", "。")) else said + stop


def _key(definition: str, name: str, schema: Schema, inside: Schema, kinds: Kinds, say: Language) -> tuple[str, ...]:
    """A row: the key, what it takes, its default, what it is."""
    if name in inside.get("required", ()):
        default = say("required")
    else:
        value = schema.get("default")
        default = NOTHING if value in (None, "", [], {}) else f"`{_shown(value)}`"
    if (definition, name) == ("SubjectSettings", "artifacts"):
        place = next(one for one in SECTIONS if one.place == "subjects.NAME.artifacts")
        kind = f"{say('stage')} → [{say('artifact')}](#{slug(place.heading)})"
    else:
        kind = kinds.told(schema, key=KEYS.get((definition, name), "name"))
    return f"`{name}`", kind, default, prose(say(_description(definition, name, schema)))


def _description(definition: str, name: str, schema: Schema) -> str:
    """The schema's, else ours. Raises LookupError where there is none, or ours is not needed."""
    told: str | None = schema.get("description")
    ours = BACKEND if name == "backend" and definition != "OtherArtifact" else UNTOLD.get((definition, name))
    if (definition, name) == ("", "defaults"):
        ours = str(published()["$defs"]["Defaults"]["description"])
    if (told is None) == (ours is None):
        raise LookupError(f"{definition or 'the file'}.{name}: described by the schema or in UNTOLD, and one of them")
    return " ".join(str(told or ours).split())


def _nothing(say: Language) -> Iterator[str]:
    yield from ()


def _artifacts(say: Language) -> Iterator[str]:
    yield ""
    yield say(
        "A bare path is short for `{path: …}`. Where `backend` is not given, `load` means `torch`, `board` means "
        "`board`, and else the ending of the path tells:"
    )
    endings: dict[str, list[str]] = {}
    for ending, backend in BY_SUFFIX.items():
        endings.setdefault(backend, []).append(ending)
    rows = [(codes(found), f"`{backend}`") for backend, found in endings.items()]
    yield from table([say("ending"), "`backend`"], [*rows, (say("any other, and a folder"), f"`{BY_SUFFIX['.npz']}`")])
    yield ""
    yield say(
        "`build` stands among the artifacts too: the files of hb_compile's folder stand for their stages, but for "
        "those that are named beside it. The names of stages are those of the {chain}. An `.hbm` runs on a board where "
        "one is named, here or in `defaults.board`, and is simulated where none is.",
        chain=f"[{say('chain')}](#{slug('chains.NAME')})",
    )


def _scores(say: Language) -> Iterator[str]:
    yield from table(
        ["`task`", say("scores; the first decides")],
        [(f"`{task.name}`", codes([scorer.name for scorer in task.scorers])) for task in TASKS.values()]
        + [("`own`", "`own`")],
    )


def _limits(say: Language) -> Iterator[str]:
    if list(LIMITS) != list(LIMIT_NAMES):
        raise LookupError(f"LIMITS has {', '.join(LIMITS)}; limits are {', '.join(LIMIT_NAMES)}")
    yield ""
    yield say("A limit of a link goes before that of its check. `1%` is the same as 0.01. The limits:")
    rows = []
    for name, told in LIMITS.items():
        where = "`board`" if name in PERFORMANCE else say("any check or link")
        rows.append((f"`{name}`", _sign(name), say(told), where))
    yield from table([say("limit"), "", say("what it is"), say("where")], rows)
    yield ""
    yield say("Without a policy, by the kind of a link:")
    titles = (
        "kind",
        "what it is",
        "numbers",
        "numbers whose step is known",
        "integers without a scale",
        "with a score",
        "score",
    )
    yield from table([say(one) for one in titles], [_defaults(kind, say) for kind in LinkKind])
    yield ""
    harmless = [code.code for code in CODES.values() if code.verdict is Verdict.PASS]
    yield say("`accepts` takes: {codes}. See {findings}.", codes=codes(harmless), findings="[findings.md](findings.md)")


def _defaults(kind: LinkKind, say: Language) -> tuple[str, ...]:
    link, chain, policy = ChainLink("a", "b", kind), CHAINS["ptq"], Policy()
    natures = (
        Nature(integer=False, stepped=False, scored=False),
        Nature(integer=False, stepped=True, scored=False),
        Nature(integer=True, stepped=False, scored=False),
        Nature(integer=False, stepped=False, scored=True),
    )
    told = [_limit_texts(output_limits(link, nature, chain=chain, policy=policy)) for nature in natures]
    drop = _limit_texts((score_limit(link, chain=chain, policy=policy),))
    return f"`{kind.value}`", say(LINK_KINDS[kind]), *told, drop


def _limit_texts(limits: Sequence[Limit]) -> str:
    return ", ".join(f"`{one.criterion}` {_sign(one.criterion)} {one.value:g}" for one in limits) or NOTHING


def _sign(name: str) -> str:
    """The side of a limit that is in order; more decimals that agree are better, though the difference is smaller."""
    if name == "decimals":
        return "≥"
    better = CRITERIA[name].better if name in CRITERIA else PERFORMANCE.get(name, "lower")
    return "≤" if better == "lower" else "≥"


def _chains(say: Language) -> Iterator[str]:
    for chain in CHAINS.values():
        yield ""
        yield say("The chain {name} that is there already:", name=f"`{chain.name}`")
        yield from table(
            [say(one) for one in ("stage", "segment", "feeds", "kind of the link before it")],
            [
                (f"`{s.name}`", str(s.segment), f"`{s.feeds.value}`", f"`{s.kind.value}`" if s.kind else NOTHING)
                for s in chain.stages
            ],
        )
        yield from table(
            [say(one) for one in ("check", "title", "kind", "stages")],
            [(f"`{c.slug}`", c.title, f"`{c.kind.value}`", codes(c.stages)) for c in chain.checks],
        )


def _platforms(say: Language) -> Iterator[str]:
    yield from table([say("platform"), "march"], [(f"`{one.name}`", f"`{one.march}`") for one in PLATFORMS.values()])


def _other(say: Language) -> Iterator[str]:
    guide = "../writing-a-backend.md"
    yield from ("", say("How one is written: {guide}.", guide=f"[{guide.removeprefix('../')}]({guide})"))


EXTRAS: Mapping[str, Extra] = {
    "subjects.NAME.artifacts": _artifacts,
    "backend: OTHER": _other,
    "subjects.NAME.score": _scores,
    "policies.NAME": _limits,
    "chains.NAME": _chains,
}


# --- findings


def findings_page(say: Language) -> str:
    """Every code, by the part of the way that it lies on."""
    lines = [*title(say, "Findings: every code", "findings.md"), *_evidence_rule(say)]
    for segment in Segment:
        lines += _codes_of(segment, say)
    return page(lines)


def _evidence_rule(say: Language) -> Iterator[str]:
    yield say(
        "A finding names a cause of a difference, with the numbers that speak for it. It stands in the table's "
        "verdicts, the terminal, summary, comment, `junit.xml` and `results.json`; `driftgate explain` shows it for "
        "reports, an evidence folder or a `bundle.zip`."
    )
    yield from ("", f"## {say('Confirmed or suspected')}", "")
    yield say(
        "Rules that read files and records look at every link. Experiments are made on the first failing one: the "
        "suspected error is undone, or applied, and compared again."
    )
    yield from table(
        [say("said as"), say("when"), say("what follows")],
        [
            (
                f"**{say(str(word))}**",
                say(when),
                say(follows),
            )
            for word, when, follows in (
                (
                    "confirmed",
                    "the difference falls to the noise floor, and to a quarter or less; or files and records prove it "
                    "without an experiment",
                    "a fault fails its link, even one within its limits; a harmless cause passes its link only where "
                    "`accepts` of the policy names it; where nothing can be concluded, FAIL becomes ERROR",
                ),
                (
                    "suspected",
                    "the difference is halved at least and does not reach the floor, or nothing could be run that "
                    "would tell",
                    "nothing: no verdict changes",
                ),
                (
                    "tested and ruled out",
                    "it was looked for, and nothing speaks for it",
                    "nothing; listed where no explanation was found",
                ),
            )
        ],
    )
    yield ""
    yield say(
        "Confirmed ones stand before suspected ones, faults before what is none, a cause before a kind of cause or a "
        "symptom, the larger share of the difference first. What is confirmed to be harmless is not suspected of a "
        "fault beside it."
    )
    yield from table(
        [say("verdict"), say("means")], [(f"**{verdict.value}**", say(means)) for verdict, means in VERDICTS.items()]
    )


def _codes_of(segment: Segment, say: Language) -> Iterator[str]:
    found = [code for code in CODES.values() if code.segment is segment]
    yield from ("", f"## {say(SEGMENTS[segment])}", "")
    yield say("Segment {segment}.", segment=f"`{segment.value}`")
    yield from ("", " · ".join(f"[{code.code}](#{slug(code.code)})" for code in found))
    for code in found:
        yield from _code(code, say)


def _code(code: Code, say: Language) -> Iterator[str]:
    yield from ("", f"### {code.code}", "")
    yield f"- **{code.verdict.value}** · {say.message(code.actor)}"
    yield f"- {say('Cause: {told}', told=say.message(code.cause))}"
    yield f"- {say('First: {told}', told=say.message(code.next))}"
    if code.untouched is not None:
        told = say.message(code.untouched)
        yield f"- {told[:1].upper()}{told[1:]}"


# --- all pages


PAGES: Mapping[str, Callable[[Language], str]] = {"config.md": config_page, "findings.md": findings_page}


@dataclass(frozen=True, slots=True)
class Made:
    """The pages by their paths below the root, and what is wrong with the translations."""

    pages: Mapping[str, str]
    missing: tuple[str, ...]
    unused: tuple[str, ...]


def made() -> Made:
    """Both languages, from the code and tools/reference_zh.json."""
    translations: Mapping[str, str] = json.loads(TRANSLATIONS.read_text("utf-8"))
    chinese = Language(CHINESE_LANGUAGE, translations)
    pages = {
        f"{FOLDERS[say.code]}/{file}": write(say)
        for say in (Language(ENGLISH_LANGUAGE), chinese)
        for file, write in PAGES.items()
    }
    return Made(pages, tuple(chinese.missing), tuple(one for one in translations if one not in chinese.asked))


def problems(found: Made) -> Iterator[str]:
    """What is stale, missing or not used."""
    for name, content in found.pages.items():
        path = ROOT / name
        if not path.is_file() or path.read_text("utf-8") != content:
            yield f"{name} is stale; run python tools/reference.py"
    yield from (f"tools/reference_zh.json has no translation of: {one}" for one in found.missing)
    yield from (f"tools/reference_zh.json translates what is not said: {one}" for one in found.unused)


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the pages, or say what is wrong with them."""
    parser = argparse.ArgumentParser(description="Write the reference pages.")
    parser.add_argument("--check", action="store_true", help="name what is stale, and change nothing")
    found = made()
    if not parser.parse_args(arguments).check:
        for name, content in found.pages.items():
            (ROOT / name).parent.mkdir(parents=True, exist_ok=True)
            (ROOT / name).write_text(content, "utf-8")
    wrong = tuple(problems(found))
    sys.stderr.write("".join(f"{one}\n" for one in wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
