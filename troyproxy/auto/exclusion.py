"""Self-healing: candidates that score or serve too badly are left out for a while, and come back by a probe.

A state machine without a clock. Terms are 5, 10, 20, 30, 30 … minutes for the n-th exclusion in a row. When a term is
over the first request through is the probe; one is in flight at a time, and a lease ends if nothing is heard of it.

What began before an exclusion says nothing new of it, whichever way it ends.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

TERMS_S: Final = (300.0, 600.0, 1200.0, 1800.0)
LEAST_SCORE: Final = 0.2
WINDOW: Final = 20
"""Attempts that are looked at, at most."""
WINDOW_S: Final = 600.0
ENOUGH: Final = 5
"""Attempts without which nothing is concluded."""
LEAST_SUCCESS: Final = 0.2
CLEAN_S: Final = 3600.0
PROBE_LEAST_S: Final = 5.0
PROBE_SHARE: Final = 0.25


class Place(StrEnum):
    """Where a candidate stands."""

    IN = "in"
    OUT = "out"
    PROBE = "probe"
    """Its term is over: the next request through it is the probe."""


@dataclass(frozen=True, slots=True)
class Record:
    """What is remembered of one candidate. *until* None: it is in."""

    outcomes: tuple[tuple[float, bool], ...] = ()
    """(at, succeeded) of the latest attempts, oldest first."""
    row: int = 0
    """How many exclusions in a row this is, or was."""
    until: float | None = None
    probe_until: float | None = None
    """The lease of a probe in flight."""
    since: float = 0.0
    """When the exclusion began, or the lease: attempts that began earlier are none of its business."""


FRESH: Final = Record()


def place(record: Record, now: float) -> Place:
    """Return where the candidate stands at *now*."""
    if record.until is None:
        return Place.IN
    leased = record.probe_until is not None and record.probe_until > now
    return Place.OUT if now < record.until or leased else Place.PROBE


def excluded(record: Record, now: float) -> Record:
    """Return *record* excluded for its next term; the ladder begins anew after a clean hour."""
    clean = record.until is not None and now - record.until >= CLEAN_S
    row = 1 if clean else record.row + 1
    term_s = TERMS_S[min(row, len(TERMS_S)) - 1]
    return Record(row=row, until=now + term_s, since=now)


def attempted(record: Record, now: float, *, ok: bool, began: float | None = None) -> Record:
    """Return *record* after an attempt that counts: a probe decides, others are judged together.

    *began*: when the attempt did; None = at *now*.
    """
    if record.until is not None:
        straggler = began is not None and began < record.since
        return record if straggler else _probed(record, now, ok=ok)
    kept = [outcome for outcome in record.outcomes if outcome[0] > now - WINDOW_S]
    latest = (*kept, (now, ok))[-WINDOW:]
    succeeded = sum([good for _, good in latest])
    if len(latest) >= ENOUGH and succeeded < LEAST_SUCCESS * len(latest):
        return excluded(record, now)
    return Record(latest, record.row)


def leased(record: Record, now: float, *, limit_s: float) -> Record:
    """Return *record* with its probe in flight, for as long as that may take."""
    return replace(record, probe_until=now + limit_s, since=now)


def returned(record: Record, *, began: float | None = None) -> Record:
    """Return *record* whose probe came to nothing that counts: the next request is the probe.

    *began*: when the attempt did that came to nothing; an older one was not the probe.
    """
    if record.probe_until is None or (began is not None and began < record.since):
        return record
    return replace(record, probe_until=None)


def probe_limit_s(normal_s: float) -> float:
    """Return how long a probe may take; *normal_s* is how long an attempt may otherwise."""
    return max(PROBE_LEAST_S, PROBE_SHARE * normal_s)


def _probed(record: Record, now: float, *, ok: bool) -> Record:
    """A success re-admits. A failure counts only once the term is over."""
    if ok:
        return FRESH
    return excluded(record, now) if record.until is not None and now >= record.until else record
