"""How full the quotas of each account are: what its upstream said in rate-limit headers, and what we counted ourselves.

- Signals of every answer are kept by account and bucket, the newest of each, and read when somebody asks. One is
  forgotten at its reset; without a known reset after the length of its window, else after an hour.
- An account with a ``quota`` of its own has its requests counted when they begin, its tokens and USD when the answer
  has told them. Windows are the minutes, hours, days and months of the UTC calendar.

Unknown stays unknown: an account of which nothing was said and that has no quota has no `Quota`. That an upstream
refused for want of quota is a cooldown, and `HealthKeeper` has it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from troyproxy.accounting.consumption import Consumption
from troyproxy.accounting.finished import Finished
from troyproxy.accounting.past import AccountSum
from troyproxy.catalog.providers import Account
from troyproxy.ports import Headers
from troyproxy.proxy.bounds import use
from troyproxy.resilience.signals import Signal, told_of
from troyproxy.routing.readings import Quota

ACCOUNTS: Final = 10_000
"""Accounts that are remembered; the least recently used go first."""
MOST_WAITING: Final = 64
"""Attempts that are counted together, at the latest."""
BUCKETS: Final = 16
"""Buckets of one account; the oldest go first."""
FORGET_S: Final = 3_600.0
"""How long a signal counts that tells neither its reset nor its window."""
FRESH_S: Final = 1.0
ROUNDING: Final = 1e-9
"""Sums of money are not exact: so little is nothing."""
_NUMBER: Final = re.compile(rb"(?=.*[1-9])[0-9]{1,18}(?:\.[0-9]{1,9})?")
"""One that can be read and is not 0: of a limit of 0 nothing can be left."""
KINDS: Final = ("requests", "tokens", "usd")

Pair = tuple[bytes, bytes]
Name = tuple[str, str]
"""Provider and name of an account."""


@dataclass(slots=True)
class _Board:
    """What is known of one account."""

    signals: dict[str, Signal] = field(default_factory=dict)
    said: tuple[Sequence[Pair], float] | None = None
    """The latest headers and when they came, unread: every answer of some upstreams has a handful, and few are asked
    for."""
    used: Consumption = field(default_factory=Consumption)
    read: tuple[float, float, Account, tuple[Quota, ...]] | None = None
    """(from, until, whose): the last reading, while nothing has changed."""

    def hear(self, pairs: Sequence[Pair], now: float) -> None:
        """Keep what an answer said, in place of one that told of the same; any other is read first."""
        if self.said is not None and not _tells_as_much(pairs, self.said[0]):
            self.known()
        self.said, self.read = (pairs, now), None

    def known(self) -> Mapping[str, Signal]:
        """Return the newest signal of each bucket."""
        if self.said is not None:
            for bucket, signal in told_of(*self.said).items():
                if signal is not None:
                    self.signals.pop(bucket, None)
                    self.signals[bucket] = signal
                elif bucket in self.signals and not self.signals[bucket].remaining:
                    del self.signals[bucket]  # something is left, so it is empty no more
            self.said = None
            while len(self.signals) > BUCKETS:
                del self.signals[next(iter(self.signals))]
        return self.signals

    def spent(self) -> None:
        """Something was used: a reading that tells of it is over, and most accounts have no quota of their own."""
        if self.read is not None and self.read[2].quota is not None:
            self.read = None


class QuotaDesk:
    """Owns the boards of this process."""

    def __init__(self, *, bound: int = ACCOUNTS) -> None:
        self._bound = bound
        self._boards: dict[Name, _Board] = {}
        self._waiting: list[tuple[Finished, int]] = []
        """What ended and is not counted: that is done for many at once, or when somebody asks."""

    def hear(self, account: Account, headers: Headers, now: float) -> None:
        """Remember what an answer's *headers* say of the quotas of *account*."""
        said = [pair for pair in headers if b"ratelimit" in pair[0] or b"codex" in pair[0]]
        if said:
            self._board((account.provider, account.name)).hear(said, now)

    def begin(self, name: Name, at: float) -> None:
        """Count a request that begins."""
        board = self._board(name)
        board.used.add(at, requests=1)
        if board.read is not None:
            board.spent()

    def count(self, finished: Finished, *, requests: int = 0) -> None:
        """Count what an attempt used, and *requests* if its begin was not counted here."""
        self._waiting.append((finished, requests))
        if len(self._waiting) >= MOST_WAITING:
            self._catch_up()

    def _catch_up(self) -> None:
        waiting, self._waiting = self._waiting, []
        for finished, requests in waiting:
            name = (finished.provider, finished.account)
            board = self._boards.get(name) or self._board(name)
            board.used.add(finished.at, requests=requests, tokens=finished.tokens, usd=finished.usd)
            if board.read is not None:
                board.spent()

    def begin_anew(self, past: Iterable[Finished]) -> None:
        """Take over what was used in the *past*, in place of what was counted."""
        self._waiting.clear()
        for board in self._boards.values():
            board.used, board.read = Consumption(), None
        for finished in past:
            self.count(finished, requests=1)

    def add_sum(self, period: str, at: float, summed: AccountSum) -> None:
        """Count older requests that only the sums of the database know, for the *period* that holds *at*."""
        board = self._board((summed.provider, summed.account))
        board.used.add_to(period, at, requests=summed.requests, tokens=summed.tokens, usd=summed.usd)
        board.read = None

    def forget(self, provider: str, account: str) -> None:
        """Forget what was said of an account (by id) that is another now; what it used is still used."""
        board = self._boards.get((provider, account.removeprefix(f"{provider}#")))
        if board is not None:
            board.signals.clear()
            board.said = board.read = None

    def signals(self, account: Account, now: float) -> tuple[Signal, ...]:
        """Return what the upstream last said of each bucket that has not been reset; `Signal.at` tells its age."""
        board = self._boards.get((account.provider, account.name))
        if board is None:
            return ()
        return tuple(signal for signal in board.known().values() if still_holds(signal, now))

    def heard(self, account: Account) -> tuple[Signal, ...]:
        """Return the last thing that was said of each bucket, however long ago; `still_holds` tells what is over."""
        board = self._boards.get((account.provider, account.name))
        return () if board is None else tuple(board.known().values())

    def quotas(self, account: Account, now: float) -> tuple[Quota, ...]:
        """Return every window of *account* that is known now; reckoned anew when something changed, or each second."""
        if self._waiting:
            self._catch_up()
        board = self._boards.get((account.provider, account.name))
        if board is None and account.quota is None:
            return ()
        board = board or self._board((account.provider, account.name))
        known = board.read
        if known is not None and known[2] is account and known[0] <= now < known[1]:
            return known[3]
        said, own = self.signals(account, now), tuple(_own(account.quota or {}, board.used, now))
        quotas = (*(_said(signal, account) for signal in said), *own)
        ends = (*map(_end, said), *(quota.reset_at or math.inf for quota in own), now + FRESH_S)
        board.read = (now, min(ends), account, quotas)
        return quotas

    def _board(self, name: Name) -> _Board:
        return use(self._boards, name, _Board, self._bound)


def _tells_as_much(new: Sequence[Pair], old: Sequence[Pair]) -> bool:
    """Whether *new* surely tells of every bucket that *old* tells of, without reading either.

    The same names, and each value as it was, a number, or about a reset, which need not be known.
    """
    if len(new) != len(old):
        return False
    for (name, value), before in zip(new, old, strict=True):
        if name != before[0]:
            return False
        if value != before[1] and not _NUMBER.fullmatch(value) and b"reset" not in name:
            return False
    return True


def still_holds(signal: Signal, now: float) -> bool:
    """Whether what was said is still about the present window, as far as that can be told."""
    return _end(signal) > now


def _end(signal: Signal) -> float:
    """Return when *signal* is forgotten."""
    if signal.reset_at is not None:
        return signal.reset_at
    return signal.at + (FORGET_S if signal.length_s is None else signal.length_s)


def _said(signal: Signal, account: Account) -> Quota:
    length_s = account.quota_reset_interval_s if signal.length_s is None else signal.length_s
    return Quota(signal.bucket, signal.remaining, signal.reset_at, length_s)


def _own(quota: Mapping[str, object], used: Consumption, now: float) -> Iterator[Quota]:
    """Yield a window for each limit of an account's own *quota* (`settings.provider_shapes.QUOTA`)."""
    if not quota:
        return
    period = str(quota["per"])
    window = used.used(period, now)
    for kind in KINDS:
        limit = quota.get(kind)
        if isinstance(limit, int | float):
            left = 1.0 - window.of(kind) / limit
            yield Quota(
                f"{kind}/{period}", left if left > ROUNDING else 0.0, window.end, window.end - window.begin, own=True
            )
