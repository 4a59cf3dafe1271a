"""Results: facts and judgement of every subject of a run, as they go to disk and come back."""

from __future__ import annotations

from dataclasses import dataclass

from driftgate.domain.comparisons import Changed, Comparison
from driftgate.domain.facts import Facts
from driftgate.domain.judgement import Judgement, Outcome

#: Outcome of a run → exit code.
EXIT_CODES = {Outcome.PASSED: 0, Outcome.FAILED: 1, Outcome.ERROR: 2, Outcome.SKIPPED: 2}


@dataclass(frozen=True, slots=True)
class Tool:
    """Which driftgate wrote a document, and in which language its reports are: en or zh, empty where nobody said."""

    name: str
    version: str
    language: str = ""


@dataclass(frozen=True, slots=True)
class Results:
    """One entry of `facts` and of `judgements` a subject and target; a shard has no judgements. `comparison`: with the
    baseline, where there was one. `pending`: what a change says of its own policy, while the base branch's holds."""

    tool: Tool
    facts: tuple[Facts, ...]
    judgements: tuple[Judgement, ...] | None = None
    comparison: Comparison | None = None
    pending: tuple[Changed, ...] = ()

    @property
    def outcome(self) -> Outcome:
        """The worst over all subjects: failed, then error, then passed; error where nothing was judged."""
        found = {judgement.outcome for judgement in self.judgements or ()}
        for outcome in (Outcome.FAILED, Outcome.ERROR, Outcome.SKIPPED, Outcome.PASSED):
            if outcome in found:
                return outcome
        return Outcome.ERROR

    @property
    def exit_code(self) -> int:
        """0 all required checks passed, 1 one failed, 2 something could not be established."""
        return EXIT_CODES[self.outcome]
