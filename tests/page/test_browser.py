"""index.html in a browser: quiet, drawn, usable by mouse, keyboard and screen reader, on paper and without a script."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from driftgate.comparing.compare import compare_results
from driftgate.demo.faults import FAULTS
from driftgate.domain.results import Results
from driftgate.messages.text import CHINESE_LANGUAGE
from support.languages import NAMES, WORD
from support.pages import BOXES, many_nodes, node_name, picture, with_nodes, with_vendor_table
from support.results import HOSTILE, error, failing_pair, healthy, hostile_pair, results, several

if TYPE_CHECKING:
    from page.conftest import Open, Opened

    Checked = Callable[[str], Results]

#: The first node that is off in the graphs of `support.pages`.
OFF = 49
A4_PIXELS = 690
AXE = """axe.run({resultTypes: ["violations"]}).then(
  found => found.violations.map(one => `${one.id} ${one.nodes[0].html}`))"""
#: How many nodes the chart shows.
#: Operators, tensors and words of the demo, and a key, which have no other names in Chinese.
OF_THE_DEMO = {
    *("Add", "BatchNormalization", "Conv", "DequantizeLinear", "Flatten", "Gemm", "Input", "MaxPool", "Output", "Relu"),
    *("Esc", "bn", "default", "digits", "output", "pool", "quantized", "relu", "top"),
}
ZOOM = "((plot) => plot.scales.x.max - plot.scales.x.min)(document.querySelector('.errors').drawing.plot)"
FOCUSABLE = "a[href], button, input, select, summary, [tabindex='0']"


def vendor() -> Results:
    return results(with_vendor_table(failing_pair(), 120))


def everything() -> Results:
    """Every kind of subject on one page."""
    return results(
        with_nodes(failing_pair("first"), 12),
        with_vendor_table(failing_pair("second"), 20),
        hostile_pair(),
        failing_pair("third"),
    )


@pytest.mark.parametrize("fault", ["none", *FAULTS])
def test_a_page_of_the_demo_is_quiet_and_drawn(fault: str, opened: Open, checked: Checked) -> None:
    shown = opened(checked(fault))
    charts = shown.draw()
    assert charts >= 1
    assert len(shown.colours()) == charts
    assert min(shown.colours()) > 5
    shown.check()


def test_pages_of_other_kinds_are_quiet_and_drawn(opened: Open, large: Results) -> None:
    for made in (large, vendor(), everything(), healthy(), error(), several(), replace(healthy(), judgements=None)):
        shown = opened(made, pictures=(picture("0137", boxes=BOXES),))
        charts = shown.draw()
        assert len(shown.colours()) == charts
        assert min(shown.colours(), default=9) > 5
        shown.check()


def test_the_first_screen_answers(opened: Open, checked: Checked) -> None:
    shown = opened(checked("calibration-range"))
    answer = shown.page.locator(".answer")
    box = answer.bounding_box()
    assert box is not None and box["y"] + box["height"] < 900
    told = answer.inner_text()
    for word in ("Float ↔ INT8", "optimized_float → calibrated", "First diverging node", "calibrate again"):
        assert word in told
    chain = shown.page.locator("svg.chain.wide").bounding_box()
    assert chain is not None and chain["y"] + chain["height"] < 900


# --- nodes


def test_a_node_is_found_and_chosen(opened: Open, large: Results) -> None:
    shown = opened(large)
    page = shown.page
    section = page.locator(".nodes")
    assert section.locator(".hits").inner_text() == "5000 of 5000 nodes"
    assert section.locator("tbody tr").count() == 100
    section.locator(".more").click()
    assert section.locator("tbody tr").count() == 200
    page.get_by_role("searchbox").fill("CONV_4096")
    assert section.locator(".hits").inner_text() == "1 of 5000 nodes"
    (name,) = section.locator(".pick").all_inner_texts()
    assert name == node_name(4096)
    section.locator(".pick").click()
    readout = page.locator(".readout").inner_text()
    assert node_name(4096) in readout and "Conv" in readout
    assert page.get_by_role("slider", name="Own and whole error").get_attribute("aria-valuenow") == "4097"
    page.get_by_role("searchbox").press("Escape")
    assert section.locator(".hits").inner_text() == "5000 of 5000 nodes"
    page.get_by_role("searchbox").fill("no such node")
    assert section.locator(".hits").inner_text() == "0 of 5000 nodes"
    assert section.locator("tbody tr").count() == 0
    shown.check()


def test_names_of_the_script_are_those_of_the_results(opened: Open) -> None:
    """Names travel in parts, which must come together again."""
    shown = opened(results(with_nodes(failing_pair(), 90, lambda number: f"🙂{number % 7}/节点/{number}")))
    shown.page.locator(".nodes th", has_text="#").get_by_role("button").click()
    picked = shown.page.locator(".nodes .pick").all_inner_texts()
    assert picked == [f"🙂{number % 7}/节点/{number}" for number in range(90)]
    tensors = shown.page.locator(".nodes .tensor").all_inner_texts()
    assert tensors[5] == "🙂5/节点/5_output_0_DequantizeLinear_Output"


def test_the_table_is_sorted_by_its_heads(opened: Open) -> None:
    shown = opened(many_nodes(60))
    head = shown.page.locator(".nodes th", has_text="Total SQNR")
    head.get_by_role("button").click()
    assert head.get_attribute("aria-sort") == "ascending"
    ratios = [float(text) for text in shown.page.locator(".nodes tbody td:nth-child(5)").all_inner_texts()]
    assert ratios == sorted(ratios)
    head.get_by_role("button").click()
    assert head.get_attribute("aria-sort") == "descending"
    ratios = [float(text) for text in shown.page.locator(".nodes tbody td:nth-child(5)").all_inner_texts()]
    assert ratios == sorted(ratios, reverse=True)


def test_the_script_lists_what_the_page_had(opened: Open) -> None:
    """The rows that stand in the file are those that the script makes of its data."""
    made = many_nodes(60)
    alone, helped = opened(made, scripts=False), opened(made)
    rows = "tr => tr.map(one => [...one.cells].map(cell => cell.textContent))"
    before = alone.page.locator(".nodes tbody tr").all_inner_texts()
    after = helped.page.locator(".nodes tbody tr").evaluate_all(rows)
    assert len(before) == len(after) == 60
    assert ["".join(text.split()) for text in before] == ["".join("".join(row).split()) for row in after]


def test_hover_tells_a_node_and_leaving_returns_to_the_chosen(opened: Open) -> None:
    shown = opened(many_nodes(60))
    shown.draw()
    page = shown.page
    readout = page.locator(".readout")
    assert f"Concat {node_name(OFF)}" not in readout.inner_text()
    assert node_name(OFF) in readout.inner_text()
    plot = page.locator(".chart.errors .u-over")
    plot.hover(position={"x": 5, "y": 60})
    assert node_name(0) in readout.inner_text()
    for title in ("Node", "Tensor", "Own SQNR (dB)", "Inherited SQNR (dB)", "Total SQNR (dB)", "Channels"):
        assert title in readout.inner_text()
    page.mouse.move(2, 2)
    assert node_name(OFF) in readout.inner_text()
    plot.click(position={"x": 5, "y": 60})
    page.mouse.move(2, 2)
    assert node_name(0) in readout.inner_text()


def test_dragging_zooms_and_the_button_shows_all(opened: Open) -> None:
    shown = opened(many_nodes(60))
    shown.draw()
    page = shown.page
    plot = page.locator(".chart.errors .u-over")
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    assert box is not None
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] * 0.25, middle)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.75, middle, steps=5)
    page.mouse.up()
    shown.wait_for(f"{ZOOM} < 31")
    page.get_by_role("button", name="Whole graph").click()
    shown.wait_for(f"{ZOOM} === 60")
    plot.dblclick()
    shown.wait_for(f"{ZOOM} === 60")
    shown.check()


def test_the_histogram_follows_the_chosen_node(opened: Open) -> None:
    shown = opened(many_nodes(200))
    shown.draw()
    select = shown.page.locator("[data-spread]")
    assert node_name(OFF) in select.locator("option:checked").inner_text()
    shown.page.get_by_role("searchbox").fill(f"_{OFF + 50}/")
    shown.page.locator(".pick").click()
    assert node_name(OFF + 50) in select.locator("option:checked").inner_text()
    shown.page.locator(".bins summary").click()
    shown.wait_for("document.querySelectorAll('.bins tbody tr').length === 64")
    select.select_option(index=2)
    chosen = select.locator("option:checked").inner_text()
    assert chosen in str(shown.page.locator(".bins .scroll").get_attribute("aria-label"))
    assert shown.page.locator(".bins tbody tr").count() == 64
    shown.check()


def test_any_of_the_worst_nodes_has_its_histogram_and_channels(opened: Open) -> None:
    """Not only those that diverge."""
    shown = opened(many_nodes(200))
    shown.draw()
    select = shown.page.locator("[data-spread]")
    shown.page.get_by_role("searchbox").fill("_3/")
    shown.page.locator(".pick").first.click()
    name = shown.page.locator(".pick").first.inner_text()
    assert name in select.locator("option:checked").inner_text()
    strip = shown.page.locator(".channels .stripes")
    assert strip.get_attribute("aria-valuemax") == "256"
    strip.focus()
    for key, told in (("Home", "0: about ×40"), ("ArrowRight", "1: about ×20"), ("End", "255: about ×NaN")):
        shown.page.keyboard.press(key)
        assert shown.page.locator(".channels .told").inner_text() == f"Channel {told}"
    box = strip.bounding_box()
    assert box is not None
    shown.page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + 5)
    assert "Channel 128" in shown.page.locator(".channels .told").inner_text()
    worst = "getComputedStyle(document.querySelector('.stripes i.level4')).backgroundColor"
    assert shown.evaluate(worst) != shown.evaluate("getComputedStyle(document.body).backgroundColor")
    shown.check()


# --- keyboard


def test_the_page_is_used_by_the_keyboard_alone(opened: Open) -> None:
    shown = opened(many_nodes(60))
    page = shown.page
    keyboard = page.keyboard
    keyboard.press("Tab")
    assert shown.evaluate("document.activeElement.className") == "skip"
    keyboard.press("Enter")
    assert shown.evaluate("document.activeElement.id") == "results"
    keyboard.press("/")
    assert shown.evaluate("document.activeElement.type") == "search"
    keyboard.type("_7/")
    assert page.locator(".hits").inner_text() == "1 of 60 nodes"
    keyboard.press("Enter")
    assert node_name(7) in page.locator(".readout").inner_text()
    keyboard.press("Escape")
    assert page.locator(".hits").inner_text() == "60 of 60 nodes"

    slider = page.get_by_role("slider", name="Own and whole error")
    slider.focus()
    keyboard.press("ArrowRight")
    assert slider.get_attribute("aria-valuenow") == "9"
    assert node_name(8) in str(slider.get_attribute("aria-valuetext"))
    assert node_name(8) in page.locator(".readout").inner_text()
    keyboard.press("End")
    assert slider.get_attribute("aria-valuenow") == "60"
    keyboard.press("Home")
    assert slider.get_attribute("aria-valuenow") == "1"
    assert width_of(shown) == 60
    keyboard.press("+")
    assert width_of(shown) == 30
    keyboard.press("-")
    assert width_of(shown) == 60
    keyboard.press("+")
    keyboard.press("Escape")
    assert width_of(shown) == 60
    shown.check()


def width_of(shown: Opened) -> float:
    """How many nodes the chart shows."""
    shown.wait_for("document.querySelector('.errors').drawing.plot")
    return round(float(shown.evaluate(ZOOM)), 6)


def test_everything_is_reached_by_tab_and_shows_it(opened: Open) -> None:
    shown = opened(many_nodes(12), pictures=(picture("0137", boxes=BOXES),))
    shown.draw()
    shown.evaluate("document.activeElement.blur()")
    visible = f'[...document.querySelectorAll("{FOCUSABLE}")].filter(one => one.checkVisibility()).length'
    count = int(shown.evaluate(visible))
    assert count > 30
    reached = set()
    for _ in range(count):
        shown.page.keyboard.press("Tab")
        place = f'[...document.querySelectorAll("{FOCUSABLE}")].indexOf(document.activeElement)'
        reached.add(shown.evaluate(place))
        outline = "getComputedStyle(document.activeElement).outlineStyle"
        assert shown.evaluate(outline) != "none", shown.evaluate("document.activeElement.outerHTML.slice(0, 200)")
    assert len(reached - {-1}) == count


# --- screen readers


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 1280), ("light", 400), ("dark", 400)])
def test_axe_finds_nothing(scheme: str, width: int, opened: Open, checked: Checked, axe: str) -> None:
    made = [checked("calibration-range"), checked("board-padding"), checked("none"), everything(), vendor(), error()]
    for one in made:
        shown = opened(one, scheme=scheme, width=width, pictures=(picture("0137", boxes=BOXES),))
        shown.draw()
        shown.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
        shown.evaluate(axe)
        assert shown.evaluate(AXE) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_page_with_a_baseline_tells_what_moved(scheme: str, opened: Open, checked: Checked, axe: str) -> None:
    base, head = checked("none"), checked("calibration-range")
    compared = compare_results(base, head, labels=("main", "head"))
    shown = opened(replace(head, comparison=compared), scheme=scheme)
    shown.draw()
    section = shown.page.locator("section:not(.subject)", has=shown.page.locator("#s1-comparison"))
    assert "worse than main: 9 worse" in section.inner_text()
    assert "other artifacts: calibrated, ptq, quantized, hbm" in section.inner_text()
    cells = section.locator("tbody tr").first.locator("th, td").all_inner_texts()
    assert cells == ["worse", "check float-int8", "PASS", "FAIL", ""]
    shown.page.get_by_role("link", name="Against the baseline").click()
    assert shown.evaluate("document.querySelector('#s1-comparison').getBoundingClientRect().top") < 900
    shown.evaluate(axe)
    assert shown.evaluate(AXE) == []
    shown.check()


def test_axe_would_find_something(opened: Open, axe: str) -> None:
    shown = opened(healthy())
    shown.evaluate("document.querySelector('h1').style.color = '#eeeeee'")
    shown.evaluate(axe)
    assert [told.split()[0] for told in shown.evaluate(AXE)] == ["color-contrast"]


def test_the_picture_of_the_chain_is_told_in_words(opened: Open, checked: Checked) -> None:
    shown = opened(checked("board-padding"))
    tree = shown.page.locator("body").aria_snapshot()
    assert "The chain breaks first between quantized and hbm." in tree
    assert "quantized → hbm: FAIL" in tree


def test_a_chinese_page(opened: Open, checked: Checked, axe: str) -> None:
    shown = opened(checked("calibration-range"), language=CHINESE_LANGUAGE)
    shown.draw()
    assert shown.evaluate("document.documentElement.lang") == "zh-Hans"
    assert shown.page.locator(".hits").inner_text() == "13/13 个节点"
    shown.evaluate(axe)
    assert shown.evaluate(AXE) == []
    shown.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    shown.evaluate("document.querySelectorAll('code, option, pre').forEach(one => one.remove())")
    lines = shown.page.locator("body").inner_text().splitlines()
    words = WORD.findall("\n".join(line for line in lines if "CPUExecutionProvider" not in line))  # a machine's name
    assert sorted(set(words) - NAMES - OF_THE_DEMO) == []
    shown.check()


# --- looks


@pytest.mark.parametrize("width", [400, 800, 1280])
def test_nothing_is_wider_than_the_page(width: int, opened: Open) -> None:
    long = results(hostile_pair("x" * 5000), with_nodes(failing_pair(), 12, lambda number: f"{number}" * 3000))
    for made in (long, results(hostile_pair(HOSTILE)), many_nodes(60)):
        shown = opened(made, width=width)
        shown.draw()
        shown.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
        assert shown.evaluate("document.documentElement.scrollWidth") <= width


def test_charts_are_painted_anew_in_the_other_scheme(opened: Open, checked: Checked) -> None:
    shown = opened(checked("calibration-range"))
    shown.draw()
    picture_of = "document.querySelector('.errors canvas').toDataURL()"
    light = shown.evaluate(picture_of)
    shown.page.emulate_media(color_scheme="dark")
    shown.wait_for(f"{picture_of} !== {light!r}")
    shown.page.emulate_media(color_scheme="light")
    shown.wait_for(f"{picture_of} === {light!r}")


def test_it_prints_light_and_within_the_paper(opened: Open, checked: Checked) -> None:
    shown = opened(checked("calibration-range"), scheme="dark", width=A4_PIXELS)
    shown.page.emulate_media(media="print", color_scheme="dark")
    shown.wait_for("document.querySelectorAll('.chart canvas').length === 3")
    assert min(shown.colours()) > 5
    assert shown.evaluate("getComputedStyle(document.documentElement).backgroundColor") == "rgb(255, 255, 255)"
    assert shown.evaluate("document.documentElement.scrollWidth") <= A4_PIXELS
    assert not shown.page.locator(".contents").is_visible()
    assert not shown.page.get_by_role("searchbox").is_visible()
    assert shown.page.locator(".nodes tbody tr").count() == 13
    assert shown.page.pdf(prefer_css_page_size=True).startswith(b"%PDF")


def test_detections_of_a_stage_can_be_hidden(opened: Open) -> None:
    shown = opened(many_nodes(12), pictures=(picture("0137", boxes=BOXES),))
    drawn = shown.page.locator(".picture g.side.two rect")
    assert shown.page.locator(".picture g.side rect").count() == 3
    assert drawn.is_visible()
    shown.page.get_by_label("hbm (1)").uncheck()
    assert not drawn.is_visible()
    assert shown.page.locator(".picture g.side.one rect").first.is_visible()
    shown.check()


# --- without a script, and against one


def test_tables_and_chain_stand_without_a_script(opened: Open, checked: Checked) -> None:
    shown = opened(checked("calibration-range"), scripts=False)
    page = shown.page
    assert page.locator("svg.chain.wide").is_visible()
    assert page.locator(".notice", has_text="need JavaScript").is_visible()
    assert page.locator(".nodes tbody tr").count() == 13
    assert page.locator(".nodes .channel").count() > 20
    assert not page.get_by_role("searchbox").is_visible()
    assert page.get_by_text("Percentiles and ranges of the tensors").is_visible()


def test_no_foreign_script_runs(opened: Open) -> None:
    shown = opened(results(hostile_pair("<script>window.pwned = 1</script><img src=x onerror='window.pwned = 1'>")))
    planted = """() => {
      const script = document.createElement("script");
      script.textContent = "window.pwned = 1";
      document.body.append(script);
      document.body.insertAdjacentHTML("beforeend", "<p onclick='window.pwned = 1' id='planted'>x</p>");
      document.getElementById("planted").click();
    }"""
    shown.check()
    shown.page.evaluate(planted)
    assert shown.evaluate("window.pwned === undefined")
    assert any("Content Security Policy" in told for told in shown.said)
