"""Events of a stream that wait for their turn, and what goes out for them. Nothing is decided here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

import msgspec

from troyproxy.leaks import edits
from troyproxy.leaks.choice_watch import ChoiceWatch
from troyproxy.leaks.edits import Event
from troyproxy.leaks.pieces import Piece
from troyproxy.leaks.thoughts import Thought

T = TypeVar("T")


class Out(msgspec.Struct, Generic[T], frozen=True):
    """What goes out: *item* as it came, *item* with another *event*, or an *event* of our own."""

    item: T | None
    event: Event | None = None


class Span(msgspec.Struct):
    watch: ChoiceWatch
    index: int
    start: int
    end: int


class Held(msgspec.Struct, Generic[T]):
    """One event that waits for its turn."""

    item: T
    event: Event
    size: int
    spans: list[Span] = msgspec.field(default_factory=list)
    thoughts: list[Thought] = msgspec.field(default_factory=list)
    ends: list[Piece] = msgspec.field(default_factory=list)
    calls: list[tuple[int, list[object]]] = msgspec.field(default_factory=list)
    """Real calls that had to be made whole, by choice."""
    before: list[Event] = msgspec.field(default_factory=list)
    """Events of our own that go out ahead of it."""

    @property
    def ready(self) -> bool:
        decided = all(span.watch.evidence is not None or span.end <= span.watch.clean for span in self.spans)
        return decided and all(thought.decided for thought in self.thoughts)


class HeldText(msgspec.Struct, Generic[T]):
    """One that brings nothing but text, in one choice: it is decoded only to be edited."""

    item: T
    load: Callable[[T], Event]
    size: int
    watch: ChoiceWatch
    index: int
    start: int
    end: int

    @property
    def ready(self) -> bool:
        return self.watch.evidence is not None or self.end <= self.watch.clean

    @property
    def kept(self) -> int | None:
        """How many characters of it go out; None = all."""
        kept = self.watch.kept(self.start, self.end)
        return kept if kept < self.end - self.start else None


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
