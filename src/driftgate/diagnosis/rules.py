"""The table of rules, family by family; adding one touches its family's RULES only."""

from __future__ import annotations

from driftgate.diagnosis import cameras, device, evidence_rules, inputs, unseen_planes
from driftgate.diagnosis.graphs import rules as graphs
from driftgate.diagnosis.outputs import rules as outputs
from driftgate.diagnosis.quantisation import rules as quantisation
from driftgate.diagnosis.trials import Rule

RULES: tuple[Rule, ...] = (
    *evidence_rules.RULES,
    *device.RULES,
    *cameras.RULES,
    *unseen_planes.RULES,
    *inputs.RULES,
    *outputs.RULES,
    *quantisation.RULES,
    *graphs.RULES,
)
