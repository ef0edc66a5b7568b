"""What usage costs at given prices. It knows no models: prices come from the catalogue."""

from __future__ import annotations

from typing import Final

from troyproxy.accounting.usage import Usage

_PER: Final = 1_000_000


def cost_usd(
    usage: Usage,
    input: float | None,  # noqa: A002 - named as in the catalogue
    output: float | None,
    cached: float | None,
) -> float | None:
    """Return the cost in USD; prices are USD per million tokens.

    None when it cannot be known: no input price, or output tokens without an output price (embeddings have none).
    Cached tokens are charged at the input price where no cached price is known.
    """
    if input is None or (output is None and usage.output):
        return None
    hits = min(usage.cached, usage.input)
    reads = hits * (input if cached is None else cached)
    return ((usage.input - hits) * input + reads + usage.output * (output or 0.0)) / _PER
