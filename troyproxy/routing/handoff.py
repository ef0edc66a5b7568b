"""Where a conversation can be cut so that its old part may be replaced by a summary, and the messages after that.

A cut stands before a user's message, and never between a tool call and its results. What stands before it is the old
part; system messages in it stay. Who writes the summary, and what it says, is elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from msgspec.structs import replace

from troyproxy.catalog.combos import Combo
from troyproxy.routing.eligibility import room_needed
from troyproxy.routing.members import Candidate
from troyproxy.routing.needs import Needs, needs_of

STRATEGY: Final = "context-relay"
TURNS: Final = 6
"""Last turns that are kept at most, unless ``config.keep_turns`` says otherwise."""
SUMMARY_TOKENS: Final = 800
"""Room for the summary; a longer one is cut."""

_BYTES_PER_TOKEN: Final = 4
_SYSTEM: Final = frozenset({"system", "developer"})
_RESULTS: Final = frozenset({"tool", "function"})


@dataclass(frozen=True, slots=True)
class Cut:
    """One place to cut at: *at* is the index of the first message that is kept."""

    at: int
    tokens: int
    """The estimate for the request after it, the longest summary included."""

    def fits(self, candidate: Candidate, needs: Needs) -> bool:
        """Whether the request fits *candidate* then. *needs* are those of the whole request."""
        window = candidate.facts.limits.context
        return window is None or room_needed(candidate, replace(needs, est_tokens=self.tokens)) <= window


def hands_over(combo: Combo) -> bool:
    """Whether histories that are too long for a member of *combo* may be handed over shortened."""
    return combo.strategy == STRATEGY and isinstance(combo.config.get("handoff_model"), str)


def turns_of(combo: Combo) -> int:
    """Return ``config.keep_turns``: `TURNS` unless a whole number from 1 is configured."""
    value = combo.config.get("keep_turns")
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 1 else TURNS


def cuts(payload: Mapping[str, object], turns: int) -> tuple[Cut, ...]:
    """Return where a chat request can be cut, at most *turns* places, the one that keeps most first.

    None: it has no old part. Linear in the request. Never raises.
    """
    messages = _messages(payload)
    tokens = [needs_of({"messages": [message]}).est_tokens for message in messages]
    system = [count if _is_system(message) else 0 for message, count in zip(messages, tokens, strict=True)]
    base = needs_of({key: value for key, value in payload.items() if key != "messages"}).est_tokens + SUMMARY_TOKENS
    kept_before = list(accumulate(system, initial=0))
    before = list(accumulate(tokens, initial=0))
    places = list(_places(messages))[-turns:]
    return tuple(Cut(at, base + kept_before[at] + before[-1] - before[at]) for at in places)


def best(places: Sequence[Cut], candidate: Candidate, needs: Needs) -> Cut | None:
    """Return the first of *places* after which the request fits *candidate*, or None."""
    return next((cut for cut in places if cut.fits(candidate, needs)), None)


def old_part(payload: Mapping[str, object], at: int) -> list[object]:
    """Return the messages that a summary stands for when the request is cut at *at*."""
    return [message for message in _messages(payload)[:at] if not _is_system(message)]


def handed_over(payload: Mapping[str, object], at: int, summary: str) -> list[object]:
    """Return the messages with *summary* in place of what is old: system messages, the summary as one more, the rest.

    The summary has the role of the system message before it, since some vendors refuse ``system`` beside ``developer``.
    """
    messages = _messages(payload)
    kept = [message for message in messages[:at] if _is_system(message)]
    role = _field(kept[-1], "role") if kept else "system"
    return [*kept, {"role": role, "content": within(summary)}, *messages[at:]]


def within(summary: str) -> str:
    """Return *summary*, cut to the room that is kept for it; half a character is none."""
    return summary.encode("utf-8", "replace")[: SUMMARY_TOKENS * _BYTES_PER_TOKEN].decode("utf-8", "ignore")


def _messages(payload: Mapping[str, object]) -> list[object]:
    messages = payload.get("messages")
    return messages if isinstance(messages, list) else []


def _places(messages: Sequence[object]) -> Iterator[int]:
    """Yield the index of every user's message that has an old part before it and parts no call from its result."""
    open_calls = list(accumulate(_parting(messages)))
    old = False
    for at, message in enumerate(messages):
        if old and _field(message, "role") == "user" and not open_calls[at]:
            yield at
        old = old or not _is_system(message)


def _parting(messages: Sequence[object]) -> list[int]:
    """Return, for each place, how many pairs of call and result begin, less how many end, to be parted there.

    A result belongs to the latest call with its id, as vendors number the calls of each turn anew; one whose id no call
    has belongs to the latest call of all.
    """
    steps = [0] * (len(messages) + 1)
    called: dict[str, int] = {}
    latest: int | None = None
    for at, message in enumerate(messages):
        for name in _calls(message):
            called[name] = latest = at
        if latest is not None and _field(message, "role") in _RESULTS:
            steps[called.get(_answers(message), latest) + 1] += 1
            steps[at + 1] -= 1
    return steps


def _calls(message: object) -> Iterator[str]:
    """Yield the ids of the calls in *message*; the legacy spelling has a name in place of an id."""
    calls = message.get("tool_calls") if isinstance(message, dict) else None
    for call in calls if isinstance(calls, list) else ():
        yield _field(call, "id")
    legacy = message.get("function_call") if isinstance(message, dict) else None
    if legacy is not None:
        yield _field(legacy, "name")


def _answers(message: object) -> str:
    """Return the id, or else the name, of the call that *message* is the result of."""
    return _field(message, "tool_call_id") or _field(message, "name")


def _is_system(message: object) -> bool:
    return _field(message, "role") in _SYSTEM


def _field(value: object, name: str) -> str:
    found = value.get(name) if isinstance(value, dict) else None
    return found if isinstance(found, str) else ""
