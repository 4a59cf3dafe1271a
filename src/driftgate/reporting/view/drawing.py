"""The picture of a chain: boxes, lines, marks and words at their places, for a wide page and for a narrow one."""

from __future__ import annotations

from dataclasses import dataclass

from driftgate.escaping.characters import one_line, shortened
from driftgate.messages.message import Message, message
from driftgate.reporting.view.chain import Band, Chain, Spot, Step
from driftgate.reporting.view.readings import Reading

#: What each cell of the table looks like.
KINDS = {"PASS": "pass", "FAIL": "fail", "ERROR": "error", "-": "none"}
Part = str | Message


@dataclass(frozen=True, slots=True)
class Box:
    """A stage; its `kind` is plain, broken or behind."""

    x: float
    y: float
    width: float
    height: float
    kind: str


@dataclass(frozen=True, slots=True)
class Line:
    """A line from one point to another; its `kind` is that of a mark, or behind, or break."""

    x1: float
    y1: float
    x2: float
    y2: float
    kind: str


@dataclass(frozen=True, slots=True)
class Mark:
    """A sign around a point: pass, fail, error or none."""

    x: float
    y: float
    kind: str


@dataclass(frozen=True, slots=True)
class Words:
    """One line of text; `anchor` is start, middle or end, `kind` how it looks."""

    x: float
    y: float
    anchor: str
    kind: str
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Drawing:
    """Shapes on a surface whose origin is its upper left corner."""

    width: float
    height: float
    boxes: tuple[Box, ...]
    lines: tuple[Line, ...]
    marks: tuple[Mark, ...]
    words: tuple[Words, ...]


LINE = 15  # from one line of text to the next
LETTER = 6.3  # the width of a letter of a title
BOX_LETTERS, TALL_LETTERS, TITLE_LETTERS, NUMBER_LETTERS = 13, 20, 26, 16

WIDTH, MARGIN = 1120, 10
BOX_WIDTH, BOX_HEIGHT, BOX_TOP = 96, 42, 58
BAND, BREAK_ABOVE, BREAK_BELOW = 24, 24, 6
NUMBERS, SPOTS = 20, 90  # below the boxes

TALL_WIDTH, TALL_BOX_WIDTH, TALL_BOX_HEIGHT, TALL_PITCH, TALL_MARGIN = 360, 150, 34, 98, 8
AXIS, BESIDE = 32, 56


def wide(chain: Chain) -> Drawing:
    """From left to right: checks above the stages, numbers below."""
    gap = (WIDTH - 2 * MARGIN - BOX_WIDTH * len(chain.stages)) / max(1, len(chain.stages) - 1)
    lefts = [MARGIN + place * (BOX_WIDTH + gap) for place in range(len(chain.stages))]
    middle = BOX_TOP + BOX_HEIGHT / 2
    boxes, lines, marks, words = [], [], [], []
    for stage, left in zip(chain.stages, lefts, strict=True):
        kind = _stage_kind(stage, chain)
        boxes.append(Box(_at(left), BOX_TOP, BOX_WIDTH, BOX_HEIGHT, kind))
        words += _centred(left + BOX_WIDTH / 2, middle, f"stage {kind}", _two_lines(stage))
    for step, left in zip(chain.steps, lefts, strict=False):
        start, end = left + BOX_WIDTH, left + BOX_WIDTH + gap
        centre = (start + end) / 2
        lines.append(Line(_at(start), middle, _at(end), middle, _line_kind(step)))
        if step.is_broken:
            bottom = BOX_TOP + BOX_HEIGHT + BREAK_BELOW
            lines.append(Line(_at(centre), BOX_TOP - BREAK_ABOVE + 16, _at(centre), bottom, "break"))
            words.append(Words(_at(centre), BOX_TOP - 12, "middle", "flag", (message("page-first-break"),)))
        marks.append(Mark(_at(centre), middle, KINDS[step.cell]))
        words += _stacked(centre, BOX_TOP + BOX_HEIGHT + NUMBERS, "middle", _told(step))
    for band in chain.bands:
        start, end = lefts[band.first] + BOX_WIDTH / 2 + 4, lefts[band.last + 1] + BOX_WIDTH / 2 - 4
        lines.append(Line(_at(start), BAND, _at(end), BAND, KINDS[band.cell]))
        words.append(_band_title(band, start, end))
    bottom = BOX_TOP + BOX_HEIGHT + SPOTS
    for spot in chain.spots:
        is_left = spot.place * 2 < len(chain.stages)
        edge = lefts[spot.place] + (10 if is_left else BOX_WIDTH - 10)
        beside = edge + (16 if is_left else -16)
        marks.append(Mark(_at(edge), bottom - 4, KINDS[spot.cell]))
        words.append(Words(_at(beside), bottom, "start" if is_left else "end", f"value {KINDS[spot.cell]}", _all(spot)))
    return Drawing(WIDTH, bottom + 12, tuple(boxes), tuple(lines), tuple(marks), tuple(words))


def tall(chain: Chain) -> Drawing:
    """From top to bottom: numbers beside the links."""
    boxes, lines, marks, words = [], [], [], []
    tops = [TALL_MARGIN + place * TALL_PITCH for place in range(len(chain.stages))]
    for stage, top in zip(chain.stages, tops, strict=True):
        kind = _stage_kind(stage, chain)
        boxes.append(Box(TALL_MARGIN, top, TALL_BOX_WIDTH, TALL_BOX_HEIGHT, kind))
        name = shortened(one_line(stage), TALL_LETTERS)
        words += _centred(TALL_MARGIN + TALL_BOX_WIDTH / 2, top + TALL_BOX_HEIGHT / 2, f"stage {kind}", (name,))
    for step, top in zip(chain.steps, tops, strict=False):
        start, end = top + TALL_BOX_HEIGHT, top + TALL_PITCH
        lines.append(Line(AXIS, start, AXIS, end, _line_kind(step)))
        marks.append(Mark(AXIS, (start + end) / 2, KINDS[step.cell]))
        flag = [("flag", (message("page-first-break"),))] if step.is_broken else []
        told = [*flag, *_told(step)]
        words += _stacked(BESIDE, (start + end) / 2 + 4 - LINE * (len(told) - 1) / 2, "start", told)
    for spot in chain.spots:
        left, top = TALL_MARGIN + TALL_BOX_WIDTH + 18, tops[spot.place]
        marks.append(Mark(left, top + 10, KINDS[spot.cell]))
        title, *numbers = _all(spot)
        kind = f"value {KINDS[spot.cell]}"
        words += _stacked(left + 14, top + 14, "start", [(kind, (title,)), ("kind", tuple(numbers))])
    bottom = tops[-1] + TALL_BOX_HEIGHT + TALL_MARGIN
    return Drawing(TALL_WIDTH, bottom, tuple(boxes), tuple(lines), tuple(marks), tuple(words))


def _at(coordinate: float) -> float:
    return round(coordinate, 1)


def _stage_kind(stage: str, chain: Chain) -> str:
    return "broken" if stage == chain.broken else "behind" if stage in chain.behind else "plain"


def _line_kind(step: Step) -> str:
    return "behind" if step.is_behind else KINDS[step.cell]


def _told(step: Step) -> list[tuple[str, tuple[Part, ...]]]:
    """The lines of text at a link, each with its kind: what kind of link, what was found, what is allowed."""
    kind = f"value {KINDS[step.cell]}"
    found: list[tuple[str, tuple[Part, ...]]] = [("kind", (message(f"kind-{step.link.kind.value}"),))]
    if step.reading is not None:
        found.append((kind, (step.reading.title,)))
        found.append((kind, (*_value(step.reading), *_bound(step.reading))))
    return found


def _value(found: Reading) -> tuple[Part, ...]:
    value = shortened(one_line(found.value), NUMBER_LETTERS)
    return (value,) if found.unit is None else (value, found.unit)


def _bound(found: Reading) -> tuple[Part, ...]:
    unit = () if found.unit is None else (found.unit,)
    return ("·", found.relation, shortened(found.limit, NUMBER_LETTERS), *unit) if found.limit else ()


def _all(spot: Spot) -> tuple[Part, ...]:
    title = shortened(one_line(spot.title), TITLE_LETTERS)
    return (title,) if spot.reading is None else (title, spot.reading.title, *_value(spot.reading))


def _band_title(band: Band, start: float, end: float) -> Words:
    title = shortened(one_line(band.title), max(4, int((end - start) / LETTER)))
    return Words(_at((start + end) / 2), BAND - 8, "middle", f"band {KINDS[band.cell]}", (title,))


def _centred(x: float, y: float, kind: str, lines: tuple[str, ...]) -> list[Words]:
    first = y + 4 - LINE * (len(lines) - 1) / 2
    return _stacked(x, first, "middle", [(kind, (line,)) for line in lines])


def _stacked(x: float, y: float, anchor: str, lines: list[tuple[str, tuple[Part, ...]]]) -> list[Words]:
    return [
        Words(_at(x), _at(y + LINE * number), anchor, kind, parts)
        for number, (kind, parts) in enumerate(lines)
        if parts
    ]


def _two_lines(name: str) -> tuple[str, ...]:
    """A stage's name as its box has room for it, broken at the underscore nearest to its middle."""
    shown = one_line(name)
    breaks = [place + 1 for place, letter in enumerate(shown) if letter == "_"]
    if len(shown) <= BOX_LETTERS or not breaks:
        return (shortened(shown, BOX_LETTERS),)
    best = min(breaks, key=lambda place: abs(place - len(shown) / 2))
    return tuple(shortened(part, BOX_LETTERS) for part in (shown[:best], shown[best:]) if part)
