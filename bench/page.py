"""What a large graph costs the reader of index.html: loading, drawing and searching 5,000 nodes beside 12.

Both pages are opened in turn in one browser, many times in one run, so that what else the machine does falls on both.
Needs playwright and chromium. Nothing here asserts anything.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Browser  # type: ignore[import-not-found, unused-ignore]

ROOT = Path(__file__).parents[1]
RESULT = ROOT / ".cache" / "bench" / "page.json"
CHROMIUM = "/usr/bin/chromium"
SMALL, LARGE = 12, 5000
#: What is typed, letter by letter.
WORD = "conv_40"
#: From the start of the navigation to the first frame after everything is loaded.
LOADED = "new Promise(done => requestAnimationFrame(() => setTimeout(() => done(performance.now()))))"
#: From the call for the chart to the first frame that has it.
DRAWN = """new Promise(done => {
  const chart = document.querySelector(".chart.errors"), begun = performance.now();
  const look = () => chart.querySelector("canvas")
    ? setTimeout(() => done(performance.now() - begun)) : requestAnimationFrame(look);
  chart.scrollIntoView();
  look();
})"""
#: From a letter to the first frame that has the answer.
TYPED = """word => new Promise(done => {
  const search = document.querySelector(".search input"), begun = performance.now();
  search.value = word;
  search.dispatchEvent(new Event("input"));
  requestAnimationFrame(() => setTimeout(() => done(performance.now() - begun)));
})"""
STEPS = ("load", "draw", "letter")


def main() -> None:
    """Measure, print medians and ratios, keep them as JSON."""
    sys.path.insert(0, str(ROOT / "tests"))
    from playwright.sync_api import sync_playwright

    from driftgate.reporting.page import html_page
    from support.pages import many_nodes

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    rounds = parser.parse_args().rounds
    milliseconds: dict[int, dict[str, list[float]]] = {count: {step: [] for step in STEPS} for count in (SMALL, LARGE)}
    writing, sizes = {}, {}
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        files = {count: Path(folder) / f"{count}.html" for count in milliseconds}
        for count, file in files.items():
            found = many_nodes(count)
            began = time.perf_counter()
            file.write_bytes(html_page(found))
            writing[count], sizes[count] = time.perf_counter() - began, file.stat().st_size
        browser = playwright.chromium.launch(executable_path=CHROMIUM)
        for turn in range(rounds + 1):
            for count, file in files.items():
                spent = _visit(browser, file)
                if turn > 0:  # the first of each warms the caches
                    for step, found_milliseconds in spent.items():
                        milliseconds[count][step] += found_milliseconds
        browser.close()
    medians = {count: {step: statistics.median(row[step]) for step in STEPS} for count, row in milliseconds.items()}
    print(f"size: {sizes[SMALL]} and {sizes[LARGE]} bytes, {sizes[LARGE] / sizes[SMALL]:.1f} times")
    print(f"writing: {writing[SMALL]:.2f} and {writing[LARGE]:.2f} s")
    for step in STEPS:
        small, large = medians[SMALL][step], medians[LARGE][step]
        print(f"{step}: {small:.0f} and {large:.0f} ms, {large / small:.1f} times")
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    result = {"rounds": rounds, "bytes": sizes, "medians_milliseconds": medians, "milliseconds": milliseconds}
    RESULT.write_text(json.dumps(result, indent=1) + "\n", "utf-8")


def _visit(browser: Browser, file: Path) -> dict[str, list[float]]:
    """The milliseconds of every step of one visit."""
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto(file.as_uri())
    spent = {"load": [float(page.evaluate(LOADED))], "draw": [float(page.evaluate(DRAWN))]}
    words = [WORD[:end] for end in range(1, len(WORD) + 1)]
    spent["letter"] = [float(page.evaluate(TYPED, word)) for word in words]
    page.close()
    return spent


if __name__ == "__main__":
    main()
