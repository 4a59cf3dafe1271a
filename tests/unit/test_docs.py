"""The pages lead to what is there: links and headings, configurations that the schema takes, verbs and options."""

from __future__ import annotations

import json
import re
import shlex
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import click
import pytest
import yaml
from jsonschema import Draft202012Validator

from driftgate.cli import main

ROOT = Path(__file__).parents[2]
PAGES = tuple(
    sorted({*ROOT.glob("README*.md"), ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")}),
)
NAMES = [page.relative_to(ROOT).as_posix() for page in PAGES]

FENCE = re.compile(r"^(?P<indent> *)(?P<ticks>`{3,})(?P<language>[\w-]*)\s*$")
HEADING = re.compile(r"^(#{1,6}) +(.+?)(?: +#+)?$")
LINK = re.compile(r"\]\(\s*<?([^()\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)")
SPAN = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)
ELSEWHERE = re.compile(r"^(?:[a-z][a-z0-9+.-]*:|//)", re.IGNORECASE)
#: What ends a command in a line of a shell.
ENDS = frozenset({"|", "||", "&&", ";", ">", ">>", "<", "&"})
PROMPT = "$ "


@dataclass(frozen=True, slots=True)
class Block:
    """A block of code, and the line that its first line is."""

    language: str
    line: int
    text: str


@dataclass(frozen=True, slots=True)
class Page:
    """A page of Markdown: what is text, and what is code."""

    text: str
    blocks: tuple[Block, ...]

    @property
    def links(self) -> tuple[str, ...]:
        """Where its links lead that do not lead elsewhere; of a picture within a link, both."""
        found = LINK.findall(SPAN.sub("", self.text))
        return tuple(target for target in found if not ELSEWHERE.match(target))

    @property
    def anchors(self) -> frozenset[str]:
        """What a link may name behind #, by GitHub's rules: equal headings are counted."""
        found: dict[str, int] = {}
        anchors = set()
        for line in self.text.splitlines():
            heading = HEADING.match(line)
            if heading:
                name = slug(heading[2])
                count = found.get(name, 0)
                found[name] = count + 1
                anchors.add(f"{name}-{count}" if count else name)
        return frozenset(anchors)

    @property
    def commands(self) -> Iterator[tuple[int, str]]:
        """Lines of consoles that somebody types, with those that go on, and their numbers."""
        for block in self.blocks:
            if block.language != "console":
                continue
            lines = iter(enumerate(block.text.splitlines(), block.line))
            for number, line in lines:
                if line.startswith(PROMPT):
                    typed = line.removeprefix(PROMPT)
                    while typed.endswith("\\"):
                        typed = typed[:-1] + next(lines)[1]
                    yield number, typed


def read(text: str) -> Page:
    """A page from its text."""
    outside: list[str] = []
    blocks: list[Block] = []
    inside: list[str] | None = None
    opened = ("", "", 0)
    for number, line in enumerate(text.splitlines(), 1):
        fence = FENCE.match(line)
        if inside is not None and fence and fence["ticks"] == opened[1] and not fence["language"]:
            blocks.append(Block(opened[0], opened[2], textwrap.dedent("\n".join(inside))))
            inside = None
        elif inside is not None:
            inside.append(line)
        elif fence:
            opened = (fence["language"], fence["ticks"], number + 1)
            inside = []
        else:
            outside.append(line)
    assert inside is None, "a fence that does not end"
    return Page("\n".join(outside), tuple(blocks))


@cache
def page_of(path: Path) -> Page:
    return read(path.read_text("utf-8"))


def slug(heading: str) -> str:
    """The anchor that GitHub gives a heading: of links their text; no code, punctuation or emphasis."""
    plain = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
    return re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")


def lost(page: Page, path: Path) -> Iterator[str]:
    """Links that lead to no file or heading."""
    for target in page.links:
        name, _, anchor = target.partition("#")
        file = (path.parent / name).resolve() if name else path
        if not file.exists():
            yield f"{target}: there is no such file"
        elif anchor and file.suffix == ".md":
            there = page.anchors if file == path else page_of(file).anchors
            if anchor not in there:
                yield f"{target}: there is no such heading"


def refused(page: Page, schema: Mapping[str, object]) -> Iterator[str]:
    """Configurations that the schema does not take."""
    validator = Draft202012Validator(schema)
    for block in page.blocks:
        if block.language == "yaml" and block.text.startswith("version: 1\n"):
            for error in validator.iter_errors(yaml.safe_load(block.text)):
                place = ".".join(str(part) for part in error.absolute_path) or "the file"
                yield f"line {block.line}, {place}: {error.message}"


def unknown(page: Page) -> Iterator[str]:
    """Verbs and options that driftgate does not have."""
    for number, line in page.commands:
        for words in calls(line):
            yield from (f"line {number}, {told}" for told in mistaken(words))


def calls(line: str) -> Iterator[tuple[str, ...]]:
    """What driftgate is called with in a line of a shell."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    words: list[str] | None = None
    for word in lexer:
        if word in ENDS:
            if words is not None:
                yield tuple(words)
            words = None
        elif words is not None:
            words.append(word)
        elif word == "driftgate" or word.endswith("/driftgate"):
            words = []
    if words is not None:
        yield tuple(words)


def mistaken(words: tuple[str, ...]) -> Iterator[str]:
    """What is wrong with one call."""
    given = [word.partition("=")[0] for word in words if word.startswith("-") and word.strip("-")]
    verb = next((word for word in words if not word.startswith("-")), None)
    with click.Context(main) as context:
        command = main if verb is None else main.get_command(context, verb)
        if command is None:
            yield f"{verb}: driftgate has no such verb"
            return
        known = {option for one in command.get_params(context) for option in (*one.opts, *one.secondary_opts)}
    known |= {"-h", "--help"}
    yield from (f"{verb or 'driftgate'} {option}: there is no such option" for option in given if option not in known)


@pytest.mark.parametrize("name", NAMES)
def test_links_lead_somewhere(name: str) -> None:
    assert list(lost(page_of(ROOT / name), ROOT / name)) == []


@pytest.mark.parametrize("name", NAMES)
def test_configurations_are_valid(name: str) -> None:
    schema = json.loads((ROOT / "schemas" / "config.schema.json").read_text("utf-8"))
    assert list(refused(page_of(ROOT / name), schema)) == []


@pytest.mark.parametrize("name", NAMES)
def test_commands_can_be_typed(name: str) -> None:
    assert list(unknown(page_of(ROOT / name))) == []


def test_every_page_is_in_the_index() -> None:
    index = ROOT / "docs" / "README.md"
    listed = {(index.parent / target.partition("#")[0]).resolve() for target in page_of(index).links}
    pages = {path for path in (ROOT / "docs").rglob("*.md") if path.name != index.name}
    assert sorted(path.relative_to(ROOT).as_posix() for path in pages - listed) == []


# --- what it finds

WRONG = """# Speed & memory

[a](#speed--memory) [b](#speed) [c](nowhere.md) [d](boards.md#speed) [e](boards.md#nowhere) [f](https://example.com/x)
[![picture](images/none.png)](bundles.md) `[g](none.md)`

## Twice

## Twice

[h](#twice) [i](#twice-1) [j](#twice-2)

```yaml
version: 1
subjects: {net: {artifacts: {onnx: net.onnx}, samples: {raw: raw}}}
policies: {p: {float-int8: {score-dorp: 1%}}}
```

* A list:

  ```yaml
  version: 1
  subject: {}
  ```

```yaml
version: 2
```

```console
$ driftgate check -c x.yaml --out out && .venv/bin/driftgate chekc   # --nothing
$ FOO=1 driftgate run --leg net/J6M/host/0-2 --plan=p.json --speed 3 | tee log --append
$ driftgate replay bundle.zip \\
    --artefacts x
$ driftgate --version
--no-option
```
"""


def test_what_is_wrong_is_named() -> None:
    page = read(WRONG)  # as if it were another page's text
    assert list(lost(page, ROOT / "docs" / "scores.md")) == [
        "#speed: there is no such heading",
        "nowhere.md: there is no such file",
        "boards.md#nowhere: there is no such heading",
        "images/none.png: there is no such file",
        "#twice-2: there is no such heading",
    ]
    schema = json.loads((ROOT / "schemas" / "config.schema.json").read_text("utf-8"))
    assert [told.partition(":")[0] for told in refused(page, schema)] == [
        "line 13, policies.p.float-int8",
        "line 21, the file",
        "line 21, the file",
    ]
    assert list(unknown(page)) == [
        "line 30, chekc: driftgate has no such verb",
        "line 31, run --speed: there is no such option",
        "line 32, replay --artefacts: there is no such option",
    ]


@pytest.mark.parametrize(
    ("heading", "anchor"),
    [
        ("Without a network", "without-a-network"),
        ("`subjects.NAME.samples`", "subjectsnamesamples"),
        ("`backend: hbm_infer`", "backend-hbm_infer"),
        ("GitHub Enterprise Server, Gitea, Forgejo", "github-enterprise-server-gitea-forgejo"),
        ("PyTorch → ONNX: export", "pytorch--onnx-export"),
        ("See [the page](x.md)!", "see-the-page"),
        ("一块板卡，多个作业段", "一块板卡多个作业段"),
    ],
)
def test_anchors_are_those_of_github(heading: str, anchor: str) -> None:
    assert slug(heading) == anchor
