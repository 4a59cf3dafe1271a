"""The `waivers` section: known failures, each with a reason, somebody who answers for it, and its last day."""

from __future__ import annotations

import datetime

from pydantic import Field, model_validator

from driftgate.domain.judgement import Waiver, WaiverKind
from driftgate.settings.policies import LinkLimits
from driftgate.settings.section import Section


class WaiverSettings(Section):
    """A waiver of one check, link or finding."""

    subject: str = Field(description="the subject that it is of")
    target: str = Field(default="", description="the platform that it is of; without it, every one")
    check: str | None = Field(default=None, description="the slug of the check that may fail")
    link: str | None = Field(default=None, description="the link `stage..stage` that may fail")
    finding: str | None = Field(default=None, description="the code of a confirmed cause for which a link may fail")
    reason: str = Field(min_length=1, description="why it may fail")
    owner: str = Field(min_length=1, description="who answers for it")
    expires: datetime.date = Field(description="the last day on which it holds")
    limit: LinkLimits = Field(
        default_factory=dict, description="how bad it may be, by criterion; without it, however bad"
    )

    @model_validator(mode="after")
    def _of_one_thing(self) -> WaiverSettings:
        given = [name for name in ("check", "link", "finding") if getattr(self, name) is not None]
        if len(given) != 1:
            found = " and ".join(given) or "none of them"
            raise ValueError(f"a waiver is of one check, link or finding; this has {found}")
        return self

    @property
    def waiver(self) -> Waiver:
        """As judgement knows it."""
        kind = next(kind for kind in WaiverKind if getattr(self, kind.value) is not None)
        return Waiver(
            subject=self.subject,
            target=self.target,
            kind=kind,
            on=str(getattr(self, kind.value)),
            reason=self.reason,
            owner=self.owner,
            expires=self.expires.isoformat(),
            limits=tuple(sorted(self.limit.items())),
        )
