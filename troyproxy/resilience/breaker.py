"""Circuit breakers: stop calling a (provider, model) that keeps failing, and find out with one probe when it is well.

Three states. **Closed**: calls go through and outcomes are counted in a sliding window. **Open**: nobody calls until
the wait is over. **Half-open**: exactly one call, the probe, decides.

`TRANSITIONS` below is the whole machine: `step` and `state_at` read it, and `diagram` draws the docs' diagram from it.
What the table cannot say:

*Time moves the machine only when somebody looks.* An open circuit whose wait is over **is** half-open, from that moment
on, for every reader (`state_at`), without a timer; `CircuitHalfOpened` is written when the first probe is asked for.

*The probe is a lease.* It lapses by itself, so a probe that nobody reports on cannot keep the circuit shut. It knows
since when it could be given: an attempt frees it only if it began no earlier, so a late answer of an older probe cannot
free the lease of the next one, and there are never two probes in flight unless the first outlived its own lease.

*Old news is no news.* Outcomes of attempts begun at or before the last opening are stale: they neither close, nor
reopen, nor count. A slow request that was sent before the outage says nothing about the time after it.

*Evidence and decision are two events.* A failure is counted; whether the circuit opens by it depends also on the
successes, and these are counted in memory but not journalled. So the decision is an event of its own: `decide` (in
``decide.py``) asks `step` once, live, and adds `CircuitOpened` with its deadline; `apply` never opens, half-opens or
closes a circuit for any other reason than such an event. A replay, which asks nobody, therefore opens exactly what was
open: three failures among forgotten thousands of successes cannot open it, and a circuit that did open comes back with
its remaining time. Doubling works on the wait in the event, so it survives too. What a restart forgets: leases, whose
holders died, and the successes of the last window, so that for one window a failing target opens sooner than it would.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from types import MappingProxyType
from typing import Final, NamedTuple

BUCKETS: Final = 60
"""The window is counted in so many slices, so its memory does not grow with the traffic."""


class CircuitState(StrEnum):
    """The three states; the metric numbers them 0, 1, 2 in the order given here."""

    CLOSED = "closed"
    HALF_OPEN = "half_open"
    OPEN = "open"


class Admission(StrEnum):
    """May a call go through? `PROBE`: yes, if the caller takes the lease first (`ProbeLeased`)."""

    ADMIT = "admit"
    PROBE = "probe"
    DENY = "deny"


class Outcome(StrEnum):
    """What an attempt says about its target."""

    SUCCESS = "success"
    FAILURE = "failure"
    NEUTRAL = "neutral"


class Signal(StrEnum):
    """What can happen to a circuit."""

    SUCCESS = "success"
    FAILURE = "failure"
    TRIP = "enough failures"
    WAIT_OVER = "wait over"
    LEASE = "probe leased"
    RETURN = "lease given back or lapsed"
    PROBE_SUCCESS = "probe succeeded"
    PROBE_FAILURE = "probe failed, twice the wait"
    CLEAR = "cleared"
    NEUTRAL = "neutral outcome"
    STALE = "outcome from before the opening"


_CLOSED, _OPEN, _HALF = CircuitState.CLOSED, CircuitState.OPEN, CircuitState.HALF_OPEN

TRANSITIONS: Final[Mapping[tuple[CircuitState, Signal], CircuitState]] = MappingProxyType(
    {
        (_CLOSED, Signal.SUCCESS): _CLOSED,
        (_CLOSED, Signal.FAILURE): _CLOSED,
        (_CLOSED, Signal.NEUTRAL): _CLOSED,
        (_CLOSED, Signal.STALE): _CLOSED,
        (_CLOSED, Signal.TRIP): _OPEN,
        (_OPEN, Signal.STALE): _OPEN,
        (_OPEN, Signal.WAIT_OVER): _HALF,
        (_OPEN, Signal.CLEAR): _CLOSED,
        (_HALF, Signal.LEASE): _HALF,
        (_HALF, Signal.RETURN): _HALF,
        (_HALF, Signal.STALE): _HALF,
        (_HALF, Signal.PROBE_SUCCESS): _CLOSED,
        (_HALF, Signal.PROBE_FAILURE): _OPEN,
        (_HALF, Signal.CLEAR): _CLOSED,
    }
)

_CLOSED_SIGNALS: Final[Mapping[Outcome, Signal]] = MappingProxyType(
    {
        Outcome.SUCCESS: Signal.SUCCESS,
        Outcome.FAILURE: Signal.FAILURE,
        Outcome.NEUTRAL: Signal.NEUTRAL,
    }
)
_PROBE_SIGNALS: Final[Mapping[Outcome, Signal]] = MappingProxyType(
    {
        Outcome.SUCCESS: Signal.PROBE_SUCCESS,
        Outcome.FAILURE: Signal.PROBE_FAILURE,
        Outcome.NEUTRAL: Signal.RETURN,
    }
)


@dataclass(frozen=True, slots=True)
class BreakerPolicy:
    """When to open and for how long; all ``_s`` in seconds. *ratio* is failures over all outcomes, 0 to 1."""

    failures: int = 3
    ratio: float = 0.5
    window_s: float = 60.0
    open_s: float = 30.0
    max_open_s: float = 300.0


DEFAULT_POLICY: Final = BreakerPolicy()


class Bucket(NamedTuple):
    """One slice of the window; *last* is the time of its latest outcome."""

    slot: int
    last: float
    ok: int
    failed: int


class Lease(NamedTuple):
    """The probe's permit. No holder began before *since*: the end of the wait, or of the lease that lapsed before."""

    since: float
    until: float


@dataclass(frozen=True, slots=True)
class Breaker:
    """One circuit. *opened_at* is the last opening, kept after closing: it tells stale outcomes from fresh ones."""

    stored: CircuitState = CircuitState.CLOSED
    window: tuple[Bucket, ...] = ()
    opened_at: float | None = None
    until: float = 0.0
    open_s: float = 0.0
    lease: Lease | None = None


FRESH: Final = Breaker()


def state_at(breaker: Breaker, now: float) -> CircuitState:
    """Return the state as any reader must see it at *now*."""
    if breaker.stored is _OPEN and now >= breaker.until:
        return TRANSITIONS[_OPEN, Signal.WAIT_OVER]
    return breaker.stored


def admission(breaker: Breaker, now: float) -> Admission:
    """Return whether a call may start at *now*."""
    match state_at(breaker, now):
        case CircuitState.CLOSED:
            return Admission.ADMIT
        case CircuitState.OPEN:
            return Admission.DENY
        case _:
            return Admission.DENY if _leased(breaker, now) else Admission.PROBE


def denied_until(breaker: Breaker, now: float) -> float | None:
    """Return when a denied call may be asked for again; None when none is denied at *now*."""
    if admission(breaker, now) is not Admission.DENY:
        return None
    if breaker.lease is not None and state_at(breaker, now) is _HALF:
        return breaker.lease.until
    return breaker.until


def _leased(breaker: Breaker, now: float) -> bool:
    return breaker.lease is not None and now < breaker.lease.until


def is_stale(breaker: Breaker, started_at: float) -> bool:
    """Whether an attempt begun at *started_at* is older than the last opening."""
    return breaker.opened_at is not None and started_at <= breaker.opened_at


def signal_of(breaker: Breaker, outcome: Outcome, *, at: float, started_at: float, policy: BreakerPolicy) -> Signal:
    """Return what *outcome* is to this circuit."""
    state = state_at(breaker, at)
    if state is _OPEN or is_stale(breaker, started_at):
        return Signal.STALE
    if state is _HALF:
        return _PROBE_SIGNALS[outcome]
    if outcome is Outcome.FAILURE and trips(counted(breaker, outcome, at, policy), policy):
        return Signal.TRIP
    return _CLOSED_SIGNALS[outcome]


def step(breaker: Breaker, signal: Signal, now: float) -> CircuitState:
    """Return the state after *signal*; what the table does not list changes nothing."""
    state = state_at(breaker, now)
    return TRANSITIONS.get((state, signal), state)


def trips(breaker: Breaker, policy: BreakerPolicy) -> bool:
    """Whether the window holds enough failures, and enough of them among all outcomes, to open."""
    failed = sum(bucket.failed for bucket in breaker.window)
    total = failed + sum(bucket.ok for bucket in breaker.window)
    return failed >= policy.failures and failed >= policy.ratio * total


def next_open_s(breaker: Breaker, at: float, policy: BreakerPolicy) -> float:
    """Return how long the circuit stays open if it opens at *at*: doubled when it was a probe that failed."""
    if state_at(breaker, at) is _HALF:
        return min(breaker.open_s * 2, policy.max_open_s)
    return min(policy.open_s, policy.max_open_s)


def counted(breaker: Breaker, outcome: Outcome, at: float, policy: BreakerPolicy, *, times: int = 1) -> Breaker:
    """Return *breaker* with one more outcome in its window, and without what has left the window.

    *times*: so many equal ones of one slice at once, the latest at *at*.
    """
    slot = int(at * BUCKETS / policy.window_s)
    kept = [bucket for bucket in breaker.window if bucket.last > at - policy.window_s]
    # A clock set back must not make a second, older tail: such outcomes go to the newest slice.
    bucket = kept.pop() if kept and kept[-1].slot >= slot else Bucket(slot, at, 0, 0)
    ok, failed = (0, times) if outcome is Outcome.FAILURE else (times, 0)
    bucket = Bucket(bucket.slot, max(bucket.last, at), bucket.ok + ok, bucket.failed + failed)
    return replace(breaker, window=(*kept, bucket))


def after_outcome(
    breaker: Breaker, outcome: Outcome, *, at: float, started_at: float, policy: BreakerPolicy
) -> Breaker:
    """Return *breaker* after an attempt's outcome, as evidence only: counted, or the lease given back."""
    match signal_of(breaker, outcome, at=at, started_at=started_at, policy=policy):
        case Signal.RETURN:
            return returned(breaker, started_at)
        case Signal.SUCCESS | Signal.FAILURE | Signal.TRIP:
            return counted(breaker, outcome, at, policy)
        case _:
            return breaker


def opened(breaker: Breaker, *, at: float, until: float, open_s: float) -> Breaker:
    """Return *breaker* open. Of two openings the later ``until`` stays, with its wait: nobody shortens another's."""
    until, open_s = max((until, open_s), (breaker.until, breaker.open_s))
    since = at if breaker.opened_at is None else max(at, breaker.opened_at)
    after = Breaker(_OPEN, (), since, until, open_s)
    return breaker if after == breaker else after


def half_opened(breaker: Breaker, at: float) -> Breaker:
    """Return *breaker* half-open, if its wait is over."""
    if breaker.stored is not _OPEN or state_at(breaker, at) is _OPEN:
        return breaker
    return replace(breaker, stored=_HALF)


def closed(breaker: Breaker, at: float) -> Breaker:
    """Return *breaker* closed with an empty window, unless it was opened after *at*."""
    if breaker.stored is _CLOSED or (breaker.opened_at or at) > at:
        return breaker
    return Breaker(opened_at=breaker.opened_at)


def leased(breaker: Breaker, *, at: float, until: float) -> Breaker:
    """Return *breaker* with its probe handed out at *at*, if there was one to hand out."""
    if admission(breaker, at) is not Admission.PROBE:
        return breaker
    since = breaker.until if breaker.lease is None else breaker.lease.until
    return replace(breaker, lease=Lease(since, until))


def returned(breaker: Breaker, started_at: float) -> Breaker:
    """Return *breaker* with the lease free again, if the attempt begun at *started_at* can be its holder."""
    if breaker.lease is None or started_at < breaker.lease.since:
        return breaker
    return replace(breaker, lease=None)


def diagram() -> str:
    """Return the machine as a Mermaid state diagram, drawn from `TRANSITIONS`."""
    lines = ["stateDiagram-v2", f"    [*] --> {_CLOSED}"]
    lines += [f"    {old} --> {new}: {signal}" for (old, signal), new in TRANSITIONS.items()]
    return "\n".join(lines) + "\n"
