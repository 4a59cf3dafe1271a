"""The Chinese pages hold what the English ones hold: headings, code, tables, names, links; what is stale is named."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]

PAIRS = (
    ("README.md", "README.zh-CN.md"),
    *(
        (f"docs/{page.name}", f"docs/zh/{page.name}")
        for page in sorted((ROOT / "docs").glob("*.md"))
        if page.name != "README.md" and (ROOT / "docs" / "zh" / page.name).exists()
    ),
)

#: Code spans that stand on one side only, by the name of the Chinese page.
ON_ONE_SIDE: dict[str, frozenset[str]] = {}

#: So many letters without a Chinese character are prose that nobody translated.
LONGEST_FOREIGN = 40

CJK = re.compile(r"[\u4e00-\u9fff]")
CHINESE_TEXT = re.compile(r"[\u3000-\u303f\u4e00-\u9fff\uff00-\uffef]+")
COMMENT = re.compile(r"(?:^|\s)#\s.*$")
FENCE = re.compile(r"^\s*```(\w*)\s*$")
SPAN = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)
LINK = re.compile(r"\]\(([^()\s]+)\)")
WORD = re.compile(r"[A-Za-z0-9][\w.:-]*")
NUMBER = re.compile(r"\d(?:[\d,.]*\d)?")


class Fence(NamedTuple):
    """A block of code; one without a language is a drawing, whose words may be translated."""

    language: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Page:
    """A page of Markdown: its text outside of fences, line by line, and its fences."""

    lines: tuple[str, ...]
    fences: tuple[Fence, ...]

    @property
    def levels(self) -> tuple[int, ...]:
        return tuple(len(line) - len(line.lstrip("#")) for line in self.lines if re.match("#+ ", line))

    @property
    def headings(self) -> tuple[str, ...]:
        return tuple(line.lstrip("#").strip() for line in self.lines if re.match("#+ ", line))

    @property
    def tables(self) -> tuple[tuple[str, ...], ...]:
        """Each table's rows, that of the column titles and the line below it among them."""
        found: list[list[str]] = []
        for line, before in zip(self.lines, ("", *self.lines), strict=False):
            if line.startswith("|"):
                if not before.startswith("|"):
                    found.append([])
                found[-1].append(line)
        return tuple(tuple(rows) for rows in found)

    @property
    def spans(self) -> frozenset[str]:
        """Names in code; one that is broken across lines counts as one line."""
        apart = (f"\n{line}\n" if line.startswith("|") else line for line in self.lines)
        paragraphs = [part for part in re.split(r"\n{2,}", "\n".join(apart)) if not part.startswith("    ")]
        return frozenset(" ".join(match[2].split()) for part in paragraphs for match in SPAN.finditer(part))

    @property
    def links(self) -> tuple[str, ...]:
        """Where its relative links lead, as they are written."""
        found = LINK.findall(SPAN.sub("", "\n".join(self.lines)))
        return tuple(target for target in found if not re.match(r"\w+:", target))


def read(text: str) -> Page:
    """A page from its text."""
    lines: list[str] = []
    fences: list[Fence] = []
    inside: list[str] | None = None
    for line in text.splitlines():
        fence = FENCE.match(line)
        if inside is not None and fence:
            fences[-1] = Fence(fences[-1].language, tuple(inside))
            inside = None
        elif inside is not None:
            inside.append(line)
        elif fence:
            fences.append(Fence(fence[1], ()))
            inside = []
            lines.append("")
        else:
            lines.append(line)
    assert inside is None, "a fence that does not end"
    return Page(tuple(lines), tuple(fences))


def code(line: str) -> str:
    """A line of code without its comment, Chinese and spacing."""
    return " ".join(CHINESE_TEXT.sub(" ", COMMENT.sub("", line)).split())


def cells(row: str) -> list[str]:
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", row.strip().strip("|"))]


def slug(heading: str) -> str:
    """The anchor that GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def stale_headings(english: Page, chinese: Page) -> Iterator[str]:
    for number, (wanted, found) in enumerate(zip_longest(english.levels, chinese.levels)):
        if wanted != found:
            told = english.headings[number] if wanted else chinese.headings[number]
            yield f"heading {number + 1}, “{told}”: level {wanted} in English, {found} in Chinese"
            return


def stale_code(english: Page, chinese: Page) -> Iterator[str]:
    if len(english.fences) != len(chinese.fences):
        yield f"{len(english.fences)} blocks of code in English, {len(chinese.fences)} in Chinese"
        return
    for number, (wanted, found) in enumerate(zip(english.fences, chinese.fences, strict=True)):
        if wanted.language != found.language:
            yield f"block {number + 1}: {wanted.language} in English, {found.language} in Chinese"
        elif wanted.language:
            pairs = zip_longest(
                (told for line in wanted.lines if (told := code(line))),
                (told for line in found.lines if (told := code(line))),
            )
            yield from (f"block {number + 1}: {a} in English, {b} in Chinese" for a, b in pairs if a != b)
        elif len(wanted.lines) != len(found.lines):
            yield f"drawing {number + 1}: {len(wanted.lines)} lines in English, {len(found.lines)} in Chinese"
        else:
            for a, b in zip(wanted.lines, found.lines, strict=True):
                extra = Counter(WORD.findall(b)) - Counter(WORD.findall(a))
                if extra or (not CJK.search(b) and a != b):
                    yield f"drawing {number + 1}: {a} in English, {b} in Chinese"


def stale_tables(english: Page, chinese: Page) -> Iterator[str]:
    if len(english.tables) != len(chinese.tables):
        yield f"{len(english.tables)} tables in English, {len(chinese.tables)} in Chinese"
        return
    for wanted, found in zip(english.tables, chinese.tables, strict=True):
        if len(wanted) != len(found):
            yield f"table “{found[0]}”: {len(wanted)} rows in English, {len(found)} in Chinese"
        else:
            for a, b in zip(wanted, found, strict=True):
                if len(cells(a)) != len(cells(b)):
                    yield f"row “{b}”: {len(cells(a))} cells in English, {len(cells(b))} in Chinese"


def stale_spans(english: Page, chinese: Page, *, allowed: frozenset[str] = frozenset()) -> Iterator[str]:
    yield from (f"`{name}` is in English only" for name in sorted(english.spans - chinese.spans - allowed))
    yield from (f"`{name}` is in Chinese only" for name in sorted(chinese.spans - english.spans - allowed))


def stale_numbers(english: Page, chinese: Page) -> Iterator[str]:
    """Numbers of the prose; lines of the English page that hold Chinese as well need no counterpart."""
    wanted = numbers(line for line in english.lines if not CJK.search(line))
    yield from (f"{number} is in English only" for number in sorted(wanted - numbers(chinese.lines)))
    yield from (f"{number} is in Chinese only" for number in sorted(numbers(chinese.lines) - numbers(english.lines)))


def numbers(lines: Iterable[str]) -> frozenset[str]:
    return frozenset(NUMBER.findall(LINK.sub("]", SPAN.sub("", "\n".join(lines)))))


def stale_links(page: Page, path: Path) -> Iterator[str]:
    """Links that lead nowhere, and links to the English page where there is a Chinese one."""
    originals = {ROOT / english: ROOT / chinese for english, chinese in PAIRS}
    for target in page.links[1:]:
        name, _, anchor = target.partition("#")
        file = (path.parent / name).resolve() if name else path
        if not file.exists():
            yield f"{target} is not there"
        elif file in originals:
            yield f"{target} is the English page"
        elif anchor and anchor not in map(slug, read(file.read_text("utf-8")).headings):
            yield f"{target} has no such heading"


def stale_prose(page: Page) -> Iterator[str]:
    """Sentences and cells that are not Chinese; names in code and where links lead are no prose."""
    for line in page.lines:
        if line.startswith("    "):
            continue
        for part in cells(line) if line.startswith("|") else [line]:
            for sentence in re.split("[。；]", LINK.sub("]", SPAN.sub("", part))):
                told = sentence.strip("#* ")
                if len(told) > LONGEST_FOREIGN and not CJK.search(told):
                    yield f"not translated: {told}"


def stale(english: str, chinese: str) -> list[str]:
    """What of the Chinese page, given by its name, is not that of the English one."""
    ours, theirs = (read((ROOT / name).read_text("utf-8")) for name in (english, chinese))
    found: Sequence[str] = [
        *stale_headings(ours, theirs),
        *stale_code(ours, theirs),
        *stale_tables(ours, theirs),
        *stale_spans(ours, theirs, allowed=ON_ONE_SIDE.get(chinese, frozenset())),
        *stale_numbers(ours, theirs),
        *stale_links(theirs, ROOT / chinese),
        *stale_prose(theirs),
    ]
    return [f"{chinese}: {told}" for told in found]


@pytest.mark.parametrize(("english", "chinese"), PAIRS, ids=[chinese for _, chinese in PAIRS])
def test_the_chinese_page_is_not_stale(english: str, chinese: str) -> None:
    assert stale(english, chinese) == []


@pytest.mark.parametrize(("english", "chinese"), PAIRS, ids=[chinese for _, chinese in PAIRS])
def test_the_first_line_leads_to_the_english_page(english: str, chinese: str) -> None:
    title, blank, line, *_ = (ROOT / chinese).read_text("utf-8").splitlines()
    assert title.startswith("# ")
    assert blank == ""
    assert line == (f"[English](../{Path(english).name})" if chinese.startswith("docs/") else "[English](README.md)")


def test_every_chinese_page_has_an_english_one() -> None:
    translated = {chinese for _, chinese in PAIRS}
    pages = {path.relative_to(ROOT).as_posix() for path in (ROOT / "docs" / "zh").glob("*.md")}
    assert pages - translated - {"docs/zh/README.md"} == set()


# --- what it finds

ENGLISH = """# Boards

Take `tool` and `cores`.

## Speed

```yaml
perf: {runs: 3}   # thrice
```

```
PC ── board
```

| key | |
|---|---|
| `runs` | how often, 1 to 9 |
"""

CHINESE = """# 板卡

使用 `tool` 和 `cores`。

## 速度

```yaml
perf: {runs: 3}   # 三次
```

```
PC ── 板卡
```

| 键 | |
|---|---|
| `runs` | 次数，1 到 9 |
"""


def found(old: str, new: str) -> list[str]:
    """What is stale once the Chinese page has this change."""
    assert old in CHINESE
    ours, theirs = read(ENGLISH), read(CHINESE.replace(old, new))
    return [
        *stale_headings(ours, theirs),
        *stale_code(ours, theirs),
        *stale_tables(ours, theirs),
        *stale_spans(ours, theirs),
        *stale_numbers(ours, theirs),
        *stale_prose(theirs),
    ]


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("三次", "3 次", []),
        ("## 速度", "### 速度", ["heading 2, “Speed”: level 2 in English, 3 in Chinese"]),
        ("runs: 3", "runs: 4", ["block 1: perf: {runs: 3} in English, perf: {runs: 4} in Chinese"]),
        ("PC ── 板卡", "SSH ── 板卡", ["drawing 2: PC ── board in English, SSH ── 板卡 in Chinese"]),
        ("| `runs` | 次数，1 到 9 |\n", "\n1 到 9 `runs`", ["table “| 键 | |”: 3 rows in English, 2 in Chinese"]),
        ("| 次数，1 到 9 |", "1 9 |", ["row “| `runs` 1 9 |”: 2 cells in English, 1 in Chinese"]),
        ("到 9", "到 8", ["9 is in English only", "8 is in Chinese only"]),
        ("`cores`", "`core`", ["`cores` is in English only", "`core` is in Chinese only"]),
        ("使用 `tool` 和 `cores`", "`tool` `cores`" + " word" * 9, [f"not translated: {' '.join(['word'] * 9)}"]),
    ],
)
def test_what_is_stale_is_named(old: str, new: str, told: list[str]) -> None:
    assert found(old, new) == told


def test_links_lead_to_files_headings_and_chinese_pages() -> None:
    page = read("[English](../boards.md) [a](runners.md) [b](nowhere.md) [c](runners.md#nowhere) [d](../runners.md)")
    assert list(stale_links(page, ROOT / "docs" / "zh" / "boards.md")) == [
        "nowhere.md is not there",
        "runners.md#nowhere has no such heading",
        "../runners.md is the English page",
    ]


def test_anchors_are_those_of_github() -> None:
    assert slug("GitHub Enterprise Server、Gitea、Forgejo") == "github-enterprise-servergiteaforgejo"
    assert slug("一块板卡，多个作业段") == "一块板卡多个作业段"
    assert slug("J6 runner") == "j6-runner"
