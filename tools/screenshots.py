"""Maintainers only: pictures of index.html as readers see it. Needs playwright and chromium.

python tools/screenshots.py demo-out docs/images/review   # light, dark and Chinese are kept
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from PIL import Image
from playwright.sync_api import Browser, sync_playwright  # type: ignore[import-not-found, unused-ignore]

from driftgate.messages.text import CHINESE_LANGUAGE, in_language
from driftgate.reporting.page import html_page
from driftgate.storage.document import read_results

CHROMIUM = "/usr/bin/chromium"
COLOURS = 200  # of a picture that is kept


@dataclass(frozen=True, slots=True)
class Look:
    """One way to look at a page; `width` in pixels, that of paper is A4 without its margins."""

    name: str
    language: str | None = None
    scheme: Literal["light", "dark"] = "light"
    media: Literal["screen", "print"] = "screen"
    width: int = 1280


LOOKS = (
    Look("light"),
    Look("dark", scheme="dark"),
    Look("chinese", language=CHINESE_LANGUAGE),
    Look("print", scheme="dark", media="print", width=690),
    Look("narrow", width=400),
)


def screenshots(results: Path, target: Path) -> None:
    """Write a PNG of the whole page for every look; `results` is the folder that a check wrote, whose own page is
    taken but for other languages."""
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM)
        for look in LOOKS:
            page = results / "index.html"
            if look.language is not None:
                page = Path(folder) / f"{look.name}.html"
                with in_language(look.language):
                    page.write_bytes(html_page(read_results(results)))
            _shoot(browser, page.resolve(), look, target / f"{look.name}.png")
        browser.close()


def _shoot(browser: Browser, file: Path, look: Look, target: Path) -> None:
    context = browser.new_context(viewport={"width": look.width, "height": 900}, color_scheme=look.scheme)
    page = context.new_page()
    page.goto(file.as_uri())
    page.emulate_media(media=look.media, color_scheme=look.scheme)
    for chart in page.locator(".chart").all():  # charts are drawn once they are near the window
        chart.scroll_into_view_if_needed()
        chart.locator("canvas").wait_for()
    page.evaluate("scrollTo(0, 0)")
    page.screenshot(path=target, full_page=True)
    context.close()
    with Image.open(target) as picture:
        small = picture.convert("RGB").quantize(COLOURS, method=Image.Quantize.FASTOCTREE)
    small.save(target, optimize=True)


if __name__ == "__main__":
    screenshots(Path(sys.argv[1]), Path(sys.argv[2]))
