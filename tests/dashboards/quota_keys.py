"""What is used up: the limits of the providers' accounts, and our own of the client keys."""

from __future__ import annotations

from typing import Final

from grafana_foundation_sdk.models import units

from tests.dashboards.board import Board
from tests.dashboards.panels import GREEN, ORANGE, RED, Look, lines, listing, number, stacked
from tests.dashboards.queries import EVERY, grown, of, or_none, rate, total, worst

LEFT: Final = of("budget_remaining_ratio")
REFUSED: Final = of("rate_limited_total")
LIMITED: Final = of("attempts_total", "provider", class_="rate|quota")
LOCKED: Final = of("cooldown_remaining_seconds", "provider")
ACCOUNTS: Final = "provider", "account"

NOW: Final = (
    number(
        "Least budget left",
        f"min({LEFT})",
        "Of all client keys with a budget that were used, the one nearest to its end.",
        unit=units.PercentUnit,
        look=Look(w=6, h=4, steps=((None, RED), (0.1, ORANGE), (0.25, GREEN)), alert="troyproxybudgetnearlyspent"),
    ),
    number(
        "Refused to keys",
        or_none(total(grown(REFUSED))),
        "Requests of this range that a client key's own limit refused.",
        look=Look(w=6, h=4, steps=((None, GREEN), (1, ORANGE))),
    ),
    number(
        "Refused by providers",
        or_none(total(grown(LIMITED))),
        "Attempts of this range that ended at a provider's rate limit or quota.",
        look=Look(w=6, h=4, steps=((None, GREEN), (1, ORANGE)), alert="troyproxyprovidercooling"),
    ),
    number(
        "Accounts locked",
        f"avg({LOCKED} > bool 0)",
        "Share of the providers' accounts that may not be asked now.",
        unit=units.PercentUnit,
        look=Look(w=6, h=4, steps=((None, GREEN), (0.25, ORANGE), (0.75, RED)), alert="troyproxyprovidercooling"),
    ),
)

KEYS: Final = (
    lines(
        "Budget left by key",
        "Share of a client key's budget of the day or month that is left; it comes back at the turn of the window.",
        (f"min by (key, window) ({LEFT})", "{{key}} ({{window}})"),
        unit=units.PercentUnit,
        look=Look(steps=((None, RED), (0.1, GREEN)), alert="troyproxybudgetnearlyspent"),
    ),
    stacked(
        "Refusals by key",
        "Per second, by limit: requests and tokens a minute, budgets of the day and the month.",
        (total(rate(REFUSED), "key", "limit"), "{{key}} {{limit}}"),
        unit=units.RequestsPerSecond,
    ),
    listing(
        "Refusals of this range",
        f"{total(grown(REFUSED), 'key', 'limit')} > 0",
        "Which key met which of its limits.",
        {"key": "Key", "limit": "Limit", "Value": "Refused"},
    ),
    listing(
        "Budgets",
        f"min by (key, window) ({LEFT}) * 100",
        "Percent that is left, of keys that were used.",
        {"key": "Key", "window": "Window", "Value": "Left"},
        unit=units.Percent,
        look=Look(alert="troyproxybudgetnearlyspent"),
    ),
)

QUOTA: Final = (
    stacked(
        "Rate limits and quotas met",
        "Attempts that a provider refused for its limits. What is left of a quota mostly nobody tells;"
        " `troyproxy quota` has what is known.",
        (total(grown(LIMITED, EVERY), "provider", "class"), "{{provider}} {{class}}"),
        unit=units.Short,
        look=Look(alert="troyproxyprovidercooling"),
    ),
    lines(
        "Share of the accounts that are locked",
        "By provider. 1: nobody there may be asked.",
        (f"avg by (provider) ({LOCKED} > bool 0)", "{{provider}}"),
        unit=units.PercentUnit,
        look=Look(steps=((None, GREEN), (1, RED)), alert="troyproxyprovidercooling"),
    ),
    listing(
        "Locked now",
        f"{worst(LOCKED, *ACCOUNTS)} > 0",
        "Accounts that may not be asked, and for how long.",
        {"provider": "Provider", "account": "Account", "Value": "Left"},
        unit=units.Seconds,
        look=Look(w=8, alert="troyproxyprovidercooling"),
    ),
    listing(
        "Tokens of this range",
        f"{total(grown(of('tokens_total', 'provider', kind='input|output')), 'provider', 'kind')} > 0",
        "Used at each provider by answers that clients got: a lower bound of what counts towards a quota.",
        {"provider": "Provider", "kind": "Kind", "Value": "Tokens"},
        look=Look(w=8),
    ),
    listing(
        "Attempts of this range",
        f"{total(grown(of('attempts_total', 'provider')), 'provider')} > 0",
        "Calls to each provider, the failed ones too: what counts towards a limit of requests.",
        {"provider": "Provider", "Value": "Attempts"},
        look=Look(w=8),
    ),
)

QUOTA_KEYS: Final = Board(
    "quota-keys",
    "quota and keys",
    "What is used up: limits of the providers' accounts, and our own limits of client keys.",
    {"Now": NOW, "Client keys": KEYS, "Providers' limits": QUOTA},
)
