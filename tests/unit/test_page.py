"""index.html: everything is on it, foreign names stay text, it keeps to its size, and it asks nobody for anything."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
import string
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from lxml.html import HtmlElement, document_fromstring

from driftgate import reporting
from driftgate.domain.judgement import CELLS, Finding, SegmentLoss
from driftgate.domain.pictures import Picture
from driftgate.domain.results import Results, Tool
from driftgate.domain.scores import Flip, Interval
from driftgate.errors import StorageError
from driftgate.escaping import html
from driftgate.messages.english import ENGLISH
from driftgate.messages.message import message
from driftgate.messages.text import CHINESE_LANGUAGE, in_language, text
from driftgate.reporting.chartdata import chart_data
from driftgate.reporting.page import IMAGES_LIMIT_BYTES, LIMIT_BYTES, html_page, scripts, styles
from driftgate.reporting.templates import folder
from driftgate.reporting.view.comment import WORST_FIRST
from driftgate.reporting.view.graph import level
from support.hostile import CORPUS, name
from support.languages import CHINESE
from support.measured import investigated, measured
from support.pages import BOXES, CHANNELS, many_nodes, node_name, picture, with_nodes, with_vendor_table
from support.results import (
    HOSTILE,
    crashed,
    error,
    failing,
    failing_pair,
    healthy,
    healthy_pair,
    hostile,
    hostile_pair,
    results,
    segment_two,
    several,
)

ALL = {
    "healthy": healthy,
    "failing": failing,
    "error": error,
    "segment two": segment_two,
    "crashed": crashed,
    "hostile": hostile,
    "several": several,
}
LINK = "quantized..hbm"
#: Characters that change what is seen without being seen, as far as no font is needed to show that.
HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ud800-\udfff]"
)
#: Sentences of the catalogue from this length on are looked for on Chinese pages.
SENTENCE = 18


def tree(page: bytes) -> HtmlElement:
    """The page as a browser's parser reads it."""
    return document_fromstring(page.decode("utf-8"))


def told(element: HtmlElement) -> str:
    """The text of an element, with single spaces."""
    return " ".join(str(element.text_content()).split())


def cells(row: HtmlElement) -> list[str]:
    """The texts of a row, or of whatever has parts."""
    return [told(cell) for cell in row]


def values(page: HtmlElement, path: str) -> list[str]:
    """The attributes that a path leads to."""
    return [str(value) for value in page.xpath(path)]


def data(page: HtmlElement) -> dict[str, Any]:
    """What the page's script is given."""
    (block,) = page.xpath("//script[@type='application/json']")
    return dict(json.loads(block.text))


def skeleton(page: HtmlElement) -> list[tuple[str, ...]]:
    """The elements with the names of their attributes, which no foreign name changes."""
    return [(str(one.tag), *sorted(map(str, one.attrib))) for one in page.iter() if isinstance(one.tag, str)]


def explained() -> Results:
    """A failure with a cause, losses, flips and intervals."""
    facts, judged = with_nodes(failing_pair(), 60)
    flip = Flip("0137", 2, "object", (True, False), (("pytorch", 0.4), ("hbm", -0.1)), ((4, 1.0),))
    scores = tuple(replace(score, interval=Interval(0.96, 0.99, "wilson")) for score in judged.scores)
    finding = Finding("device-op-error", LINK, True, (("difference at the node", 3.25, "of the range"),), ("relu4",))
    return results(
        (
            facts,
            replace(
                judged,
                scores=scores,
                findings=(finding,),
                flips=(flip,),
                flip_count=1,
                losses=(SegmentLoss("top1", 4, "quantized", "hbm", 0.0111, 1.0),),
            ),
        )
    )


@cache
def large() -> Results:
    return many_nodes(5000)


# --- what is on it


@pytest.mark.parametrize("made", ALL)
def test_every_subject_check_and_verdict_is_there(made: str) -> None:
    found = ALL[made]()
    page = tree(html_page(found))
    sections = page.xpath("//section[@class='subject']")
    assert len(sections) == len(found.judgements or ())
    worst_first = sorted(found.judgements or (), key=lambda one: WORST_FIRST.index(CELLS[one.outcome]))
    for section, judgement in zip(sections, worst_first, strict=True):
        if made != "hostile":
            assert told(section.xpath(".//*[@class='name']")[0]) == judgement.subject
        (rows,) = section.xpath(".//table[.//th[text()='Check']]/tbody")
        assert len(rows) == len(judgement.checks)
        for row, check in zip(rows, judgement.checks, strict=True):
            if made != "hostile":
                assert told(row[0]) == check.title
        verdicts = section.xpath(".//details//table[.//th[text()='Set by']]/tbody/tr")
        assert len(verdicts) == sum(len(check.verdicts) for check in judgement.checks)


def test_the_answer_comes_first() -> None:
    page = tree(html_page(explained()))
    (answer,) = page.xpath("//dl[contains(@class, 'answer')]")
    check, where, why, what = (told(part[1]) for part in answer)
    assert check == "BC ↔ HBM"
    assert where.startswith("quantized → hbm, logits, sample 0137, channel 3: max abs error 0.5625 (limit ≤ 1e-05)")
    assert where.endswith(f"First diverging node: Sigmoid {node_name(49)}")
    assert why == "one operator is computed wrong on the device (confirmed, device-op-error)"
    assert what.startswith("run it elsewhere or replace it")
    titles = [told(one) for one in page.xpath("//h2")]
    assert titles[:3] == ["The chain", "Checks", "Causes and next steps"]


def test_a_cause_stands_with_its_evidence_and_next_step() -> None:
    (cause,) = tree(html_page(explained())).xpath("//article[contains(@class, 'cause')]")
    said = told(cause)
    for part in ("confirmed", "device-op-error", "relu4", "difference at the node", "3.25 of the range", "→ run it"):
        assert part in said


def test_the_chain_is_a_picture_that_says_where_it_breaks() -> None:
    page = tree(html_page(failing()))
    for form in ("wide", "tall"):
        (picture_,) = page.xpath(f"//svg[contains(@class, '{form}')]")
        assert told(picture_.xpath("./title")[0]) == "The chain: The chain breaks first between quantized and hbm."
        assert "calibrated → quantized: PASS; quantized → hbm: FAIL" in told(picture_.xpath("./desc")[0])
        assert len(picture_.xpath("./rect")) == 7
        assert len(picture_.xpath("./rect[contains(@class, 'broken')]")) == 1
        assert [told(one) for one in picture_.xpath("./text[contains(@class, 'flag')]")] == ["first break"]
        assert "max abs error" in told(picture_)


def test_what_lies_behind_the_break_is_not_blamed() -> None:
    facts, judged = failing_pair()
    checks = list(judged.checks)
    broken = replace(checks[3].verdicts[0], outcome=checks[4].outcome)
    checks[3] = replace(checks[3], outcome=checks[4].outcome, verdicts=(broken, *checks[3].verdicts[1:]))
    checks[4] = replace(checks[4], hidden=True)
    page = tree(html_page(results((facts, replace(judged, checks=tuple(checks), first_failure="float-int8")))))
    (desc,) = page.xpath("//svg[contains(@class, 'wide')]/desc")
    assert told(desc).endswith("optimized_float → calibrated: FAIL; calibrated → quantized: -; quantized → hbm: -")
    assert len(page.xpath("//svg[contains(@class, 'wide')]/rect[contains(@class, 'behind')]")) == 2


def test_a_healthy_chain_breaks_nowhere() -> None:
    page = tree(html_page(healthy()))
    assert page.xpath("//rect[contains(@class, 'broken')]") == []
    assert page.xpath("//figcaption[contains(., 'breaks')]") == []
    assert "PASS 6 of 6" in told(page.xpath("//p[contains(@class, 'answer')]")[0])


def test_the_score_falls_with_intervals_flips_and_segments() -> None:
    page = tree(html_page(explained()))
    (fall,) = data(page)["waterfalls"].values()
    assert fall["stages"][-1] == "hbm" and fall["texts"][-1] == "352/360"
    assert fall["lows"] == [0.96] * 7
    assert fall["segments"] == [1, 1, 2, 2, 3, 3, 4]
    (row,) = page.xpath("//table[contains(caption, 'Where the score is lost')]/tbody/tr")
    assert cells(row) == ["4", "quantized → hbm", "0.0111", "100 %"]
    (flip,) = page.xpath("//table[.//th[text()='Item']]/tbody/tr")
    assert cells(flip) == ["0137", "object 2", "TP 0.4", "FN -0.1"]


def test_worst_nodes_stand_in_the_table_with_their_channels() -> None:
    page = tree(html_page(many_nodes(60)))
    rows = page.xpath("//*[@class='nodes']//tbody/tr")
    assert len(rows) == 60
    assert node_name(49) in told(rows[0]) and rows[0].get("class") == "off"
    assert [told(chip) for chip in rows[0].xpath(".//*[contains(@class, 'channel')]")][:2] == ["0×37.5", "1×18.8"]
    assert "level4" in rows[0].xpath(".//*[contains(@class, 'channel')]")[0].get("class")


@pytest.mark.parametrize(
    ("excess", "expected"), [(0.5, 0), (1.0, 0), (2.0, 1), (3.0, 1), (9.0, 2), (30.0, 3), (31.0, 4), (float("nan"), 4)]
)
def test_a_channel_has_a_level(excess: float, expected: int) -> None:
    assert level(excess) == expected


def test_the_graph_of_a_vendor_has_cosines() -> None:
    page = tree(html_page(results(with_vendor_table(failing_pair(), 30))))
    (graph,) = data(page)["graphs"].values()
    assert graph["vendor"] is True and graph["first"] == 0
    assert graph["cosine"][:3] == [0.9, 0.999, 0.999]
    assert "off: cosine below 0.99" in told(page)


def test_histograms_come_with_the_range_and_percentiles() -> None:
    page = tree(html_page(many_nodes(120)))
    (graph,) = data(page)["graphs"].values()
    worst = [f"{node_name(number)}_output_0_DequantizeLinear_Output" for number in (49, 99)]
    assert [one["tensor"] for one in graph["spreads"][:2]] == worst
    assert len(graph["spreads"]) == 120
    first = graph["spreads"][0]
    assert (first["low"], first["high"], len(first["reference"]), first["clip"]) == (-4, 4, 64, [-1.5, 1.5])
    (table,) = page.xpath("//table[.//th[text()='Percentile']]")
    assert len(table.xpath("./tbody/tr")) == 3 * 20  # the worst twenty
    assert "-1.5 … 1.5" in told(table)


def test_every_channel_of_the_worst_nodes_is_there_in_a_letter() -> None:
    page = tree(html_page(many_nodes(300)))
    (graph,) = data(page)["graphs"].values()
    assert len(graph["strips"]) == 200
    told = data(page)["strip"]
    strip = graph["strips"]["49"]
    assert len(strip) == len(CHANNELS) == 256
    assert strip[-1] not in told["letters"]
    for letter, excess in zip(strip[:-1], CHANNELS, strict=False):
        shown = 10 ** ((told["letters"].index(letter) - told["zero"]) / told["steps"])
        assert shown == pytest.approx(excess, rel=0.123)


@pytest.mark.parametrize(("excess", "letter"), [(0.0, "0"), (-1.0, "0"), (1e-9, "0"), (math.inf, "z"), (1e300, "z")])
def test_what_is_beyond_the_letters_is_the_last_of_them(excess: float, letter: str) -> None:
    (facts, judged) = with_nodes(failing_pair(), 3)
    (found,) = facts.investigations
    nodes = (replace(found.nodes[0], channel_excess=(1.0, excess)), *found.nodes[1:])
    page = tree(html_page(results((replace(facts, investigations=(replace(found, nodes=nodes),)), judged))))
    (graph,) = data(page)["graphs"].values()
    assert graph["strips"]["0"][1] == letter


def test_infinite_and_unknown_numbers_survive() -> None:
    (facts, judged) = with_nodes(failing_pair(), 3)
    (found,) = facts.investigations
    equal = replace(found.nodes[0], own=measured(facts, [0.0]).measurements[-1].rows, excess=float("inf"))
    blind = replace(found.nodes[1], own=None, excess=float("nan"), top_channels=())
    nodes = (equal, blind, found.nodes[2])
    page = tree(html_page(results((replace(facts, investigations=(replace(found, nodes=nodes),)), judged))))
    (graph,) = data(page)["graphs"].values()
    assert graph["own"][:2] == ["∞", None]
    assert graph["excess"][:2] == ["∞", None]


def test_worst_samples_come_with_their_changed_decisions() -> None:
    page = tree(html_page(explained()))
    (rows,) = page.xpath("//table[.//th[text()='Changed decisions']]/tbody")
    assert cells(rows[0]) == ["0137", "0.5625", "object 2: TP → FN"]
    assert len(rows) == 12


def test_pictures_show_what_each_stage_detects() -> None:
    page = tree(html_page(failing(), pictures=(picture("0137", boxes=BOXES),)))
    (figure,) = page.xpath("//figure[@class='picture']")
    assert len(figure.xpath(".//rect")) == 3
    assert [told(one) for one in figure.xpath(".//text")] == ["car 0.91", "person 0.75", "car 0.62"]
    (image,) = figure.xpath(".//image")
    assert base64.b64decode(image.get("href").partition(",")[2]) == picture("0137").png
    assert [told(one) for one in figure.xpath(".//label")] == ["quantized (2)", "hbm (1)"]


def test_pictures_of_other_subjects_and_boxes_that_are_nowhere_are_left_out() -> None:
    nowhere = ("hbm", float("nan"), 0.0, 1.0, 1.0, "car", 0.5)
    ours, other = picture("0137", boxes=(nowhere,)), replace(picture("0138"), subject="other")
    page = tree(html_page(failing(), pictures=(ours, other)))
    (figure,) = page.xpath("//figure[@class='picture']")
    assert figure.xpath(".//rect") == []


def test_several_subjects_are_listed_the_worst_first() -> None:
    page = tree(html_page(several()))
    (nav,) = page.xpath("//nav[@class='overview']")
    assert [cells(row)[0] for row in nav.xpath(".//tbody/tr")] == ["yolov8n", "lanes", "digits"]
    targets = values(nav, ".//a/@href")
    assert targets == ["#s1", "#s2", "#s3"]
    for target in targets:
        assert page.get_element_by_id(target[1:]).tag == "section"


@pytest.mark.parametrize("made", ALL)
def test_ids_are_unique_and_links_lead_somewhere(made: str) -> None:
    page = tree(html_page(ALL[made]()))
    ids = values(page, "//@id")
    assert len(ids) == len(set(ids))
    for link in values(page, "//@href"):
        if link.startswith("#"):
            assert link[1:] in ids
    for attribute in ("aria-labelledby", "aria-describedby"):
        for names in values(page, f"//@{attribute}"):
            assert set(names.split()) <= set(ids)


def test_a_shard_says_that_nobody_has_judged_it() -> None:
    page = tree(html_page(Results(Tool("driftgate", "0.1.0"), healthy().facts, None)))
    assert told(page.xpath("//h1")[0]) == "ERROR ERROR: nothing was judged"
    assert "run driftgate report" in told(page) and "digits · J6M" in told(page)


def test_a_judgement_without_facts_has_a_page() -> None:
    found = failing()
    page = tree(html_page(replace(found, facts=())))
    assert page.xpath("//svg[contains(@class, 'wide')]") == []
    assert "BC ↔ HBM" in told(page.xpath("//dl[contains(@class, 'answer')]")[0])


# --- nothing foreign is alive, and nobody is asked


@pytest.mark.parametrize("text_", [*CORPUS, HOSTILE], ids=name)
def test_foreign_text_changes_nothing_but_text(text_: str) -> None:
    made = html_page(named(text_), pictures=(photographed(text_),))
    assert not HIDDEN.search(made.decode("utf-8"))
    page = tree(made)
    other = "plain" if text_.strip() else text_
    plain = tree(html_page(named(other), pictures=(photographed(other),)))
    kept = [one for one in skeleton(page) if one[0] not in ("pre", "wbr")]
    assert kept == [one for one in skeleton(plain) if one[0] not in ("pre", "wbr")]
    assert data(page)["graphs"]["s1-g1"]["place"] == [0, 1]
    assert page.xpath("//*[@*[starts-with(name(), 'on')]]") == []
    assert page.xpath("//@style") == []
    assert outside(page) == []


def named(text_: str) -> Results:
    """A subject with `text_` for every name that a stranger chooses, also in charts and pictures."""
    facts, judged = investigated(*hostile_pair(text_), (text_, text_))
    (found,) = facts.investigations
    nodes = with_nodes(failing_pair(), 2)[0].investigations[0].nodes
    renamed = tuple(
        replace(node, op=text_, region=(text_,), excess=9.0, pair=replace(node.pair, tensor_a=text_, tensor_b=text_))
        for node in nodes
    )
    finding = Finding(text_, LINK, False, ((text_, 1.0, text_),), (text_,), message("x", fragment=text_))
    return results(
        (
            replace(facts, investigations=(replace(found, nodes=renamed),)),
            replace(judged, findings=(finding,)),
        )
    )


def photographed(text_: str) -> Picture:
    """A picture whose every name is `text_`."""
    box = (text_, 1.0, 2.0, 30.0, 40.0, text_, 0.5)
    return replace(picture("0137", boxes=(box,)), subject=text_, target=text_, sample=text_)


def outside(page: HtmlElement) -> list[str]:
    """What a browser would fetch or lead to, but for parts of the page and images in it."""
    attributes = ("href", "src", "action", "data", "srcset", "poster")
    found = [one for attribute in attributes for one in values(page, f"//@{attribute}")]
    return [one for one in found if not one.startswith(("#", "data:"))]


@pytest.mark.parametrize("made", ALL)
def test_nothing_is_fetched(made: str) -> None:
    page = tree(html_page(ALL[made](), pictures=(picture("0137"),)))
    assert outside(page) == []
    for sheet in styles():
        assert "@import" not in sheet.content and "url(" not in sheet.content


def test_no_text_ends_the_block_of_data() -> None:
    block = html.json_data({"a": "</script><!--<script>\u2028\u2029&", "b": [1.5, None, "\x00\u202e"]})
    assert not re.search("[<>&\u2028\u2029\x00\u202e]", block)
    assert json.loads(block)["a"].startswith("</script><!--<script>")
    with pytest.raises(ValueError, match="not JSON compliant"):
        html.json_data(float("nan"))


def test_only_our_own_scripts_and_styles_may_run() -> None:
    made = html_page(failing()).decode("utf-8")
    page = document_fromstring(made)
    (policy,) = values(page, "//meta[@http-equiv='Content-Security-Policy']/@content")
    rules: Mapping[str, list[str]] = {rule.split()[0]: rule.split()[1:] for rule in policy.split("; ")}
    assert rules["default-src"] == ["'none'"]
    assert rules["img-src"] == ["data:"]
    for tag, rule in (("style", "style-src"), ("script", "script-src")):
        contents = re.findall(rf"<{tag}>(.*?)</{tag}>", made, re.DOTALL)
        hashes = [base64.b64encode(hashlib.sha256(one.encode("utf-8")).digest()).decode() for one in contents]
        assert len(contents) == 2
        assert rules[rule] == [f"'sha256-{one}'" for one in hashes]
    assert page.xpath("//script[@src]") == [] and page.xpath("//link[@rel='stylesheet']") == []


def test_the_assets_end_nothing() -> None:
    for one in (*scripts(), *styles()):
        assert not re.search("</(script|style)|<!--", one.content, re.IGNORECASE)


def test_the_chart_library_is_the_pinned_one_with_its_licence() -> None:
    assets = folder().joinpath("assets")
    pinned = re.findall(r"\| `(uPlot[\w.]+)` \| `([0-9a-f]{64})` \|", assets.joinpath("README.md").read_text("utf-8"))
    assert len(pinned) == 3
    for file, digest in pinned:
        assert hashlib.sha256(assets.joinpath(file).read_bytes()).hexdigest() == digest
    assert "Permission is hereby granted" in scripts()[0].content


# --- size


def test_five_thousand_nodes_keep_to_the_size_and_none_is_left_out() -> None:
    made = html_page(large())
    assert len(made) <= LIMIT_BYTES
    (graph,) = data(tree(made))["graphs"].values()
    assert len(graph["place"]) == 5000
    assert "Shortened" not in made.decode("utf-8")


def test_a_page_that_is_too_long_shows_the_worst_nodes_and_says_so() -> None:
    made = html_page(large(), limit=400_000)
    assert len(made) <= 400_000
    page = tree(made)
    (graph,) = data(page)["graphs"].values()
    shown = len(graph["place"])
    assert 20 < shown < 5000
    assert f"these are the {shown} worst of 5000 nodes" in told(page.xpath("//*[@class='notice']")[1])
    assert sorted(graph["rank"]) == list(range(shown))
    assert graph["place"] == sorted(graph["place"]) and 49 in graph["place"]
    assert len(page.xpath("//table[.//th[text()='Check']]/tbody/tr")) == 6


def test_a_run_of_very_many_subjects_keeps_its_list() -> None:
    made = html_page(results(*[hostile_pair()] * 120))
    assert len(made) <= LIMIT_BYTES
    assert len(tree(made).xpath("//nav[@class='overview']//tbody/tr")) == 120


def test_a_list_that_does_not_fit_is_an_error() -> None:
    with pytest.raises(StorageError, match="longer than 20000 bytes"):
        html_page(failing(), limit=20_000)


def test_images_have_a_size_of_their_own_and_what_is_left_out_is_counted() -> None:
    pictures = tuple(picture(f"{number:04}", side=256, is_noise=True) for number in range(8))
    plain, made = len(html_page(large())), html_page(large(), pictures=pictures)
    page = tree(made)
    shown = len(page.xpath("//image"))
    assert 0 < shown < 8
    assert plain < len(made) <= plain + IMAGES_LIMIT_BYTES + 20_000 <= LIMIT_BYTES + IMAGES_LIMIT_BYTES
    assert f"{8 - shown} more pictures are left out" in told(page)
    (graph,) = data(page)["graphs"].values()
    assert len(graph["place"]) == 5000


def test_the_same_results_give_the_same_bytes() -> None:
    shown = (picture("0137", boxes=BOXES),)
    assert html_page(explained(), pictures=shown) == html_page(explained(), pictures=shown)


# --- language


@pytest.mark.parametrize("made", [explained, error, several, large, healthy, segment_two])
def test_a_chinese_page_says_nothing_in_english(made: Any) -> None:
    with in_language(CHINESE_LANGUAGE):
        page = tree(html_page(made(), pictures=(picture("0137", boxes=BOXES),)))
    assert page.get("lang") == "zh-Hans"
    for script in page.xpath("//script[not(@type)] | //style"):
        script.drop_tree()
    spoken = values(page, "//@aria-label | //@placeholder | //@data-how | //@data-name")
    whole = " ".join([told(page), *spoken])
    for code, sentence in ENGLISH.items():
        parts = [literal.strip() for literal, *_ in string.Formatter().parse(sentence)]
        for part in parts:
            if len(part) >= SENTENCE and part not in CHINESE[code]:
                assert part not in whole, code


def test_the_script_has_a_sentence_for_everything_it_says() -> None:
    script = folder().joinpath("assets").joinpath("page.js").read_text("utf-8")
    said = set(re.findall(r'"((?:page|column|score|mark)-[a-z-]+)"', script))
    texts = chart_data(())["texts"]
    assert isinstance(texts, dict)
    assert said == set(texts)


def test_every_sentence_of_the_page_is_used() -> None:
    templates = ("page.html.j2", "partials/page.html.j2", "assets/page.js", "summary.md.j2")
    sources = [folder().joinpath(file).read_text("utf-8") for file in templates]
    sources += [module.read_text("utf-8") for module in Path(str(reporting.__file__)).parent.rglob("*.py")]
    ours = [code for code in ENGLISH if code.startswith("page-")]
    assert [code for code in ours if f'"{code}"' not in "".join(sources)] == []


def test_no_word_of_the_templates_is_outside_of_the_catalogue() -> None:
    """What stands between tags and braces of the templates is punctuation."""
    for file in ("page.html.j2", "partials/page.html.j2"):
        source = folder().joinpath(file).read_text("utf-8")
        source = re.sub(r"\{#.*?#\}|\{%.*?%\}|\{\{.*?\}\}", "", source, flags=re.DOTALL)
        words = re.findall(r"[A-Za-z]{2,}", re.sub(r"<[^>]*>|&nbsp;", " ", source))
        assert words == []


def test_long_logs_are_shown_and_cut() -> None:
    page = tree(html_page(crashed()))
    assert "RuntimeError: out of memory" in page.xpath("//pre")[0].text_content()
    assert len(html.pre("x\n" * 9000)) < 20_000 < len(html.pre("x\n" * 9000, 30_000)) + 10_000


def test_sentences_keep_foreign_names_in_code() -> None:
    said = html.prose(message("page-break", reference="<b>", candidate="\ue0000\ue001"))
    assert said == "The chain breaks first between <code>&lt;b&gt;</code> and <code>\ue0000\ue001</code>."
    unknown = html.prose(message("no-such-code-\ue0007\ue001", x="<i>"))
    assert "<i>" not in unknown
    assert html.titled(message("page-break-at", stage='"x"')) == "The chain breaks first at &quot;x&quot;."
    assert text(message("page-title")) in html.finished(message("page-title"))


def test_two_healthy_subjects_do_not_share_ids() -> None:
    page = tree(
        html_page(results(with_nodes(failing_pair("a"), 5), with_nodes(failing_pair("b"), 5), healthy_pair("c")))
    )
    assert set(data(page)["graphs"]) == {"s1-g1", "s2-g1"}
    assert set(data(page)["waterfalls"]) == {"s1-w1", "s2-w1", "s3-w1"}
