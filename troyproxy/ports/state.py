"""The health state beyond this process: the journal, and what instances tell each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from troyproxy.resilience.events import Event


class EventLog(Protocol):
    """The journal of the health state: append before apply, fold at start."""

    def append(self, event: Event) -> None:
        """Queue *event* for the writer; never waits, never raises (a full queue drops the oldest and counts)."""

    async def replay(self) -> Sequence[Event]:
        """Return the journalled events that can still have an effect, oldest first."""


@dataclass(frozen=True, slots=True)
class News:
    """What another instance says: events to merge (``resilience/shared.py``), and a revision of the control row."""

    events: tuple[Event, ...] = ()
    revision: int | None = None


class StateMirror(Protocol):
    """Where instances share locks and open circuits, and tell each other news. No request waits for it.

    Every method but `close` raises StoreUnavailable within a few seconds and is cancel-safe. After that, `open` again.
    """

    async def open(self) -> None:
        """Connect, and begin to listen: from now on no news is missed."""

    async def read(self, now: float) -> Sequence[Event]:
        """Return everything that is kept and has not run out at *now*. What is missing in it means nothing."""

    async def push(self, kept: Sequence[Event], *, now: float, news: News | None = None) -> None:
        """Make what this instance keeps there equal to *kept*, and tell the others what is new in it, and *news*."""

    async def listen(self) -> News:
        """Wait for the next news of another instance; one's own are not heard."""

    async def close(self) -> None:
        """Disconnect; safe to call twice, and when nothing was opened."""
