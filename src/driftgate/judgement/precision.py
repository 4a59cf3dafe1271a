"""What to try on sensitive nodes: the precisions of the platform, and a quant_config to paste."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

from driftgate.domain.investigations import Explanation
from driftgate.domain.judgement import Finding
from driftgate.domain.platforms import PLATFORMS
from driftgate.messages.message import Message, message

SENSITIVE = "sensitive-nodes"
NODES = "nodes"  # the parameter of the trial that names them
ANY = ("int16",)


def quant_config(nodes: Sequence[str], precision: str) -> str:
    """The part of hb_compile's quant_config that computes these nodes in another precision, as JSON.

    Names are those of the optimized_float model; the form is that of the vendor's quant_config page.
    """
    return json.dumps({"node_config": {node: {"qtype": precision} for node in nodes}})


def advice(found: Explanation, target: str) -> Message | None:
    """What to paste first and to try after it; None where the explanation names no sensitive nodes."""
    nodes = next((value for trial in found.trials for name, value in trial.params if name == NODES), ())
    if found.code != SENSITIVE or not isinstance(nodes, tuple) or not nodes:
        return None
    first, *others = (PLATFORMS[target].precisions or ANY) if target in PLATFORMS else ANY
    fragment = quant_config(nodes, first)
    if others:
        return message("next-sensitive-then", precision=first, fragment=fragment, others=tuple(others))
    return message("next-sensitive-paste", precision=first, fragment=fragment)


def advised(findings: Sequence[Finding], explanations: Sequence[Explanation], target: str) -> tuple[Finding, ...]:
    """The findings, those of sensitive nodes with what to paste for this target."""
    told = {one.code: said for one in reversed(explanations) if (said := advice(one, target)) is not None}
    return tuple(replace(finding, next=told.get(finding.code, finding.next)) for finding in findings)
