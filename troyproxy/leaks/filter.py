"""Takes leaked tool calls out of a stream, or makes real calls of them: events in, in order; events out, in order.

An event waits while its text is undecided, and whatever comes behind it waits too. What turns out clean goes out as the
very item that came in. The text of a leak is dropped from its first character on, in its choice only; calls that were
repaired go out where the choice ends, whole. The caller keeps the frames: here they are opaque items.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Final, Generic, TypeVar

from troyproxy.leaks import edits
from troyproxy.leaks.call_chunks import chunks_of
from troyproxy.leaks.choice_watch import ChoiceWatch
from troyproxy.leaks.edits import Event
from troyproxy.leaks.genuine import GenuineCalls
from troyproxy.leaks.modes import LeakAction
from troyproxy.leaks.pieces import Piece, is_error, pieces
from troyproxy.leaks.policy import Leak, Policy
from troyproxy.leaks.repair import suppressed_reason
from troyproxy.leaks.thoughts import Thought, Thoughts
from troyproxy.leaks.waiting import Held, HeldText, Out, Span, changed

T = TypeVar("T")

MAX_HELD_BYTES: Final = 16 << 20
"""Of events that wait. A model that hides 64 Ki characters behind one opener, one in each event, stays below it."""
MAX_CHOICES: Final = 128
"""OpenAI's bound on `n`; of an upstream that invents more, the others are not watched."""


class LeakFilter(Generic[T]):
    """One per streamed answer; *tell* hears of each leak once, as soon as it is known what is done about it."""

    def __init__(self, policy: Policy, tell: Callable[[Leak], None]) -> None:
        self._policy, self._tell, self._edits = policy, tell, policy.edits
        self._choices: dict[int, ChoiceWatch] = {}
        self._thoughts: dict[tuple[int, str], Thoughts] = {}
        """Reasoning that may be open."""
        self._genuine: dict[int, GenuineCalls] = {}
        self._told: set[tuple[int, str]] = set()
        self._roles: set[int] = set()
        self._called: set[int] = set()
        """Choices whose repaired calls went out."""
        self._held: deque[Held[T] | HeldText[T]] = deque()
        self._bytes = 0
        self._envelope: Event = {}
        self._given_up = not policy.watches
        self.leaked = False
        """A choice has leaked: `swallows` may say yes."""

    def skim(self, index: int, text: str) -> bool:
        """Whether an event that brings nothing but *text* in one choice goes out now, as it is; else `feed_text` it."""
        if self._given_up:
            return True
        if self._held or self._thoughts:
            return False
        watch = self._choices.get(index)
        return watch is not None and watch.skim(text)

    def swallows(self, index: int) -> bool:
        """Whether the text of a choice is dropped: `swallow` that of an event that would tell nothing without it."""
        watch = self._choices.get(index)
        if watch is None or watch.evidence is None or self._given_up:
            return False
        return self._edits and not self._held and not self._thoughts

    def swallow(self, index: int, text: str) -> None:
        """Read *text*, and let the whole event go."""
        self._choices[index].take(text)

    def feed(self, event: object, item: T, size: int) -> list[Out[T]]:
        """Take one decoded event, of *size* bytes; return what goes out now."""
        if self._given_up or not isinstance(event, dict):
            return [*self._let_go(), Out(item)]
        held = Held(item, event, size)
        for piece in pieces(event):
            self._see(piece, held)
        if is_error(event):
            held.before += self._end(whole=False)
        if event.get("choices"):
            self._envelope = event
        return self._queue(held)

    def feed_text(self, index: int, text: str, item: T, size: int, load: Callable[[T], Event]) -> list[Out[T]] | None:
        """Do the same with an event that brings nothing but *text*, and that `skim` left; *load* decodes an item.

        None: it goes out now, as it is.
        """
        watch = self._choices.get(index) or self._watch(index)
        if watch is None or self._thoughts:
            return self.feed(load(item), item, size)
        start = watch.fed
        watch.take(text)
        if watch.evidence is not None:
            self._tell_of(index, watch)
        elif watch.clean == watch.fed:
            before = self._release() if self._held else []  # what waited for this text
            if not self._held:
                return [*before, Out(item)] if before else None
            return [*before, *self._queue(HeldText(item, load, size, watch, index, start, watch.fed))]
        return self._queue(HeldText(item, load, size, watch, index, start, watch.fed)) if self._edits else None

    def _queue(self, held: Held[T] | HeldText[T]) -> list[Out[T]]:
        if not self._edits:
            return [Out(held.item)]
        self._held.append(held)
        self._bytes += held.size
        out = self._release() if self._held[0].ready else []
        if self._bytes > MAX_HELD_BYTES:
            self._given_up = True
            out += self._let_go()
        return out

    def flush(self, *, done: bool = False) -> list[Out[T]]:
        """End of the stream, *done* when it says so itself. Nothing stays behind. Calling it twice does no harm."""
        if self._given_up:
            return self._let_go()
        late = self._end(whole=done)
        return [*self._release(), *(Out(None, event) for event in late)]

    def _see(self, piece: Piece, held: Held[T]) -> None:
        watch = self._watch(piece.index)
        if watch is None:
            return
        for name, text in piece.thoughts:
            self._think(piece.index, name, text, held)
        if piece.structured:
            watch.note_structured()
            genuine = self._genuine.setdefault(
                piece.index, GenuineCalls(piece.index, self._policy.asked.inputs.call_ids())
            )
            if (calls := genuine.sound(piece.calls, self._id_of(held.event))) is not None:
                held.calls.append((piece.index, calls))
        if piece.text:
            self._read(piece.index, piece.text, watch, held)
        if piece.finish is not None:
            self._end_thoughts(piece.index, held)
            watch.finish(piece.finish, self._id_of(held.event))
            held.ends.append(piece)
        self._tell_of(piece.index, watch)

    def _watch(self, index: int) -> ChoiceWatch | None:
        watch = self._choices.get(index)
        if watch is None and len(self._choices) < MAX_CHOICES:
            watch = self._choices[index] = ChoiceWatch(self._policy, index)
        return watch

    def _read(self, index: int, text: str, watch: ChoiceWatch, held: Held[T]) -> None:
        if self._thoughts:
            self._end_thoughts(index, held)
        start = watch.fed
        watch.take(text)
        held.spans.append(Span(watch, index, start, watch.fed))

    # --- reasoning ---

    def _think(self, index: int, name: str, text: str, held: Held[T]) -> None:
        thoughts = self._thoughts.setdefault((index, name), Thoughts())
        thought = Thought(index, name, text)
        thoughts.take(thought)
        held.thoughts.append(thought)
        self._tell_of_thoughts(index, name, thoughts)

    def _end_thoughts(self, index: int, held: Held[T] | None) -> list[Event]:
        late: list[Event] = []
        for at, name in [key for key in self._thoughts if key[0] == index]:
            thoughts = self._thoughts.pop((at, name))
            if left := thoughts.finish():
                late.append(edits.delta(held.event if held is not None else self._envelope, index, {name: left}))
            self._tell_of_thoughts(at, name, thoughts)
        if held is not None:
            held.before += late
        return late

    def _tell_of_thoughts(self, index: int, name: str, thoughts: Thoughts) -> None:
        if thoughts.found is not None and (index, name) not in self._told:
            self._told.add((index, name))
            action = LeakAction.SUPPRESSED if self._edits else LeakAction.OBSERVED
            self._tell(Leak(index, thoughts.found, action))

    def _tell_of(self, index: int, watch: ChoiceWatch) -> None:
        if watch.evidence is None:
            return
        self.leaked = True
        if watch.action is not None and (index, "content") not in self._told:
            self._told.add((index, "content"))
            self._tell(Leak(index, watch.evidence.format, watch.action))

    # --- going out ---

    def _end(self, *, whole: bool) -> list[Event]:
        """Settle every choice; return the events of our own that no event of the upstream is there to carry."""
        late: list[Event] = []
        for index, watch in self._choices.items():
            late += self._end_thoughts(index, None)
            if not watch.finished:
                watch.finish(None, self._id_of(self._envelope), whole=whole)
                late += self._calls(index, watch, self._envelope)
            self._tell_of(index, watch)
        return late if self._edits else []

    def _release(self) -> list[Out[T]]:
        out: list[Out[T]] = []
        while self._held and self._held[0].ready:
            held = self._held.popleft()
            self._bytes -= held.size
            if not isinstance(held, HeldText):
                out += self._edited(held)
            elif held.watch.evidence is None:
                out.append(Out(held.item))
            else:
                out += self._edited_text(held)
        return out

    def _let_go(self) -> list[Out[T]]:
        """Let everything out as it came: too much is held to wait any longer."""
        held, self._held, self._bytes = list(self._held), deque(), 0
        return [Out(each.item) for each in held]

    def _edited_text(self, held: HeldText[T]) -> Iterator[Out[T]]:
        kept = held.kept
        event = None if kept is None else edits.cut_text(held.load(held.item), held.index, kept)
        if event is None or not edits.is_silent(event):
            yield Out(held.item, event)

    def _edited(self, held: Held[T]) -> Iterator[Out[T]]:
        yield from (Out(None, event) for event in held.before)
        event = changed(held)
        for end in held.ends:
            ahead, event = self._ended(end, event)
            yield from (Out(None, each) for each in ahead)
        self._note_roles(event)
        if event is held.event:
            yield Out(held.item)
        elif not edits.is_silent(event):
            yield Out(held.item, event)

    def _ended(self, piece: Piece, event: Event) -> tuple[list[Event], Event]:
        """Return what goes out ahead of the end of a choice, and what is left of the event that ends it."""
        watch = self._choices[piece.index]
        if watch.repair is not None:
            said = edits.alone(event, piece.index)
            self._note_roles(said)
            ahead = [] if edits.is_silent(said) else [said]
            calls = self._calls(piece.index, watch, event) if piece.index not in self._called else []
            self._called.add(piece.index)  # some upstreams tell the end twice
            return [*ahead, *calls], edits.without(event, piece.index)
        return [], self._with_reason(event, piece, watch)

    def _calls(self, index: int, watch: ChoiceWatch, envelope: Event) -> list[Event]:
        if watch.repair is None:
            return []
        return chunks_of(
            watch.repair.calls,
            envelope,
            index,
            role_sent=index in self._roles,
            finish_reason=watch.repair.finish_reason,
            legacy=self._policy.asked.legacy,
        )

    def _with_reason(self, event: Event, piece: Piece, watch: ChoiceWatch) -> Event:
        reason = piece.finish
        if watch.action is LeakAction.SUPPRESSED:
            reason = suppressed_reason(reason, structured=watch.structured)
        if (genuine := self._genuine.get(piece.index)) is not None:
            reason = genuine.reason(reason)
        return event if reason == piece.finish else edits.with_finish(event, piece.index, reason)

    def _id_of(self, event: Event) -> str:
        found = event.get("id")
        return found if isinstance(found, str) and found else self._policy.request_id

    def _note_roles(self, event: Event) -> None:
        self._roles |= edits.roles_in(event)
