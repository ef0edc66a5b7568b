"""The quota board: what is documented of a provider's limits, what was used of them today, what is said of them now.

What is left of a provider's quota nobody can reckon: others may use the same key, and plans differ. So three things
stand side by side and are never subtracted. What is not known is absent, and no zero stands for it:

    ceilings    documented, with how well and since when that is known
    usage       of the UTC day, by our own rows: a lower bound; absent without traffic
    live        locks, circuits, and the last rate-limit headers with their age

One builder for the API and the command line. It reads no clock and no database.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime
from enum import StrEnum
from typing import Final

from troyproxy.accounting.consumption import window_of
from troyproxy.catalog.ceilings import STALE_DAYS, Ceiling, Ceilings

ANY: Final = "*"
"""A lock over every model, or over every account."""


class State(StrEnum):
    """Whether a provider can be had now, as far as this process knows."""

    OK = "ok"
    PARTLY = "partly"
    """Some account, model or circuit is barred."""
    LIMITED = "limited"
    """Every account is barred for every model."""
    UNKNOWN = "unknown"
    """No traffic today and nothing heard: nobody knows."""
    NO_ACCOUNT = "no-account"
    """Configured, but without an account that could be used."""
    NOT_CONFIGURED = "not-configured"
    """Listed for its ceilings only."""


@dataclass(frozen=True, slots=True)
class DayUse:
    """What the upstream answered for one account on one UTC day, as far as usage rows tell: a lower bound."""

    provider: str
    account: str
    requests: int = 0
    """Answered with a status below 400: those a vendor surely counts."""
    rate_limited: int = 0
    """Answered with 429."""
    embeddings: int = 0
    """Of the requests, those for embeddings: they share the key, and with it the quota."""
    tokens: int = 0
    """Of the requests that told."""
    told: int = 0
    """How many requests told their tokens."""


@dataclass(frozen=True, slots=True)
class Heard:
    """The last thing an upstream said of one bucket in a rate-limit header. *remaining_ratio*: 0 to 1."""

    bucket: str
    remaining_ratio: float
    limit: float | None
    remaining: float | None
    """In the upstream's own number; absent where it gave only a share."""
    reset_at: float | None
    at: float
    current: bool
    """Whether the window it speaks of still runs."""


@dataclass(frozen=True, slots=True)
class Own:
    """A quota that the operator gave an account, and how much of it is left by our own count."""

    bucket: str
    limit: float
    remaining_ratio: float
    reset_at: float | None


@dataclass(frozen=True, slots=True)
class Lock:
    """A cooldown that holds now; ``*`` means every model, or every account."""

    account: str
    model: str
    error_class: str
    until: float
    soft: bool


@dataclass(frozen=True, slots=True)
class Circuit:
    """A circuit that is not closed."""

    model: str
    state: str
    until: float | None


@dataclass(frozen=True, slots=True)
class AccountView:
    """What is known of one account that may be used."""

    name: str
    heard: tuple[Heard, ...] = ()
    own: tuple[Own, ...] = ()


@dataclass(frozen=True, slots=True)
class ProviderView:
    """What is known of one configured provider."""

    id: str
    accounts: tuple[AccountView, ...] = ()
    locks: tuple[Lock, ...] = ()
    circuits: tuple[Circuit, ...] = ()


Told = dict[str, object]


def board(views: Sequence[ProviderView], ceilings: Ceilings, used: Sequence[DayUse] | None, now: float) -> Told:
    """Return the board at *now* (unix seconds), JSON-ready. *used* None: the database cannot be read.

    Configured providers come first, in their order; the others are there for their ceilings.
    """
    begin, end = window_of("day", now)
    today = datetime.fromtimestamp(now, UTC).date()
    known = {view.id for view in views}
    return {
        "now": now,
        "day": datetime.fromtimestamp(begin, UTC).date().isoformat(),
        "day_ends_at": end,
        "usage_known": used is not None,
        "providers": [
            *(_provider(view, ceilings.get(view.id, ()), _of(used or (), view.id), today, now) for view in views),
            *(_reference(name, plans, today) for name, plans in ceilings.items() if name not in known),
        ],
    }


def _of(used: Iterable[DayUse], provider: str) -> Mapping[str, DayUse]:
    return {each.account: each for each in used if each.provider == provider}


def _reference(name: str, plans: Sequence[Ceiling], today: date) -> Told:
    listed = [_ceiling(each, today) for each in plans]
    return {"provider": name, "state": State.NOT_CONFIGURED.value, "ceilings": listed, "accounts": []}


def _provider(
    view: ProviderView, plans: Sequence[Ceiling], used: Mapping[str, DayUse], today: date, now: float
) -> Told:
    gone = [DayUse(view.id, name) for name in used if name not in {account.name for account in view.accounts}]
    accounts = (*view.accounts, *(AccountView(each.account) for each in gone))
    return {
        "provider": view.id,
        "state": state_of(view, used).value,
        "ceilings": [_ceiling(each, today) for each in plans],
        **_usage(tuple(used.values())),
        "accounts": [_account(each, view.locks, used.get(each.name), now) for each in accounts],
        **_some("cooldowns", [_lock(lock) for lock in view.locks if lock.account == ANY]),
        **_some("circuits", [_known(asdict(circuit)) for circuit in view.circuits]),
    }


def state_of(view: ProviderView, used: Mapping[str, DayUse]) -> State:
    """Return whether the provider of *view* can be had; *used* is its usage of the day by account."""
    if not view.accounts:
        return State.NO_ACCOUNT
    barred = {lock.account for lock in view.locks if lock.model == ANY and not lock.soft}
    if barred.issuperset(account.name for account in view.accounts):
        return State.LIMITED
    if view.locks or view.circuits:
        return State.PARTLY
    heard = any(each.current for account in view.accounts for each in account.heard)
    return State.OK if used or heard else State.UNKNOWN


def _account(account: AccountView, locks: Iterable[Lock], used: DayUse | None, now: float) -> Told:
    return {
        "account": account.name,
        **_usage(() if used is None else (used,)),
        **_some("signals", [{**_known(asdict(each)), "age_s": max(0.0, now - each.at)} for each in account.heard]),
        **_some("quotas", [_known(asdict(each)) for each in account.own]),
        **_some("cooldowns", [_lock(lock) for lock in locks if lock.account == account.name]),
    }


def _usage(used: Sequence[DayUse]) -> Told:
    """Return the usage of these accounts together; nothing when there was none."""
    if not used:
        return {}
    told = sum(each.told for each in used)
    tokens = {"tokens": sum(each.tokens for each in used)} if told else {}
    return {
        "usage": {
            "lower_bound": True,
            "requests": sum(each.requests for each in used),
            "rate_limited": sum(each.rate_limited for each in used),
            "embeddings": sum(each.embeddings for each in used),
            **tokens,
            "requests_with_tokens": told,
        }
    }


def _ceiling(ceiling: Ceiling, today: date) -> Told:
    age = ceiling.age_days(today)
    facts = {**_known(asdict(ceiling)), "confidence": ceiling.confidence.value}
    verified_on = ceiling.verified_on.isoformat()
    return {**facts, "verified_on": verified_on, "age_days": age, "stale": age > STALE_DAYS}


def _lock(lock: Lock) -> Told:
    facts = asdict(lock)
    return {"class": facts.pop("error_class"), **facts}


def _some(name: str, listed: Sequence[Told]) -> Told:
    return {name: listed} if listed else {}


def _known(facts: Mapping[str, object]) -> Told:
    """Return *facts* without what is not known."""
    return {name: value for name, value in facts.items() if value is not None and value != ""}
