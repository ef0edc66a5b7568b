"""What a key may use: requests and tokens a minute, US dollars a day and a month (UTC). Pure.

The two rates are token buckets: they begin full, hold one minute's worth, and refill evenly. A request is charged its
estimate when it is admitted and its real usage afterwards, so the level of tokens may be below zero. An estimate beyond
the whole bucket is admitted when the bucket is full, or such a request could never run; the debt holds up the next.
Budgets are refused by what is spent already: the request that crosses the line is served, the next one is not.

`store/redis_limits.py` does the same sums in Lua, for several instances at once; a test holds the two equal.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Final, Self

MINUTE_S: Final = 60.0
_DAY_S: Final = 86_400.0
NEARLY: Final = 1e-6
"""What a level may lack and still be enough: who waits exactly as long as told must not miss by a rounding."""


class Limit(StrEnum):
    """What can refuse a request."""

    REQUESTS = "requests"
    TOKENS = "tokens"
    DAY = "day"
    MONTH = "month"


BUDGETS: Final = frozenset({Limit.DAY, Limit.MONTH})


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of one key; None = none. Rates are per minute, budgets in USD per UTC day and month."""

    requests: float | None = None
    tokens: float | None = None
    day_usd: float | None = None
    month_usd: float | None = None

    @classmethod
    def of(cls, given: Mapping[str, float]) -> Self:
        """Return the limits that a key's mapping means; other names in it are ignored."""
        return cls(
            requests=given.get("requests_per_minute"),
            tokens=given.get("tokens_per_minute"),
            day_usd=given.get("budget_usd_per_day"),
            month_usd=given.get("budget_usd_per_month"),
        )

    @property
    def budgeted(self) -> bool:
        """Whether there is a budget."""
        return self.day_usd is not None or self.month_usd is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """What one key has left and has spent. A fresh one is full: levels are cut to the limit when they are read."""

    at: float
    """When the levels were these, unix seconds."""
    requests: float = math.inf
    tokens: float = math.inf
    day: str = ""
    day_usd: float = 0.0
    """Spent on that day."""
    month: str = ""
    month_usd: float = 0.0


@dataclass(frozen=True, slots=True)
class Standing:
    """One rate as its client is told of it."""

    name: str
    limit: int
    remaining: int
    reset_s: float
    """Until everything is there again."""


# --- windows --------------------------------------------------------------------------------------------------------


def day_of(at: float) -> str:
    """Return the UTC day of a moment, ``2027-01-15``."""
    return _utc(at).date().isoformat()


def month_of(at: float) -> str:
    """Return the UTC month of a moment, ``2027-01``."""
    return day_of(at)[:7]


def next_day(at: float) -> float:
    """Return the next midnight UTC, unix seconds."""
    return (_midnight(at) + timedelta(days=1)).timestamp()


def next_month(at: float) -> float:
    """Return the next midnight UTC that begins a month, unix seconds."""
    return (_midnight(at).replace(day=1) + timedelta(days=32)).replace(day=1).timestamp()


def _midnight(at: float) -> datetime:
    return _utc(at).replace(hour=0, minute=0, second=0, microsecond=0)


def _utc(at: float) -> datetime:
    return datetime.fromtimestamp(at, tz=UTC)


# --- the account ----------------------------------------------------------------------------------------------------


def brought_to(account: Account, limits: Limits, now: float) -> Account:
    """Return *account* at *now*: refilled, and with nothing spent in a day or month that has just begun."""
    gone_s = max(0.0, now - account.at)
    day = account.day if account.day and now // _DAY_S == account.at // _DAY_S else day_of(now)
    month = day[:7]
    return Account(
        at=now,
        requests=_refilled(account.requests, limits.requests, gone_s),
        tokens=_refilled(account.tokens, limits.tokens, gone_s),
        day=day,
        day_usd=account.day_usd if account.day == day else 0.0,
        month=month,
        month_usd=account.month_usd if account.month == month else 0.0,
    )


def _refilled(level: float, limit: float | None, gone_s: float) -> float:
    return math.inf if limit is None else min(limit, level + gone_s * limit / MINUTE_S)


def admit(account: Account, limits: Limits, now: float, tokens: int) -> tuple[Account, Limit | None]:
    """Return the account afterwards, and what refuses a request of about so many *tokens*; None: it was charged."""
    here = brought_to(account, limits, now)
    refused = lacking(here, limits, tokens)
    return (charged(here, tokens) if refused is None else here), refused


def lacking(here: Account, limits: Limits, tokens: int) -> Limit | None:
    """Return what refuses a request. *here* is brought to this moment. Of two, the one that lasts longer by nature."""
    if limits.month_usd is not None and here.month_usd >= limits.month_usd:
        return Limit.MONTH
    if limits.day_usd is not None and here.day_usd >= limits.day_usd:
        return Limit.DAY
    if here.requests + NEARLY < 1:
        return Limit.REQUESTS
    return Limit.TOKENS if here.tokens + NEARLY < _needed(limits, tokens) else None


def _needed(limits: Limits, tokens: int) -> float:
    return tokens if limits.tokens is None else min(tokens, limits.tokens)


def charged(here: Account, tokens: int) -> Account:
    """Return the account after one request of about so many *tokens*, whether or not there was room for it."""
    return _with(here, here.requests - 1, here.tokens - tokens, here.day_usd, here.month_usd)


def settled(here: Account, limits: Limits, *, tokens: int, day_usd: float, month_usd: float) -> Account:
    """Return the account after a request has ended: *tokens* come back (less than 0: are charged), money is spent."""
    level = math.inf if limits.tokens is None else min(limits.tokens, here.tokens + tokens)
    return _with(here, here.requests, level, here.day_usd + day_usd, here.month_usd + month_usd)


def raised(here: Account, other: Account) -> Account:
    """Return the account with what *other* knows to be spent in the same day and month, if that is more."""
    day_usd = max(here.day_usd, other.day_usd) if here.day == other.day else here.day_usd
    month_usd = max(here.month_usd, other.month_usd) if here.month == other.month else here.month_usd
    if day_usd == here.day_usd and month_usd == here.month_usd:
        return here
    return _with(here, here.requests, here.tokens, day_usd, month_usd)


def _with(here: Account, requests: float, tokens: float, day_usd: float, month_usd: float) -> Account:
    """Return *here* with other levels and sums; `replace` costs several times as much, and every request does this."""
    return Account(
        at=here.at,
        requests=requests,
        tokens=tokens,
        day=here.day,
        day_usd=day_usd,
        month=here.month,
        month_usd=month_usd,
    )


# --- what a client is told ------------------------------------------------------------------------------------------


def wait_s(here: Account, limits: Limits, refused: Limit, tokens: int) -> float:
    """Return how long it takes until *refused* no longer refuses the request, if nothing else is asked meanwhile."""
    if refused in BUDGETS:
        return (next_day if refused is Limit.DAY else next_month)(here.at) - here.at
    return max(
        _until(1, here.requests, limits.requests), _until(_needed(limits, tokens), here.tokens, limits.tokens), 0.0
    )


def _until(level: float, now: float, limit: float | None) -> float:
    return 0.0 if limit is None else (level - now) * MINUTE_S / limit


def standings(here: Account, limits: Limits) -> tuple[Standing, ...]:
    """Return the rates that are limited, requests first."""
    rates = (Limit.REQUESTS, limits.requests, here.requests), (Limit.TOKENS, limits.tokens, here.tokens)
    return tuple(
        Standing(str(name), int(limit), max(0, int(level + NEARLY)), max(0.0, _until(limit, level, limit)))
        for name, limit, level in rates
        if limit is not None
    )


def spoken(seconds: float) -> str:
    """Return a duration as OpenAI spells it: ``0s``, ``120ms``, ``1s``, ``6m0s``, ``1h0m0s``; rounded up."""
    milliseconds = math.ceil(seconds * 1000 - NEARLY)
    if 0 < milliseconds < 1000:
        return f"{milliseconds}ms"
    minutes, left = divmod(max(0, math.ceil(seconds - NEARLY)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes}m{left}s" if hours else f"{minutes}m{left}s" if minutes else f"{left}s"
