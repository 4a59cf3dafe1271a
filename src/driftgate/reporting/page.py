"""index.html: the whole report as one page that needs no network, with pictures, charts and a search for nodes."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256

from jinja2.sandbox import ImmutableSandboxedEnvironment

from driftgate.domain.pictures import Picture
from driftgate.domain.results import Results
from driftgate.errors import StorageError
from driftgate.escaping import html
from driftgate.messages.message import Param, message
from driftgate.messages.text import CHINESE_LANGUAGE, ENGLISH_LANGUAGE, spoken
from driftgate.reporting.budget import fitting, utf8_bytes
from driftgate.reporting.chartdata import chart_data
from driftgate.reporting.templates import environment, folder, rendering
from driftgate.reporting.view.drawing import KINDS
from driftgate.reporting.view.page import Page, page
from driftgate.reporting.view.samples import fitting_pictures, picture_bytes
from driftgate.reporting.view.sheet import Amount, sheets

TEMPLATE = "page.html.j2"
LIMIT_BYTES, IMAGES_LIMIT_BYTES = 1_500_000, 1_000_000
#: A language of ours → its name to browsers.
LANGUAGE_TAGS = {ENGLISH_LANGUAGE: "en", CHINESE_LANGUAGE: "zh-Hans"}


@dataclass(frozen=True, slots=True)
class Detail:
    """How much a page shows of every subject; with `subjects` false only the list of them."""

    amount: Amount
    subjects: bool = True


#: The next is taken where the page is too long.
LADDER = (
    Detail(Amount(nodes=50_000, rows=200, tensors=200, lines=500)),
    Detail(Amount(nodes=20_000, rows=200, tensors=40, lines=200)),
    Detail(Amount(nodes=5_000, rows=100, tensors=20, lines=200)),
    Detail(Amount(nodes=2_000, rows=100, tensors=20, lines=100)),
    Detail(Amount(nodes=500, rows=50, tensors=10, lines=50)),
    Detail(Amount(nodes=100, rows=20, tensors=5, lines=20)),
    Detail(Amount(nodes=20, rows=10, tensors=2, lines=5)),
    Detail(Amount(nodes=0, rows=0, tensors=0, lines=0)),
    Detail(Amount(nodes=0, rows=0, tensors=0, lines=0), subjects=False),
)


@dataclass(frozen=True, slots=True)
class Asset:
    """A style sheet or script of the page; `hash` is how the page's Content-Security-Policy knows it."""

    content: html.Html
    hash: str


def html_page(
    results: Results,
    *,
    pictures: Sequence[Picture] = (),
    limit: int = LIMIT_BYTES,
    images_limit: int = IMAGES_LIMIT_BYTES,
) -> bytes:
    """The page in UTF-8, at most `limit` bytes long without its images, which together take at most `images_limit`.

    The same results give the same bytes. Raises StorageError without templates, and where not even the shortest
    form fits.
    """
    subjects = {judgement.key for judgement in results.judgements or ()}
    pictures = [picture for picture in pictures if (picture.subject, picture.target) in subjects]
    kept = fitting_pictures(pictures, images_limit)
    images = sum(map(picture_bytes, kept))
    whole = page(results)
    for detail in LADDER:
        version = _version(results, whole, detail, pictures=pictures, kept=kept)
        written = fitting((version,), utf8_bytes, limit + (images if detail.subjects else 0))
        if written is not None:
            return written.encode("utf-8")
    raise StorageError(message("page-long", limit_bytes=limit))


@cache
def web() -> ImmutableSandboxedEnvironment:
    """The environment of templates that write HTML."""
    return environment(
        finished=html.finished,
        filters={"code": html.code, "png": html.png, "pre": html.pre, "title": html.titled},
        names={"label": _label, "sep": _mark, "kinds": KINDS},
    )


@cache
def styles() -> tuple[Asset, ...]:
    """The style sheets, in their order."""
    return _asset(_read("uPlot.min.css")), _asset(_read("page.css"))


@cache
def scripts() -> tuple[Asset, ...]:
    """The scripts, in their order; the licence goes along with what it is of."""
    return _asset(f"/*\n{_read('uPlot.LICENSE')}\n*/\n{_read('uPlot.iife.min.js')}"), _asset(_read("page.js"))


def _read(name: str) -> str:
    return folder().joinpath("assets").joinpath(name).read_text(encoding="utf-8").strip()


def _asset(content: str) -> Asset:
    digest = b64encode(sha256(content.encode("utf-8")).digest()).decode("ascii")
    return Asset(html.Html(content), f"'sha256-{digest}'")


def _version(
    results: Results, whole: Page, detail: Detail, *, pictures: Sequence[Picture], kept: Sequence[Picture]
) -> Iterator[str]:
    shown = sheets(results, whole, detail.amount, pictures=pictures, kept=kept)
    policy = (
        "default-src 'none'",
        "img-src data:",
        f"style-src {' '.join(style.hash for style in styles())}",
        f"script-src {' '.join(script.hash for script in scripts())}",
        "base-uri 'none'",
        "form-action 'none'",
    )
    return rendering(web(), TEMPLATE, None)(
        page=whole,
        sheets=shown,
        details=detail.subjects,
        facts=results.facts,
        language=LANGUAGE_TAGS[spoken()],
        policy=html.Html(html.text("; ".join(policy))),
        styles=styles(),
        scripts=scripts(),
        data=html.json_data(chart_data(shown if detail.subjects else ())),
    )


def _label(code: str, **params: Param) -> html.Html:
    return html.titled(message(code, **params))


def _mark(name: str) -> html.Html:
    return _label(f"mark-{name}")
