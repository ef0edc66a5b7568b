"""What goes into a strategy and what comes out: a context of plain values, an order, and effects as data.

What a strategy wants remembered comes back as an effect, which the planner applies at once, before the walk: so two
concurrent plans differ, and failing over moves nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from troyproxy.routing.members import Unit
from troyproxy.routing.readings import Read, nothing_read


@dataclass(frozen=True, slots=True)
class Cursor:
    """Where a combo's circle stands: the member that led the last plan, and how many plans it has left there."""

    at: str
    left: int = 0


@dataclass(frozen=True, slots=True)
class Deck:
    """A shuffled deck of identities. *members*: the set it was made of; *last*: the card that was dealt last."""

    members: tuple[str, ...]
    left: tuple[str, ...]
    last: str


State = Cursor | Deck
"""What a strategy remembers of a combo between two plans."""


@dataclass(frozen=True, slots=True)
class Effect:
    """What is to be remembered of *combo_id* from now on."""

    combo_id: str
    state: State


@dataclass(frozen=True, slots=True)
class Order:
    """The same members in the order to try them, and what to remember."""

    members: tuple[Unit, ...]
    effects: tuple[Effect, ...] = ()


@dataclass(frozen=True, slots=True)
class RouteContext:
    """What a strategy may look at. *now* is unix seconds; *rng* is seeded per request."""

    now: float
    rng: Random
    combo_id: str = ""
    state: State | None = None
    """What the last plan of this combo left; of another strategy's it may be, and then it says nothing."""
    sticky: int = 1
    """Plans per stop of a round-robin."""
    circle: tuple[str, ...] = ()
    """Identities of all members in saved order, those that are not eligible now included."""
    last: str | None = None
    """The identity of the target that is remembered: the last known good one, or a session's."""
    read: Read = nothing_read
    tokens: int = 0
    """Context that the request needs: estimated input and the most it may write."""


Strategy = Callable[[Sequence[Unit], RouteContext], Order]
