"""Self-healing: candidates that score or serve too badly are left out for a while, and come back by a probe.

A state machine without a clock. Terms are 5, 10, 20, 30, 30 … minutes for the n-th exclusion in a row. When a term is
over the first request through is the probe; one is in flight at a time, and a lease ends if nothing is heard of it.
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
    return Record(row=row, until=now + term_s)


def attempted(record: Record, now: float, *, ok: bool) -> Record:
    """Return *record* after an attempt that counts: a probe decides, others are judged together."""
    if record.until is not None:
        return _probed(record, now, ok=ok)
    kept = tuple(outcome for outcome in record.outcomes if outcome[0] > now - WINDOW_S)
    latest = (*kept, (now, ok))[-WINDOW:]
    succeeded = sum(1 for _, good in latest if good)
    if len(latest) >= ENOUGH and succeeded < LEAST_SUCCESS * len(latest):
        return excluded(record, now)
    return replace(record, outcomes=latest)


def leased(record: Record, now: float, *, normal_s: float) -> Record:
    """Return *record* with its probe in flight; *normal_s* is how long an attempt usually may take."""
    return replace(record, probe_until=now + probe_limit_s(normal_s))


def returned(record: Record) -> Record:
    """Return *record* whose probe came to nothing that counts: the next request is the probe."""
    return replace(record, probe_until=None)


def probe_limit_s(normal_s: float) -> float:
    """Return how long a probe may take."""
    return max(PROBE_LEAST_S, PROBE_SHARE * normal_s)


def _probed(record: Record, now: float, *, ok: bool) -> Record:
    """A success re-admits. A failure counts only once the term is over: stragglers of before say nothing new."""
    if ok:
        return FRESH
    return excluded(record, now) if record.until is not None and now >= record.until else record
