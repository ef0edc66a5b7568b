"""Events of a stream that wait for their turn, and what goes out for them. Nothing is decided here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from troyproxy.leaks import edits
from troyproxy.leaks.choice_watch import ChoiceWatch
from troyproxy.leaks.edits import Event
from troyproxy.leaks.pieces import Piece
from troyproxy.leaks.thoughts import Thought

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Out(Generic[T]):
    """What goes out: *item* as it came, *item* with another *event*, or an *event* of our own."""

    item: T | None
    event: Event | None = None


@dataclass(slots=True)
class Span:
    watch: ChoiceWatch
    index: int
    start: int
    end: int


@dataclass(slots=True)
class Held(Generic[T]):
    """One event that waits for its turn."""

    item: T
    load: Callable[[], Event]
    size: int
    plain: bool = False
    """It brings nothing but text: it is decoded only to be edited."""
    spans: list[Span] = field(default_factory=list)
    thoughts: list[Thought] = field(default_factory=list)
    ends: list[Piece] = field(default_factory=list)
    calls: list[tuple[int, list[object]]] = field(default_factory=list)
    """Real calls that had to be made whole, by choice."""
    before: list[Event] = field(default_factory=list)
    """Events of our own that go out ahead of it."""

    loaded: Event | None = None

    @property
    def event(self) -> Event:
        if self.loaded is None:
            self.loaded = self.load()
        return self.loaded

    @property
    def cut(self) -> bool:
        """Whether some of its text is dropped."""
        return any(span.watch.kept(span.start, span.end) < span.end - span.start for span in self.spans)

    @property
    def ready(self) -> bool:
        decided = all(span.watch.evidence is not None or span.end <= span.watch.clean for span in self.spans)
        return decided and all(thought.decided for thought in self.thoughts)


def changed(held: Held[T]) -> Event:
    """Return the event without what is dropped of it, and with whole calls."""
    event = held.event
    for span in held.spans:
        kept = span.watch.kept(span.start, span.end)
        if kept < span.end - span.start:
            event = edits.cut_text(event, span.index, kept)
    for thought in held.thoughts:
        if thought.instead is not None:
            event = edits.with_field(event, thought.index, thought.name, thought.instead)
    for index, calls in held.calls:
        event = edits.with_calls(event, index, calls)
    return event
