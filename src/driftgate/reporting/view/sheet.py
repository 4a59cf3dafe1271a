"""One subject as the page shows it: what the other reports show, with the chain's picture, charts and samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from driftgate.domain.judgement import Judgement
from driftgate.domain.pictures import Picture
from driftgate.domain.results import Results
from driftgate.reporting.view.answer import Answer, answer
from driftgate.reporting.view.chain import Chain, chain
from driftgate.reporting.view.comment import WORST_FIRST
from driftgate.reporting.view.drawing import Drawing, tall, wide
from driftgate.reporting.view.graph import Graph, graphs
from driftgate.reporting.view.page import Page, Subject, facts_of, shortened
from driftgate.reporting.view.samples import Samples, samples
from driftgate.reporting.view.spread import Spread, spreads
from driftgate.reporting.view.waterfall import Waterfall, waterfalls


@dataclass(frozen=True, slots=True)
class LinkGraph:
    """The nodes of one link, and the tensors of it whose values were counted; `id` is that of its part of the page."""

    id: str
    graph: Graph
    spreads: tuple[Spread, ...]


@dataclass(frozen=True, slots=True)
class Sheet:
    """One subject; `id` is that of its section. `drawings` are of the chain, by the page they are for: wide, tall."""

    id: str
    subject: Subject
    answer: Answer | None
    chain: Chain | None
    drawings: tuple[tuple[str, Drawing], ...]
    waterfalls: tuple[Waterfall, ...]
    graphs: tuple[LinkGraph, ...]
    samples: Samples


@dataclass(frozen=True, slots=True)
class Amount:
    """How much of each subject is shown: nodes of a graph, how many of them as rows, tensors, and lines of each folded
    table."""

    nodes: int
    rows: int
    tensors: int
    lines: int


def sheets(
    results: Results, whole: Page, amount: Amount, *, pictures: Sequence[Picture], kept: Sequence[Picture]
) -> tuple[Sheet, ...]:
    """Every subject of a page, the worst first; of `pictures` those are shown that are among the `kept`."""
    pairs = list(zip(results.judgements or (), shortened(whole, amount.lines).subjects, strict=True))
    pairs.sort(key=lambda pair: WORST_FIRST.index(pair[1].cell))
    return tuple(
        _sheet(f"s{place}", subject, judgement, results, amount, pictures=pictures, kept=kept)
        for place, (judgement, subject) in enumerate(pairs, 1)
    )


def _sheet(
    name: str,
    subject: Subject,
    judgement: Judgement,
    results: Results,
    amount: Amount,
    *,
    pictures: Sequence[Picture],
    kept: Sequence[Picture],
) -> Sheet:
    facts = facts_of(results, judgement)
    drawn = chain(judgement, facts)
    of_links = graphs(judgement, facts, most=amount.nodes, rows=amount.rows)
    return Sheet(
        id=name,
        subject=subject,
        answer=answer(subject),
        chain=drawn,
        drawings=() if drawn is None else (("wide", wide(drawn)), ("tall", tall(drawn))),
        waterfalls=waterfalls(judgement, facts),
        graphs=tuple(
            LinkGraph(f"{name}-g{place}", graph, spreads(graph.target, facts, amount.tensors))
            for place, graph in enumerate(of_links, 1)
        ),
        samples=samples(judgement, facts, pictures, kept),
    )
