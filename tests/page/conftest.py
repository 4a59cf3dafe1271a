"""What the tests of the page share: one browser, pages as files, axe-core, results of the demo's faults."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn

import pytest

from driftgate.demo.build import build
from driftgate.domain.pictures import Picture
from driftgate.domain.results import Results
from driftgate.messages.text import ENGLISH_LANGUAGE, in_language
from driftgate.reporting.page import html_page
from driftgate.storage.document import read_results
from support.commandline import call
from support.npm import npm_file
from support.pages import many_nodes

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page  # type: ignore[import-not-found, unused-ignore]

CHROMIUM = Path("/usr/bin/chromium")
AXE, AXE_VERSION = "axe-core", "4.14.1"
SECONDS = 60.0  # that a browser may take for one step
PAUSE_SECONDS = 0.05
#: Of how many colours a canvas is; it is copied, for reading it would change how the browser draws it.
COLOURS = """canvas => {
  const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", {willReadFrequently: true});
  copy.drawImage(canvas, 0, 0);
  const pixels = copy.getImageData(0, 0, canvas.width, canvas.height).data;
  return new Set(new Uint32Array(pixels.buffer)).size;
}"""


def missing(reason: str) -> NoReturn:
    """Skip for want of a tool, or fail where tools are required."""
    if os.environ.get("DRIFTGATE_REQUIRE_TOOLS"):
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Debian's chromium."""
    try:
        from playwright.sync_api import sync_playwright
    except ModuleNotFoundError:
        missing("playwright is not installed; pip install -r tests/page/requirements.txt")
    if not CHROMIUM.is_file():
        missing(f"{CHROMIUM} is not there; apt-get install chromium")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=str(CHROMIUM))
        yield started
        started.close()


@pytest.fixture(scope="session")
def axe() -> str:
    """The script of axe-core, downloaded once; it appears in one move."""
    file = npm_file(AXE, AXE_VERSION, "package/axe.min.js", f"{AXE}-{AXE_VERSION}/axe.min.js")
    return file.read_text("utf-8")


@pytest.fixture(scope="session")
def checked(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Results]:
    """The results of the demo with a fault, or of the healthy one; each is checked once."""
    known: dict[str, Results] = {}

    def results(fault: str) -> Results:
        if fault not in known:
            folder = tmp_path_factory.mktemp("demo")
            config = build(folder / "project", None if fault == "none" else fault)
            out = folder / "out"
            assert call("check", "-c", config, "--out", out, "--bundle", "never").code in (0, 1)
            known[fault] = read_results(out)
        return known[fault]

    return results


@pytest.fixture(scope="session")
def large() -> Results:
    """A subject of 5,000 nodes."""
    return many_nodes(5000)


@dataclass(frozen=True, slots=True)
class Opened:
    """A page in the browser, what it said, and what it asked for."""

    page: Page
    url: str
    said: list[str]
    requests: list[str]

    def draw(self) -> int:
        """Scroll to every chart, so that it is drawn; how many there are."""
        charts = self.page.locator(".chart").all()
        for chart in charts:
            chart.scroll_into_view_if_needed()
            chart.locator("canvas").wait_for()
        return len(charts)

    def colours(self) -> list[int]:
        """Of how many colours each canvas is; one is a blank canvas."""
        return [int(canvas.evaluate(COLOURS)) for canvas in self.page.locator(".chart canvas").all()]

    def check(self) -> None:
        """Nothing was said, and nothing asked for but the file itself."""
        assert self.said == []
        assert self.requests == [self.url]

    def evaluate(self, script: str) -> Any:
        """What a script in the page comes to."""
        return self.page.evaluate(script)

    def wait_for(self, script: str) -> None:
        """Until a script comes to true. Playwright's own waiting is a script that the page's policy forbids."""
        for _ in range(int(SECONDS / PAUSE_SECONDS)):
            if self.evaluate(script):
                return
            self.page.wait_for_timeout(1000 * PAUSE_SECONDS)
        raise AssertionError(f"never true: {script[:200]}")


Open = Callable[..., Opened]


@pytest.fixture
def opened(browser: Browser, tmp_path: Path) -> Iterator[Open]:
    """Open the page of results as a file."""
    with ExitStack() as stack:

        def show(
            results: Results,
            *,
            pictures: Sequence[Picture] = (),
            language: str = ENGLISH_LANGUAGE,
            scheme: Literal["light", "dark"] = "light",
            width: int = 1280,
            scripts: bool = True,
        ) -> Opened:
            with in_language(language):
                file = tmp_path / "index.html"
                file.write_bytes(html_page(results, pictures=pictures))
            context = browser.new_context(
                viewport={"width": width, "height": 900}, color_scheme=scheme, java_script_enabled=scripts
            )
            stack.callback(context.close)
            page = context.new_page()
            page.set_default_timeout(SECONDS * 1000)
            made = Opened(page, file.as_uri(), [], [])
            page.on("console", lambda told: made.said.append(told.text))
            page.on("pageerror", lambda error: made.said.append(str(error)))
            page.on("request", lambda request: made.requests.append(request.url))
            page.goto(made.url)
            return made

        yield show
