"""How the auto engine chooses, and what the gateway mends: leaked tool calls, parameters that a provider refuses."""

from __future__ import annotations

from typing import Final

from grafana_foundation_sdk.models import units

from tests.dashboards.board import Board
from tests.dashboards.panels import GREEN, ORANGE, RED, Look, lines, listing, number, stacked, timeline
from tests.dashboards.queries import EVERY, grown, of, or_none, quantile, rate, total, worst

PICKS: Final = of("auto_picks_total", "combo", "provider")
LEAKS: Final = of("tool_leaks_total", "provider")
MODEL: Final = "provider", "model"
INCIDENT: Final = {0: ("normal", GREEN), 1: ("incident", RED)}

NOW: Final = (
    number(
        "Plans of auto",
        total(rate(PICKS)),
        "Requests per second for which the auto engine ordered the candidates.",
        unit=units.RequestsPerSecond,
        look=Look(w=6, h=4),
    ),
    number(
        "Explored",
        f"{total(rate(of('auto_explorations_total', 'combo')))} / {total(rate(of('auto_picks_total', 'combo')))}",
        "Share of the plans that put another candidate than the best first, to learn about it.",
        unit=units.PercentUnit,
        look=Look(w=6, h=4, steps=((None, GREEN), (0.2, ORANGE))),
    ),
    number(
        "Incident",
        or_none(worst(of("auto_incident", "combo"))),
        "Most providers of a pool are down, and the engine goes by what worked last.",
        states=INCIDENT,
        look=Look(w=6, h=4, alert="troyproxyautoincident"),
    ),
    number(
        "Leaked tool calls",
        or_none(total(grown(LEAKS))),
        "Tool calls that came as text in this range.",
        look=Look(w=6, h=4, steps=((None, GREEN), (1, ORANGE)), alert="troyproxytoolleaks"),
    ),
)

AUTO: Final = (
    stacked(
        "Plans by variant",
        "The auto ids and the combos whose strategy is auto.",
        (total(rate(PICKS), "combo"), "{{combo}}"),
        unit=units.RequestsPerSecond,
    ),
    stacked(
        "Candidates that led",
        "Who was put first.",
        (total(rate(PICKS), "provider", "model"), "{{provider}}/{{model}}"),
        unit=units.RequestsPerSecond,
    ),
    lines(
        "Scores of the leaders",
        "Of 1. A median that falls: even the best candidate is slow, failing or near its quota.",
        (quantile(0.5, "auto_score", "combo", by=("combo",)), "{{combo}} p50"),
        (quantile(0.05, "auto_score", "combo", by=("combo",)), "{{combo}} p5"),
    ),
    lines(
        "Explorations",
        "Plans per second that put another candidate than the best first.",
        (total(rate(of("auto_explorations_total", "combo")), "combo"), "{{combo}}"),
        unit=units.RequestsPerSecond,
    ),
    listing(
        "Left out in this range",
        f"{total(grown(of('auto_exclusions_total', 'provider')), 'provider', 'model', 'reason')} > 0",
        "Candidates that were left out for a while: for their score, their failures, or a bad probe.",
        {"provider": "Provider", "model": "Model", "reason": "Reason", "Value": "Times"},
    ),
    timeline(
        "Incidents",
        (worst(of("auto_incident", "combo"), "combo"), "{{combo}}"),
        "Most providers of the pool are down.",
        INCIDENT,
        look=Look(alert="troyproxyautoincident"),
    ),
)

TOOLS: Final = (
    stacked(
        "Leaked tool calls by what was done",
        "repaired: the client got a tool call; failed_over: another model answered; suppressed: the text was kept from"
        " the client; observed: it was only counted.",
        (total(grown(LEAKS, EVERY), "action"), "{{action}}"),
        unit=units.Short,
        look=Look(alert="troyproxytoolleaks"),
    ),
    lines(
        "Leaks for each attempt",
        "The share of a model's calls whose tool calls came as text.",
        (
            f"{total(rate(LEAKS), *MODEL)} / {total(rate(of('attempts_total', 'provider')), *MODEL)}",
            "{{provider}}/{{model}}",
        ),
        unit=units.PercentUnit,
        look=Look(steps=((None, GREEN), (0.05, RED)), alert="troyproxytoolleaks"),
    ),
    listing(
        "Leaks of this range",
        f"{total(grown(LEAKS), 'provider', 'model', 'format', 'action')} > 0",
        "Which model leaks in which format.",
        {"provider": "Provider", "model": "Model", "format": "Format", "action": "Action", "Value": "Leaks"},
    ),
    listing(
        "Parameters adapted in this range",
        f"{total(grown(of('params_adapted_total', 'provider')), 'provider', 'param', 'action')} > 0",
        "What was changed in requests because the provider does not take it as it was.",
        {"provider": "Provider", "param": "Parameter", "action": "Action", "Value": "Requests"},
    ),
)

AUTO_TOOLS: Final = Board(
    "auto-tools",
    "auto and tools",
    "How the auto engine chooses, and what is mended: leaked tool calls and parameters.",
    {"Now": NOW, "Auto": AUTO, "Tools and parameters": TOOLS},
)
