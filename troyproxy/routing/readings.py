"""What is measured of a unit, as strategies see it: load, luck, speed, price, and how full its quotas are.

Plain numbers, taken by somebody else. None is unknown, and unknown stays unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from troyproxy.routing.members import Candidate, Unit, leaves

T = TypeVar("T", int, float)

NEARLY_EMPTY: Final = 0.02
"""The remaining fraction up to which an upstream's window counts as used up."""


@dataclass(frozen=True, slots=True)
class Quota:
    """One quota window of an account. *remaining* is a fraction; *reset_at* unix seconds; *length_s* its length."""

    name: str
    remaining: float
    reset_at: float | None = None
    length_s: float | None = None
    own: bool = False
    """Counted by us, exactly; otherwise it is what the upstream said."""

    def used_up(self) -> bool:
        """Whether nothing is left: of our own counts exactly nothing, of what an upstream says nearly nothing."""
        return self.remaining <= (0.0 if self.own else NEARLY_EMPTY)


@dataclass(frozen=True, slots=True)
class Reading:
    """What is known of one candidate now."""

    inflight: int = 0
    recent: int = 0
    """Requests in the last 60 minutes."""
    last_used_at: float = 0.0
    success_rate: float | None = None
    p50_ms: float | None = None
    half_open: bool = False
    cost_usd: float | None = None
    """What this request would cost there."""
    quotas: tuple[Quota, ...] = ()
    """Windows whose reset has not passed."""
    barred_until: float | None = None
    """An upstream said that the quota is gone, until then."""


UNKNOWN: Final = Reading()

Read = Callable[[Candidate], Reading]
"""Takes the reading of one candidate."""


def nothing_read(candidate: Candidate) -> Reading:
    """Return that nothing is known of *candidate*."""
    del candidate
    return UNKNOWN


def reading_of(unit: Unit, read: Read) -> Reading:
    """Return what is known of *unit*. A combo carries what its members carry, and is as good as the best of them."""
    if isinstance(unit, Candidate):
        return read(unit)
    inner = [read(leaf) for leaf in leaves(unit)]
    if not inner:
        return UNKNOWN
    freest = min(inner, key=_fullness)
    return Reading(
        inflight=sum(one.inflight for one in inner),
        recent=sum(one.recent for one in inner),
        last_used_at=max(one.last_used_at for one in inner),
        success_rate=_most([one.success_rate for one in inner]),
        p50_ms=_least([one.p50_ms for one in inner]),
        half_open=all(one.half_open for one in inner),
        cost_usd=_least([one.cost_usd for one in inner]),
        quotas=freest.quotas,
        barred_until=freest.barred_until,
    )


def full_until(reading: Reading) -> float | None:
    """Return when an account that is full comes back (infinity: not known), or None when it is not full."""
    ends = [quota.reset_at for quota in reading.quotas if quota.used_up()]
    if reading.barred_until is not None:
        ends.append(reading.barred_until)
    if not ends:
        return None
    return max(float("inf") if end is None else end for end in ends)


def _fullness(reading: Reading) -> tuple[bool, float]:
    least = min((quota.remaining for quota in reading.quotas), default=1.0)
    return full_until(reading) is not None, -least


def _most(values: Sequence[T | None]) -> T | None:
    return max((value for value in values if value is not None), default=None)


def _least(values: Sequence[T | None]) -> T | None:
    return min((value for value in values if value is not None), default=None)
