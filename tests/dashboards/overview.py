"""The first page to open: how clients are served, what it costs, who stepped in for whom, and what is wrong now."""

from __future__ import annotations

from typing import Final

from grafana_foundation_sdk.models import units

from tests.dashboards.board import Board
from tests.dashboards.panels import GREEN, ORANGE, RED, UP, Look, lines, listing, number, stacked
from tests.dashboards.queries import EVERY, TO_FIRST_TOKEN, grown, of, or_none, quantile, rate, success, total, worst

ALERT_LABELS: Final = ("alertname", "alertstate", "instance", "provider", "model", "combo", "key", "queue")
LEFT: Final = of("failovers_total", "combo", from_provider="$provider")

NOW: Final = (
    number(
        "Requests",
        total(rate(of("requests_total", "combo"))),
        "Finished requests per second, whatever became of them.",
        unit=units.RequestsPerSecond,
    ),
    number(
        "Success",
        success(),
        "Good answers among the requests that were ours to serve: mistakes of clients and hang-ups do not count.",
        unit=units.PercentUnit,
        look=Look(w=4, h=4, steps=((None, RED), (0.95, ORANGE), (0.99, GREEN)), alert="troyproxysuccesslow"),
    ),
    number(
        "First token, p95",
        quantile(0.95, TO_FIRST_TOKEN, "provider"),
        "19 of 20 requests had their first output within this time of their arrival, failovers included.",
        unit=units.Seconds,
        look=Look(w=4, h=4, steps=((None, GREEN), (5, ORANGE), (15, RED))),
    ),
    number(
        "Overhead, p95",
        quantile(0.95, "overhead_seconds"),
        "What the gateway itself adds before the answer begins.",
        unit=units.Seconds,
        look=Look(w=4, h=4, steps=((None, GREEN), (0.01, ORANGE), (0.05, RED))),
    ),
    number(
        "Circuits not closed",
        or_none(f"count({of('circuit_state', 'provider')} > 0)"),
        "Models of providers that are left alone, or tried with one request, because they failed.",
        look=Look(w=4, h=4, steps=((None, GREEN), (1, ORANGE)), alert="troyproxycircuitopen"),
    ),
    number(
        "Cost of this range",
        total(grown(of("cost_usd_total", "provider"))),
        "Of the answers that clients got, where prices are known.",
        unit=units.Dollars,
    ),
    listing(
        "Alerts",
        'ALERTS{alertname=~"Troyproxy.*"}',
        "Alerts that fire, or will if it goes on (pending). The name of an alert is its heading in the runbook.",
        {name: name.removeprefix("alert").capitalize() for name in ALERT_LABELS},
        look=Look(w=24, h=5, alert="alerts"),
    ),
)

TRAFFIC: Final = (
    stacked(
        "Requests by outcome",
        "ok; client_error: the client's mistake; refused: nobody could be asked; upstream_error: all that were asked"
        " failed; truncated: an answer broke off after it had begun; cancelled: the client left.",
        (total(rate(of("requests_total", "combo")), "outcome"), "{{outcome}}"),
        unit=units.RequestsPerSecond,
    ),
    lines(
        "Success by combo",
        "Good answers among the requests that were ours to serve; `direct` are those for one model, for which"
        " nobody steps in.",
        (f'label_replace({success("combo")}, "combo", "direct", "combo", "")', "{{combo}}"),
        unit=units.PercentUnit,
        look=Look(steps=((None, RED), (0.95, GREEN)), alert="troyproxysuccesslow"),
    ),
    lines(
        "Requests by route and status",
        "Templates, not paths; 499 is a client that left.",
        (total(rate(of("requests_total", "combo")), "route", "status"), "{{status}} {{route}}"),
        unit=units.RequestsPerSecond,
        look=Look(w=8),
    ),
    lines(
        "Streams and whole answers",
        "Requests per second that asked for a stream, and those that did not.",
        (total(rate(of("requests_total", "combo")), "stream"), "stream {{stream}}"),
        unit=units.RequestsPerSecond,
        look=Look(w=8),
    ),
    lines(
        "In flight",
        "Requests that are being served, by instance.",
        (total(of("inflight_requests"), "instance"), "{{instance}}"),
        look=Look(w=8),
    ),
)

LATENCY: Final = (
    lines(
        "Request duration",
        "From arrival to the last byte; streams included. A point leads to a request where exemplars are kept.",
        *((quantile(share, "request_duration_seconds"), f"p{share * 100:g}") for share in (0.5, 0.95, 0.99)),
        unit=units.Seconds,
    ),
    lines(
        "Time to first token",
        "From a request's arrival to its first output, failovers included, by the provider that answered.",
        (quantile(0.5, TO_FIRST_TOKEN, "provider", by=("provider",)), "{{provider}} p50"),
        (quantile(0.95, TO_FIRST_TOKEN, "provider", by=("provider",)), "{{provider}} p95"),
        unit=units.Seconds,
    ),
    lines(
        "Overhead of the gateway",
        "Time spent in the gateway before the answer begins; waiting for upstreams is not in it.",
        *((quantile(share, "overhead_seconds"), f"p{share * 100:g}") for share in (0.5, 0.95, 0.99)),
        unit=units.Seconds,
        look=Look(steps=((None, GREEN), (0.05, RED))),
    ),
    lines(
        "Upstream attempts",
        "One attempt, to its end; those that failed are in it.",
        *((quantile(share, "upstream_duration_seconds"), f"p{share * 100:g}") for share in (0.5, 0.95, 0.99)),
        unit=units.Seconds,
    ),
)

TOKENS: Final = (
    lines(
        "Tokens per second",
        "Of answers that clients got. Cached is part of input, reasoning is part of output.",
        (total(rate(of("tokens_total", "provider")), "kind"), "{{kind}}"),
        look=Look(w=8),
    ),
    stacked(
        "Cost per hour",
        "Of answers that clients got, where prices are known.",
        (f"{total(rate(of('cost_usd_total', 'provider')), 'provider')} * 3600", "{{provider}}"),
        unit=units.Dollars,
        look=Look(w=8),
    ),
    stacked(
        "Wasted tokens",
        "Reported by upstreams, received by no client: attempts that were given up, clients that left, summaries.",
        (total(grown(of("wasted_tokens_total", "provider"), EVERY), "reason"), "{{reason}}"),
        unit=units.Short,
        look=Look(w=8),
    ),
)

FAILOVERS: Final = (
    listing(
        "Failovers of this range",
        f"{total(grown(LEFT), 'from_provider', 'to_provider', 'class')} > 0",
        "Walks that left one provider for another, and the class of the error that made them. In a long outage they are"
        " few: who is known to be down is passed over.",
        {"from_provider": "From", "to_provider": "To", "class": "Because of", "Value": "Failovers"},
    ),
    stacked(
        "Passed over",
        "Members of combos that were not asked, per second: an open circuit, a lock, a need the model does not meet.",
        (total(rate(of("skips_total", "provider")), "provider", "reason"), "{{provider}} {{reason}}"),
        unit=units.RequestsPerSecond,
    ),
    stacked(
        "Failovers over time",
        "Walks that left a provider, by combo; requests that named one model have none.",
        (total(grown(LEFT, EVERY), "combo", "from_provider"), "{{combo}}: away from {{from_provider}}"),
        unit=units.Short,
        look=Look(w=24),
    ),
)

GATEWAY: Final = (
    number(
        "Database",
        f"min({of('database_up')})",
        "Whether the last operation succeeded. Requests are served without it; usage rows wait in their queue.",
        states=UP,
        look=Look(w=4, h=4, alert="troyproxydatabasedown"),
    ),
    number(
        "Shared state",
        f"min({of('shared_state_up')})",
        "Whether the Redis that instances share their state through can be used. No value: there is none.",
        states=UP,
        look=Look(w=4, h=4, alert="troyproxysharedstatedown"),
    ),
    number(
        "Configuration age",
        worst(of("config_age_seconds")),
        "Since the configuration in use was last found to be the newest: more than some seconds means that a change is"
        " refused, or cannot be read.",
        unit=units.Seconds,
        look=Look(w=4, h=4, steps=((None, GREEN), (60, ORANGE), (300, RED)), alert="troyproxyconfigstale"),
    ),
    number(
        "Revisions apart",
        f"{worst(of('config_revision'))} - min({of('config_revision')})",
        "0: all instances use the same configuration.",
        look=Look(w=4, h=4, steps=((None, GREEN), (1, ORANGE)), alert="troyproxyconfigstale"),
    ),
    listing(
        "What runs",
        of("build_info"),
        "Version by instance.",
        {"instance": "Instance", "version": "Version", "python": "Python"},
        look=Look(w=8, h=4),
    ),
    lines(
        "Queues to the database",
        "Entries that wait for the writer. A queue that stays full loses what comes next.",
        (total(of("queue_depth"), "queue"), "{{queue}} waiting"),
        (total(grown(of("queue_dropped_total"), EVERY), "queue"), "{{queue}} lost"),
        look=Look(alert="troyproxyqueuedrops"),
    ),
    lines(
        "Configuration",
        "The revision by instance: they part for a moment at each change.",
        (worst(of("config_revision"), "instance"), "{{instance}}"),
    ),
)

OVERVIEW: Final = Board(
    "overview",
    "overview",
    "How clients are served, what it costs, which provider stepped in for which, and what is wrong now.",
    {
        "Now": NOW,
        "Traffic": TRAFFIC,
        "Latency": LATENCY,
        "Tokens and cost": TOKENS,
        "Failing over": FAILOVERS,
        "The gateway itself": GATEWAY,
    },
)
