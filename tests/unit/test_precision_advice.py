"""What is to be pasted for sensitive nodes: valid JSON, by platform."""

from __future__ import annotations

import json

import pytest

from driftgate.domain.investigations import Explanation, Trial, TrialResult
from driftgate.judgement.findings import ranked
from driftgate.judgement.precision import advised
from driftgate.messages.text import text

NODES = ('Conv "17"', "/head/Div")


def explanation(code: str = "sensitive-nodes") -> Explanation:
    made = Trial(code, "not rounded", (("nodes", NODES),), "t", 0.4, 0.05, 0.2, TrialResult.CONFIRMED)
    return Explanation(code, True, (), trials=(made,))


@pytest.mark.parametrize(
    ("platform", "first", "others"), [("J6M", "int16", None), ("J6P", "int16", "float16"), ("J6B", "int16", None)]
)
def test_a_fragment_names_every_node_with_the_precision_to_try(platform: str, first: str, others: str | None) -> None:
    told = [explanation()]
    (finding,) = advised(ranked("a..b", told), told, platform)
    assert finding.next is not None
    params = dict(finding.next.params)
    assert json.loads(str(params["fragment"])) == {"node_config": {name: {"qtype": first} for name in NODES}}
    assert ("float16" in text(finding.next)) == (others is not None)


def test_other_causes_keep_their_next_step() -> None:
    told = [explanation("outlier-range")]
    (finding,) = advised(ranked("a..b", told), told, "J6M")
    assert finding.next is not None
    assert finding.next.code == "next-outlier-range"
