"""A registry as text: Prometheus or OpenMetrics, as the scraper's Accept header asks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric
from prometheus_client.openmetrics import exposition as openmetrics

OPENMETRICS: Final = "application/openmetrics-text"
PLAIN: Final = "text/plain"
PLAIN_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"


def render(registry: CollectorRegistry, accept: str) -> tuple[bytes, str]:
    """Return the metrics of *registry* and their content type."""
    view = WithoutCreated(registry)
    if wants_openmetrics(accept):
        text: bytes = openmetrics.generate_latest(view)  # type: ignore[no-untyped-call]  # the library has no types
        return text, openmetrics.CONTENT_TYPE_LATEST
    return generate_latest(view), PLAIN_TYPE


class WithoutCreated:
    """Leaves out the ``_created`` samples, which nobody draws and which double the number of series."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics of the registry."""
        for metric in self._registry.collect():
            metric.samples = [sample for sample in metric.samples if not sample.name.endswith("_created")]
            yield metric


def wants_openmetrics(accept: str) -> bool:
    """Whether *accept* names OpenMetrics and does not prefer plain text (RFC 9110, section 12.5.1). Never raises."""
    weights: dict[str, float] = {}
    for part in accept.lower().split(","):
        media, *params = (piece.strip() for piece in part.split(";"))
        weights[media] = max(_weight(params), weights.get(media, 0.0))
    return weights.get(OPENMETRICS, 0.0) > 0 and weights[OPENMETRICS] >= weights.get(PLAIN, 0.0)


def _weight(params: list[str]) -> float:
    given = next((param.removeprefix("q=") for param in params if param.startswith("q=")), "1")
    try:
        return float(given)
    except ValueError:
        return 0.0
