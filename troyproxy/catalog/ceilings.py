"""What vendors document of their own limits: the ceiling of one plan, and how well that is known.

Reference only. What an account may really use its vendor alone knows, and says in rate-limit headers if at all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from typing import Final

STALE_DAYS: Final = 180
"""A ceiling that was verified longer ago than this is shown as stale."""


class Confidence(StrEnum):
    """How well a ceiling is known."""

    HIGH = "high"
    """The vendor's own page says it, and a dated reading of that page agrees."""
    MEDIUM = "medium"
    """One dated reading of the vendor's page."""
    LOW = "low"
    """Not, or no longer, on a public page of the vendor's; or readings disagree."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ceiling:
    """The documented limits of one plan. None: not documented, which is not the same as none."""

    plan: str
    models: str = "*"
    """A glob over model ids: which models it is about. Each of them has the ceiling for itself, unless *shared*."""
    shared: bool = False
    """The models share the ceiling."""
    per: str = "organization"
    """Whose ceiling it is: ``organization``, ``account``, ``project``, ``workspace`` or ``key``."""
    requests_per_day: int | None = None
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    confidence: Confidence
    verified_on: date
    """When somebody last read it where the vendor says it."""
    source_url: str
    note: str = ""

    def age_days(self, today: date) -> int:
        """Return for how many days nobody has looked."""
        return max(0, (today - self.verified_on).days)


Ceilings = Mapping[str, tuple[Ceiling, ...]]
"""Provider id → what is documented of its plans."""
