"""The attempt ledger of one request: what was tried, what came of it, and what it cost. Pure bookkeeping."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final
from urllib.parse import quote

from troyproxy.accounting.records import AttemptRecord
from troyproxy.accounting.usage import Usage
from troyproxy.routing.eligibility import Skip

SHOWN: Final = 10
"""Entries of the trail and the skip list that fit into a header."""


@dataclass(slots=True)
class Ledger:
    """Filled by the walk; read for headers, traces, metrics and the usage row."""

    attempts: list[AttemptRecord] = field(default_factory=list)
    skipped: list[Skip] = field(default_factory=list)
    adapted: list[str] = field(default_factory=list)
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

    def say(self, line: str) -> None:
        """Add a line to the play-by-play."""
        self.lines.append(line)

    def skip(self, skip: Skip) -> None:
        """Note a member that was passed over; the same member and reason once."""
        if skip not in self.skipped:
            self.skipped.append(skip)
            self.say(f"skip {skip.spec}: {skip.reason}")

    def note_adapted(self, changes: tuple[str, ...]) -> None:
        """Note what was changed in the request for a member; each change once."""
        self.adapted.extend(change for change in changes if change not in self.adapted)

    def serve(self, provider: str, model: str, account: str) -> None:
        """Note the target that serves the client."""
        self.provider, self.model, self.account, self.served = provider, model, account, True

    @property
    def wasted(self) -> Usage | None:
        """Tokens that upstreams reported and no client received."""
        failed = self.attempts[:-1] if self.served else self.attempts
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
        shown = [f"{_ascii(a.provider)}/{_ascii(a.model)}#{_ascii(a.account)}={a.outcome}" for a in self.attempts]
        return _listed(shown)

    @property
    def skips(self) -> str:
        """The skips, compact: ``spec=reason,…``; ASCII, at most ten, then a count."""
        return _listed([f"{_ascii(s.spec)}={s.reason}" for s in self.skipped])


def _ascii(text: str) -> str:
    return quote(text[:80], safe="/:.-_~@+")


def _listed(items: list[str]) -> str:
    more = len(items) - SHOWN
    return ",".join(items[:SHOWN]) + (f",+{more}" if more > 0 else "")
