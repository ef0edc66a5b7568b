"""What is done about a leak: the modes, and the words for what was done."""

from __future__ import annotations

from enum import StrEnum
from typing import NoReturn


class LeakMode(StrEnum):
    """What is done about a leak. A name that is none of these raises ValueError with the allowed ones."""

    OFF = "off"
    OBSERVE = "observe"
    """Count, change nothing."""
    SUPPRESS = "suppress"
    """Drop the text of the call."""
    REPAIR = "repair"
    """Make it a real call, where every check passes."""
    FAILOVER = "failover"
    """Ask the next member, while nothing was sent."""
    AUTO = "auto"
    """Fail over while somebody is left, else repair, else suppress."""

    @property
    def rejects(self) -> bool:
        """Whether a leak sends the walk to the next member at once."""
        return self in {LeakMode.FAILOVER, LeakMode.AUTO}

    @classmethod
    def _missing_(cls, value: object) -> NoReturn:
        raise ValueError(f"unknown leak mode {value!r}; allowed: {', '.join(cls)}")


class LeakAction(StrEnum):
    """What was done about a leak; the label `action` of ``tool_leaks_total``."""

    REPAIRED = "repaired"
    FAILED_OVER = "failed_over"
    SUPPRESSED = "suppressed"
    OBSERVED = "observed"
