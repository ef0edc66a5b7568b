"""The attempt ledger of one request: what was tried, what came of it, and what it cost. Pure bookkeeping."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final
from urllib.parse import quote

from msgspec import Struct, field
from msgspec.structs import replace

from troyproxy.accounting.records import AttemptRecord
from troyproxy.accounting.usage import Usage
from troyproxy.resilience.classes import ErrorClass
from troyproxy.routing.eligibility import Skip

SHOWN: Final = 10
"""Entries of the trail and the skip list that fit into a header."""
UNBOUNDED: Final = 1 << 20
PLAIN: Final = re.compile(r"[\w/:.\-~@+]*", re.ASCII)
"""Text in which nothing is quoted, as almost all names are."""


class Ledger(Struct, gc=False):
    """Filled by the walk; read for headers, traces, metrics and the usage row."""

    attempts: list[AttemptRecord] = field(default_factory=list)
    running: bool = False
    """The latest attempt is under way."""
    skipped: list[Skip] = field(default_factory=list)
    adapted: Sequence[str] = ()
    told: bool = True
    """Somebody reads the play-by-play; else nothing is said, and whoever would say something need not word it."""
    lines: list[str] = field(default_factory=list)
    """The play-by-play, in order."""
    provider: str | None = None
    model: str | None = None
    account: str | None = None
    served: bool = False
    usage: Usage | None = None
    truncated: bool = False
    refused: bool = False
    """The gateway itself said no; no upstream answer was passed on."""
    status: int = 0
    overhead_s: float | None = None
    first_token_s: float | None = None
    upstream_s: float = 0.0
    """Time spent waiting for upstreams before the commit."""
    gaps_s: list[float] = field(default_factory=list)
    leak: str | None = None
    marks: list[str] = field(default_factory=list)
    """What the auto engine says of its order, in a word each: ``explored``, ``known``, ``probe``, …"""
    budget_spent: bool = False
    """The process's retry budget ended the walk."""
    _passed_over: set[tuple[str, str]] | None = None

    def say(self, line: str) -> None:
        """Add a line to the play-by-play."""
        if self.told:
            self.lines.append(line)

    def note_leak(self, form: str, action: str, *, choice: int = 0, of: tuple[str, str] | None = None) -> None:
        """Note that an attempt wrote a tool call as text, and what is done about it.

        It is the latest attempt, or the latest at the provider and model *of*.
        """
        self.leak = f"{form};{action}"
        for at, attempt in reversed(list(enumerate(self.attempts))):
            if of is None or of == (attempt.provider, attempt.model):
                self.attempts[at] = replace(attempt, leak=self.leak)
                break
        self.say(f"  leak {form} in choice {choice}: {action}")

    def note_status(self, status: int) -> None:
        """Note what the client is answered."""
        self.status = status

    def skip(self, skip: Skip) -> bool:
        """Note a member that was passed over; the same spec and reason once. Return whether it is news."""
        what = (skip.spec, skip.reason)
        if self._passed_over is None:
            self._passed_over = set()
        if what in self._passed_over:
            return False
        self._passed_over.add(what)
        self.skipped.append(skip)
        self.say(f"skip {skip.spec}: {skip.reason}")
        return True

    def adapted_within(self, limit: int) -> str:
        """Return the changes of the latest attempt in at most *limit* bytes, whole ones; the rest is counted."""
        return _listed(self.adapted, limit)

    def note_adapted(self, changes: tuple[str, ...]) -> None:
        """Note what is changed in the request for the attempt that begins; what others were sent is in the lines."""
        self.adapted = changes
        if changes and self.told:
            self.say(f"  adapted: {', '.join(changes)}")

    def serve(self, provider: str, model: str, account: str) -> None:
        """Note the target that serves the client."""
        self.provider, self.model, self.account, self.served = provider, model, account, True

    def serve_late(self, provider: str, model: str, account: str, usage: Usage) -> None:
        """Note that an attempt that had failed serves the client after all; its tokens are not wasted."""
        self.serve(provider, model, account)
        self.usage = usage
        for at, attempt in reversed(list(enumerate(self.attempts))):
            if (attempt.provider, attempt.model, attempt.account) == (provider, model, account):
                self.attempts[at] = replace(attempt, outcome="ok", usage=None)
                break

    @property
    def wasted(self) -> Usage | None:
        """Tokens that upstreams reported and no client received."""
        failed = self.attempts[:-1] if self.served else self.attempts
        if not failed:
            return None
        lost = [attempt.usage for attempt in failed if attempt.usage is not None]
        if not lost:
            return None
        return Usage(
            input=sum(u.input for u in lost),
            output=sum(u.output for u in lost),
            cached=sum(u.cached for u in lost),
            reasoning=sum(u.reasoning for u in lost),
            audio=sum(u.audio for u in lost),
            estimated=any(u.estimated for u in lost),
        )

    @property
    def trail(self) -> str:
        """The attempts, compact: ``alpha/m1#A=rate,beta/m2#B=ok``; ASCII, at most ten, then a count."""
        if self.served and self.attempts and not self.attempts[1:]:  # as almost always
            return _told(self.attempts[0])
        return self.trail_within(UNBOUNDED)

    def trail_within(self, limit: int) -> str:
        """Return the trail in at most *limit* bytes; what does not fit is counted.

        Of an attempt under way nothing is said before something is known: an early head must not call it cancelled.
        """
        unknown = self.running and self.attempts[-1].outcome == ErrorClass.CANCELLED
        known = self.attempts[:-1] if unknown else self.attempts
        return _listed([_told(attempt) for attempt in known], limit)

    @property
    def skips(self) -> str:
        """The skips, compact: ``spec=reason,…``; ASCII, at most ten, then a count."""
        return self.skips_within(UNBOUNDED)

    def skips_within(self, limit: int) -> str:
        """Return the skips in at most *limit* bytes; what does not fit is counted."""
        return _listed([f"{_ascii(s.spec)}={s.reason}" for s in self.skipped], limit)


def _told(attempt: AttemptRecord) -> str:
    """Return where an attempt went and how it ended; a summary that was got is no answer."""
    outcome = "handoff" if attempt.handoff and attempt.outcome == "ok" else attempt.outcome
    return _spelt(attempt.provider, attempt.model[:80], attempt.account, outcome)  # the model may be a client's word


@lru_cache(maxsize=4096)
def _spelt(provider: str, model: str, account: str, outcome: str) -> str:
    """Return how the trail tells of an attempt; targets are few, and they come again and again."""
    return f"{_ascii(provider)}/{_ascii(model)}#{_ascii(account)}={outcome}"


def _ascii(text: str) -> str:
    return text[:80] if PLAIN.fullmatch(text) else quote(text[:80], safe="/:.-_~@+", errors="replace")


def _listed(items: Sequence[str], limit: int) -> str:
    """Return as many of *items* as fit, whole, and how many more there are."""
    for shown in range(min(len(items), SHOWN), 0, -1):
        more = len(items) - shown
        text = ",".join(items[:shown]) + (f",+{more}" if more else "")
        if len(text) <= limit:
            return text
    return f"+{len(items)}" if items else ""
