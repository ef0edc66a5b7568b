"""What happened to upstreams, as frozen facts with a time, and their form in the journal.

An event carries its whole effect (duration after jitter, level reached, whether it counts against the breaker), so that
folding it later needs neither chance nor the table of that day, and an old log that was pruned folds to the same state.
What an event does to the state is in ``health.py``; which other events follow from one is `health.decide`.

All ``at``, ``until`` and ``started_at`` are unix seconds. ``started_at`` is when the attempt began, not when it ended.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Final, Protocol, TypeAlias

import msgspec

from troyproxy.resilience.classes import ErrorClass, Scope

VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class Failed:
    """An attempt failed.

    *cooldown_s* is the lock's duration, jittered and capped already; None sets no lock. *level* is the back-off level
    reached by it. *counts* says whether the breaker takes it for a failure. Build it with `health.failure_event`.
    """

    at: float
    provider: str
    model: str
    account: str
    error_class: ErrorClass
    hint_s: float | None
    cooldown_s: float | None
    soft: bool
    scope: Scope
    started_at: float
    level: int = 0
    counts: bool = False


@dataclass(frozen=True, slots=True)
class Succeeded:
    """An attempt gave its first output (a stream) or a valid body."""

    at: float
    provider: str
    model: str
    account: str
    started_at: float


@dataclass(frozen=True, slots=True)
class CircuitOpened:
    """A circuit opened, or reopened after a failed probe, until *until*; a failed probe doubles *open_s*."""

    at: float
    provider: str
    model: str
    until: float
    open_s: float


@dataclass(frozen=True, slots=True)
class CircuitHalfOpened:
    """The wait of an open circuit was over and a probe was asked for."""

    at: float
    provider: str
    model: str


@dataclass(frozen=True, slots=True)
class CircuitClosed:
    """A probe succeeded, or an operator cleared the circuit."""

    at: float
    provider: str
    model: str


@dataclass(frozen=True, slots=True)
class ProbeLeased:
    """The half-open circuit's one probe was handed out; it lapses by itself at *until*."""

    at: float
    provider: str
    model: str
    until: float


@dataclass(frozen=True, slots=True)
class ProbeReturned:
    """The attempt begun at *started_at* ended without an outcome (hang-up, local error): its lease is free again."""

    at: float
    provider: str
    model: str
    started_at: float


@dataclass(frozen=True, slots=True)
class Cleared:
    """An operator or a changed account lifted locks; None matches all.

    With an *account*, only that account's cooldowns go; without one, benches and circuits that match go too.
    """

    at: float
    provider: str | None = None
    account: str | None = None
    model: str | None = None


@dataclass(frozen=True, slots=True)
class Locked:
    """A lock as another instance has it, until *until*; ``*`` as *account* or *model* means all of them.

    It is what instances share of each other's failures (``shared.py``): the effect, not what was counted on the way.
    """

    at: float
    provider: str
    account: str
    model: str
    until: float
    soft: bool
    error_class: ErrorClass


Event: TypeAlias = (
    Failed
    | Succeeded
    | CircuitOpened
    | CircuitHalfOpened
    | CircuitClosed
    | ProbeLeased
    | ProbeReturned
    | Cleared
    | Locked
)
CircuitEvent: TypeAlias = CircuitOpened | CircuitHalfOpened | CircuitClosed | ProbeLeased | ProbeReturned


class LevelView(Protocol):
    """The one thing journalling asks of the state; `health.Health` is one."""

    def has_level(self, provider: str, account: str, model: str) -> bool:
        """Whether a success of this pair would clear a back-off level."""
        ...


def is_journalled(before: LevelView, event: Event) -> bool:
    """Whether *event*, about to be applied to *before*, belongs in the durable journal.

    Leases die with the process that holds them, and others' locks are in others' journals. Successes are too many; only
    one that clears a level changes what a restart must know. A failure that neither cools nor counts (a client's bad
    request) changes nothing.
    """
    match event:
        case ProbeLeased() | ProbeReturned() | Locked():
            return False
        case Succeeded():
            return before.has_level(event.provider, event.account, event.model)
        case Failed():
            return event.counts or event.cooldown_s is not None
        case _:
            return True


_TYPES: Final[Mapping[str, type[Event]]] = {
    "failed": Failed,
    "succeeded": Succeeded,
    "circuit_opened": CircuitOpened,
    "circuit_half_opened": CircuitHalfOpened,
    "circuit_closed": CircuitClosed,
    "probe_leased": ProbeLeased,
    "probe_returned": ProbeReturned,
    "cleared": Cleared,
    "locked": Locked,
}
_NAMES: Final[Mapping[type[Event], str]] = {kind: name for name, kind in _TYPES.items()}


def type_name(event: Event) -> str:
    """Return the event's name in the journal and in metrics, such as ``circuit_opened``."""
    return _NAMES[type(event)]


def to_record(event: Event) -> dict[str, object]:
    """Return *event* as a JSON-safe object: ``{"v": 1, "type": …}`` and its fields."""
    return {"v": VERSION, "type": type_name(event), **asdict(event)}


def from_record(record: Mapping[str, object]) -> Event:
    """Return the event that `to_record` wrote. Unknown fields are ignored.

    Raises ValueError for an unknown version or type and for missing or mistyped fields.
    """
    if record.get("v") != VERSION:
        raise ValueError(f"unknown event version: {record.get('v')!r}")
    kind = _TYPES.get(str(record.get("type")))
    if kind is None:
        raise ValueError(f"unknown event type: {record.get('type')!r}")
    try:
        return msgspec.convert(dict(record), kind)
    except msgspec.ValidationError as exc:
        raise ValueError(f"malformed {record['type']} event: {exc}") from exc
