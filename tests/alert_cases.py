"""When each alert fires, and when it must not: series as promtool writes them, one sample a minute from minute 0 on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

STEP: Final = "1m"


@dataclass(frozen=True, slots=True)
class Case:
    """*series*: name with labels, without the prefix → values. *at*: when it is looked at.

    *labels* and *summary* are those of the alert that fires; without a summary none does.
    """

    alert: str
    what: str
    series: Mapping[str, str]
    at: str
    summary: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)


A: Final = {"instance": "a"}
JOB: Final = {**A, "job": "troyproxy"}


def _requests(**outcomes: str) -> dict[str, str]:
    """Return series of requests by outcome."""
    return {f'requests_total{{instance="a",outcome="{name}"}}': values for name, values in outcomes.items()}


def _cooling(**accounts: str) -> dict[str, str]:
    pairs = ((name if name != "every" else "*", values) for name, values in accounts.items())
    return {
        f'cooldown_remaining_seconds{{instance="a",provider="alpha",account="{name}"}}': values
        for name, values in pairs
    }


def _leaks(leaks: str, attempts: str) -> dict[str, str]:
    return {
        'tool_leaks_total{instance="a",provider="alpha",model="m1",format="hermes",action="repaired"}': leaks,
        'attempts_total{instance="a",provider="alpha",model="m1",outcome="ok",class="none"}': attempts,
    }


CIRCUIT: Final = 'circuit_state{instance="a",provider="alpha",model="m1"}'
OPEN: Final = "the circuit of alpha/m1 stays open"
MODEL: Final = {"provider": "alpha", "model": "m1"}
BUDGET: Final = 'budget_remaining_ratio{instance="a",key="laptop",window="day"}'

CASES: Final = (
    Case("Down", "it is gone", {'up{instance="a",job="troyproxy"}': "1 0x9"}, "3m", "a cannot be scraped", JOB),
    Case("Down", "one scrape failed", {'up{instance="a",job="troyproxy"}': "1 0 1x9"}, "2m"),
    Case("Down", "another service is gone", {'up{instance="a",job="postgres"}': "0x9"}, "5m"),
    Case("SuccessLow", "nobody is asked any more", _requests(refused="0+60x9"), "8m", "100% of the requests fail"),
    Case(
        "SuccessLow",
        "one in ten fails",
        _requests(ok="0+54x9", upstream_error="0+3x9", truncated="0+3x9"),
        "8m",
        "10% of the requests fail",
    ),
    Case("SuccessLow", "one in thirty fails", _requests(ok="0+58x9", upstream_error="0+2x9"), "8m"),
    Case("SuccessLow", "clients err and leave", _requests(ok="0+9x9", client_error="0+60x9", cancelled="0+60x9"), "8m"),
    Case("SuccessLow", "there is next to no traffic", _requests(upstream_error="0+1x9"), "8m"),
    Case("SuccessLow", "it was bad for a minute", _requests(ok="0+60x20", upstream_error="0 8 8x20"), "9m"),
    Case("CircuitOpen", "it stays open", {CIRCUIT: "0 2x12"}, "9m", OPEN, {**A, **MODEL}),
    Case("CircuitOpen", "probes fail", {CIRCUIT: "2 1 2 1 2 1 2 1 2 1"}, "8m", OPEN, {**A, **MODEL}),
    Case("CircuitOpen", "it closes after four minutes", {CIRCUIT: "0 2 2 2 2 0x12"}, "6m"),
    Case("CircuitOpen", "nobody asks for the model any more", {CIRCUIT: "2 2 1x20"}, "15m"),
    Case(
        "ProviderCooling",
        "both accounts are locked",
        _cooling(A="60x9", B="0 5x9"),
        "4m",
        "every account of alpha is locked",
        {**A, "provider": "alpha"},
    ),
    Case("ProviderCooling", "one is free", _cooling(A="60x9", B="0x9"), "5m"),
    Case("ProviderCooling", "a model does not exist there", _cooling(A="0x9", every="300x9"), "5m"),
    Case(
        "AutoIncident",
        "most providers are down",
        {'auto_incident{instance="a",combo="auto"}': "0 1x9"},
        "4m",
        "most providers of auto are down",
        {**A, "combo": "auto"},
    ),
    Case("AutoIncident", "all is well", {'auto_incident{instance="a",combo="auto"}': "0x9"}, "5m"),
    Case(
        "ToolLeaks",
        "one call in five leaks",
        _leaks("0+2x30", "0+10x30"),
        "20m",
        "20% of the calls to alpha/m1 leak tool calls",
        MODEL,
    ),
    Case("ToolLeaks", "one call in fifty leaks", _leaks("0+1x30", "0+50x30"), "20m"),
    Case("ToolLeaks", "one leaked, of few", _leaks("0 0 0 1x30", "0 0 0 3x30"), "12m"),
    Case(
        "QueueDrops",
        "entries were lost",
        {'queue_dropped_total{instance="a",queue="usage"}': "0x5 3x20"},
        "8m",
        "entries for the database were lost on a (usage)",
        {**A, "queue": "usage"},
    ),
    Case("QueueDrops", "that was long ago", {'queue_dropped_total{instance="a",queue="usage"}': "0 3x30"}, "20m"),
    Case("SharedStateDown", "Redis is gone", {'shared_state_up{instance="a"}': "1 0x9"}, "4m", "a cannot use Redis", A),
    Case("SharedStateDown", "Redis was restarted", {'shared_state_up{instance="a"}': "1 0 1x9"}, "4m"),
    Case(
        "DatabaseDown",
        "the database is gone",
        {'database_up{instance="a"}': "1 0x9"},
        "4m",
        "a cannot use its database",
        A,
    ),
    Case("DatabaseDown", "the database was restarted", {'database_up{instance="a"}': "1 0 1x9"}, "4m"),
    Case(
        "ConfigStale",
        "a change is refused",
        {'config_age_seconds{instance="a"}': "0+60x9"},
        "8m",
        "a has been without the newest configuration for 8m 0s",
        A,
    ),
    Case("ConfigStale", "it follows every change", {'config_age_seconds{instance="a"}': "0.4x30"}, "20m"),
    Case(
        "BudgetNearlySpent",
        "5 % is left",
        {BUDGET: "0.5 0.05x9"},
        "7m",
        "the key laptop has 5% of its budget of the day left",
        {"key": "laptop", "window": "day"},
    ),
    Case("BudgetNearlySpent", "half is left", {BUDGET: "0.5x9"}, "7m"),
)
