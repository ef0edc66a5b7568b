"""Takes leaked tool calls out of an answer: from its first character on, the content of a leaked choice is dropped.

Everything else passes: other choices, reasoning, structured calls, finish reasons, usage. Text that turns out clean
is released unchanged, in order. This module decides about frames; the caller holds and sends them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from troyproxy.leaks.formats import CLASSIC_MARKERS, canonical
from troyproxy.leaks.pieces import is_silent, pieces, without_text
from troyproxy.leaks.watch import Leak, LeakAction, Watch

__all__ = [
    "Action",
    "ActionKind",
    "Fate",
    "Leak",
    "LeakAction",
    "Outcome",
    "StreamSuppressor",
    "find_leaks",
    "strip_textual_tool_call",
    "suppress_body",
]


class ActionKind(StrEnum):
    """What the caller does with the frame just fed and those it holds.

    HOLD = keep this one back too; RELEASE = send the held ones and this one as they are; EDIT = see `Action.edited`.
    """

    HOLD = "hold"
    RELEASE = "release"
    EDIT = "edit"


class Fate(StrEnum):
    """What happens to a frame that is not replaced."""

    KEEP = "keep"  # send it byte for byte
    DROP = "drop"  # it would say nothing any more


Outcome = dict[str, object] | Fate


@dataclass(frozen=True, slots=True)
class Action:
    """With EDIT, *edited* has one entry per held frame, in order, and one for the frame just fed (none in `flush`)."""

    kind: ActionKind
    edited: tuple[Outcome, ...] = ()


_HOLD, _RELEASE = Action(ActionKind.HOLD), Action(ActionKind.RELEASE)


class StreamSuppressor:
    """One per streamed response. Bounds of what is held: 1024 frames, 256 KiB; beyond them it is released as clean."""

    def __init__(self, names: frozenset[str]) -> None:
        """*names* are the declared tools (`arming.armed`)."""
        self._watch = Watch(names)
        self._held: list[object] = []

    @property
    def leaks(self) -> list[Leak]:
        """The leaks so far, for counters, log lines and the header."""
        return self._watch.leaks

    def settled(self, choices: int) -> bool:
        """Whether all of the *choices* asked for have begun and are clean: later events need not be fed."""
        return self._watch.settled(choices)

    def feed(self, event: object, size: int = 0) -> Action:
        """Take one decoded event, of *size* bytes as a frame. Events that are no JSON need not be fed.

        Call `flush` before `[DONE]` and at the end of the stream.
        """
        holding = self._watch.see(event, size)
        self._held.append(event)
        return _HOLD if holding else self._let_go()

    def flush(self) -> Action:
        """End of the stream: settle what is undecided; a mere prefix is released. Calling it twice does no harm."""
        self._watch.end()
        return self._let_go()

    def _let_go(self) -> Action:
        events, self._held = self._held, []
        leaked = self._watch.leaked
        outcomes = tuple(_outcome(event, leaked) for event in events) if leaked else ()
        edited = any(outcome is not Fate.KEEP for outcome in outcomes)
        return Action(ActionKind.EDIT, outcomes) if edited else _RELEASE


def find_leaks(body: object, names: frozenset[str]) -> tuple[Leak, ...]:
    """Return the leaks of a whole, decoded completion; *names* are the declared tools."""
    watch = Watch(names)
    watch.see(body, part="message")
    watch.end()
    return tuple(watch.leaks)


def suppress_body(body: dict[str, object], names: frozenset[str]) -> dict[str, object] | None:
    """Return *body* with the content of leaked choices emptied, or None when nothing has to change."""
    leaked = frozenset(leak.choice for leak in find_leaks(body, names))
    return without_text(body, leaked, "message") if leaked else None


def strip_textual_tool_call(text: str) -> str:
    """Return the empty string when *text* starts with a marker of a textual tool call, else *text*.

    For copies that are kept (history, logs). Seven markers, after leading blanks, in any case; neither the tool's
    name nor what follows is looked at, so call it only where tools were offered.
    """
    return "" if canonical(text).lstrip().startswith(CLASSIC_MARKERS) else text


def _outcome(event: object, leaked: frozenset[int]) -> Outcome:
    if not isinstance(event, dict) or not any(piece.text and piece.index in leaked for piece in pieces(event)):
        return Fate.KEEP
    edited = without_text(event, leaked)
    return Fate.DROP if is_silent(edited) else edited
