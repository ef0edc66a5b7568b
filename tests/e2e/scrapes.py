"""What a scrape says, as numbers to compare."""

from __future__ import annotations

from typing import Final

from prometheus_client.parser import text_string_to_metric_families

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]
CLOCKS: Final = ("troyproxy_config_age_seconds", "troyproxy_cooldown_remaining_seconds")
"""What goes on by itself between two scrapes."""


def scraped(body: bytes) -> Samples:
    families = text_string_to_metric_families(body.decode())
    found = (sample for family in families for sample in family.samples)
    return {(s.name, tuple(sorted(s.labels.items()))): s.value for s in found if s.name not in CLOCKS}


def counted(body: bytes) -> Samples:
    """Return what may only grow: counters, and the sums and buckets of histograms."""
    grow = ("_total", "_count", "_sum", "_bucket")
    return {key: value for key, value in scraped(body).items() if key[0].endswith(grow)}
