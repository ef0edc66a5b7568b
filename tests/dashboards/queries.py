"""PromQL for the panels: a metric, the labels that dashboards filter by, and the few shapes that queries have.

No query is checked here: ``tests/test_grafana.py`` holds them against the metrics that exist, and promtool parses them.
"""

from __future__ import annotations

from typing import Final

PREFIX: Final = "troyproxy_"
EVERY: Final = "$__rate_interval"
"""As short as the scrape interval allows; Grafana works it out."""
RANGE: Final = "$__range"
"""The time that the dashboard shows."""
TO_FIRST_TOKEN: Final = "time_to_first_token_seconds"


OURS: Final = "ok|upstream_error|truncated|refused"
"""Outcomes of requests that were ours to serve. `refused`: nobody could be asked, as in an outage."""


def of(metric: str, *filters: str, **fixed: str) -> str:
    """Return *metric* of the chosen instances; each of *filters* is a label with a variable of its name.

    ``from_provider="$provider"`` filters by a variable of another name, ``outcome="ok|refused"`` by these values,
    ``account="!*"`` by all but this one; `class_` is the label `class`.
    """
    pairs = {"instance": "$instance", **{name: f"${name}" for name in filters}, **fixed}
    matchers = (_matcher(name.rstrip("_"), value) for name, value in pairs.items())
    return f"{PREFIX}{metric}{{{', '.join(matchers)}}}"


def _matcher(name: str, value: str) -> str:
    if value.startswith("!"):
        return f'{name}!="{value.removeprefix("!")}"'
    return f'{name}{"=~" if "$" in value or "|" in value else "="}"{value}"'


def rate(series: str) -> str:
    """Return how fast *series* grows, per second."""
    return f"rate({series}[{EVERY}])"


def grown(series: str, over: str = RANGE) -> str:
    """Return by how much *series* grew.

    A counter appears with its first event, which `increase` does not see: where there was no series at the beginning,
    its first value is added.
    """
    seen = f"increase({series}[{over}])"
    return f"({seen} + (min_over_time({series}[{over}]) unless {series} offset {over}) or {seen})"


def or_none(expression: str, measured: str | None = None) -> str:
    """Return *expression*, which counts what there is of something, and 0 where it finds nothing.

    But no 0 where nothing is *measured* (without it: scraped), since then nobody knows.
    """
    return f"{expression} or 0 * count({measured or of('build_info')})"


def total(expression: str, *by: str) -> str:
    """Return the sum, apart for each value of the labels *by*."""
    return f"sum by ({', '.join(by)}) ({expression})" if by else f"sum({expression})"


def worst(expression: str, *by: str) -> str:
    """Return the highest value, apart for each value of the labels *by*."""
    return f"max by ({', '.join(by)}) ({expression})" if by else f"max({expression})"


def quantile(share: float, metric: str, *filters: str, by: tuple[str, ...] = ()) -> str:
    """Return the value that *share* of the observations of a histogram do not exceed."""
    buckets = total(rate(of(f"{metric}_bucket", *filters)), "le", *by)
    return f"histogram_quantile({share:g}, {buckets})"


def success(*by: str) -> str:
    """Return the share of good answers among the requests that were ours to serve."""
    good = total(rate(of("requests_total", "combo", outcome="ok")), *by)
    decided = total(rate(of("requests_total", "combo", outcome=OURS)), *by)
    return f"{good} / {decided}"
