"""What the gateway thinks of its providers: who fails and how, who is left alone, how fast the others are."""

from __future__ import annotations

from typing import Final

from grafana_foundation_sdk.models import units

from tests.dashboards.board import Board
from tests.dashboards.panels import GREEN, ORANGE, RED, Look, lines, listing, number, stacked, timeline
from tests.dashboards.queries import EVERY, TO_FIRST_TOKEN, grown, of, or_none, quantile, rate, total, worst

STATES: Final = {0: ("closed", GREEN), 1: ("half-open", ORANGE), 2: ("open", RED)}
ATTEMPTS: Final = of("attempts_total", "provider")
GOOD: Final = of("attempts_total", "provider", outcome="ok")
DECIDED: Final = of("attempts_total", "provider", outcome="ok|failed")
OWN_LOCKS: Final = of("cooldown_remaining_seconds", "provider", account="!*")
"""Without those of a model for all accounts."""
ASKED: Final = "ok|upstream_error|truncated|cancelled"
"""Outcomes of requests for which somebody was asked."""

HEALTH: Final = (
    timeline(
        "Circuits",
        (worst(of("circuit_state", "provider"), "provider", "model"), "{{provider}}/{{model}}"),
        "Open: the model is left alone. Half-open: one request tries it, as soon as somebody asks for it. Of several"
        " instances the worst state.",
        STATES,
        look=Look(w=24, alert="troyproxycircuitopen"),
    ),
    lines(
        "Cooldowns",
        "Seconds until an account is asked again: its longest lock over all models. `*` is every account, for a model"
        " that the provider does not have.",
        (worst(of("cooldown_remaining_seconds", "provider"), "provider", "account"), "{{provider}} #{{account}}"),
        unit=units.Seconds,
        look=Look(alert="troyproxyprovidercooling"),
    ),
    lines(
        "State changes of circuits",
        "Many from half-open to open: the provider is still down.",
        (total(grown(of("circuit_transitions_total"), EVERY), "from", "to"), "{{from}} → {{to}}"),
        look=Look(alert="troyproxycircuitopen"),
    ),
)

ATTEMPTING: Final = (
    stacked(
        "Attempts",
        "Calls per second by provider. One request makes several where it fails over.",
        (total(rate(ATTEMPTS), "provider"), "{{provider}}"),
        unit=units.RequestsPerSecond,
    ),
    lines(
        "Success of attempts",
        "Good answers among the calls that were not cancelled.",
        (f"{total(rate(GOOD), 'provider')} / {total(rate(DECIDED), 'provider')}", "{{provider}}"),
        unit=units.PercentUnit,
        look=Look(steps=((None, RED), (0.95, GREEN))),
    ),
    stacked(
        "Failed attempts by class",
        "rate, quota and overload: the provider asks for patience. auth: a key is wrong. transient: no answer, or a"
        " broken one. model: it does not exist there. leak: a tool call came as text.",
        (
            total(grown(of("attempts_total", "provider", outcome="failed"), EVERY), "provider", "class"),
            "{{provider}} {{class}}",
        ),
        unit=units.Short,
    ),
    stacked(
        "Members passed over",
        "Without a call, by reason: an open circuit, a lock, a need the model does not meet, no account.",
        (total(rate(of("skips_total", "provider")), "provider", "reason"), "{{provider}} {{reason}}"),
        unit=units.RequestsPerSecond,
    ),
    listing(
        "Attempts of this range",
        f"{total(grown(ATTEMPTS), 'provider', 'model', 'outcome', 'class')} > 0",
        "How the calls to each model ended.",
        {"provider": "Provider", "model": "Model", "outcome": "Outcome", "class": "Class", "Value": "Attempts"},
    ),
    lines(
        "In flight by account",
        "Requests that each account carries now.",
        (total(of("account_inflight", "provider"), "provider", "account"), "{{provider}} #{{account}}"),
    ),
)

SPEED: Final = (
    lines(
        "Time to first token, p95 by model",
        "From a request's arrival to its first output, by the model that answered.",
        (quantile(0.95, TO_FIRST_TOKEN, "provider", by=("provider", "model")), "{{provider}}/{{model}}"),
        unit=units.Seconds,
    ),
    lines(
        "Gaps between events, p95 by model",
        "How evenly a stream flows once it has begun.",
        (quantile(0.95, "inter_event_seconds", "provider", by=("provider", "model")), "{{provider}}/{{model}}"),
        unit=units.Seconds,
    ),
    stacked(
        "Tokens per second by model",
        "Input and output of answers that clients got.",
        (
            total(rate(of("tokens_total", "provider", kind="input|output")), "provider", "model"),
            "{{provider}}/{{model}}",
        ),
        unit=units.Short,
    ),
    stacked(
        "Wasted tokens by provider",
        "Paid for, received by no client.",
        (total(grown(of("wasted_tokens_total", "provider"), EVERY), "provider", "reason"), "{{provider}} {{reason}}"),
        unit=units.Short,
    ),
)

SUMMARY: Final = (
    number(
        "Providers that are locked",
        or_none(f"count(min by (instance, provider) ({OWN_LOCKS}) > 0)", OWN_LOCKS),
        "Providers of which no account may be asked now.",
        look=Look(w=6, h=4, steps=((None, GREEN), (1, RED)), alert="troyproxyprovidercooling"),
    ),
    number(
        "Accounts that are locked",
        or_none(f"count({of('cooldown_remaining_seconds', 'provider')} > 0)"),
        "Accounts that wait for a limit to pass, or whose key was refused.",
        look=Look(w=6, h=4, steps=((None, GREEN), (1, ORANGE)), alert="troyproxyprovidercooling"),
    ),
    number(
        "Circuits open",
        or_none(f"count({of('circuit_state', 'provider')} == 2)"),
        "Models that are left alone.",
        look=Look(w=6, h=4, steps=((None, GREEN), (1, RED)), alert="troyproxycircuitopen"),
    ),
    number(
        "Attempts for each request",
        f"{total(rate(ATTEMPTS))} / {total(rate(of('requests_total', 'combo', outcome=ASKED)))}",
        "1: every first choice answers.",
        unit=units.Short,
        look=Look(w=6, h=4, steps=((None, GREEN), (1.2, ORANGE), (2, RED))),
    ),
)

PROVIDERS: Final = Board(
    "providers",
    "providers",
    "Who fails and how, who is left alone and for how long, and how fast the others are.",
    {"Now": SUMMARY, "Health": HEALTH, "Attempts": ATTEMPTING, "Speed": SPEED},
)
