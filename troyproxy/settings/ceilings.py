"""The documented limits of vendors' plans, read from the catalogue's data file."""

from __future__ import annotations

from datetime import date
from typing import Final

from troyproxy.catalog import naming
from troyproxy.catalog.ceilings import Ceiling, Ceilings, Confidence
from troyproxy.settings import leaves
from troyproxy.settings.own_data import decoded, shaped
from troyproxy.settings.report import Wrong
from troyproxy.settings.shapes import Shape, leaf, listing, mapping, record

NUMBERS: Final = ("requests_per_day", "requests_per_minute", "tokens_per_minute")
OWNERS: Final = ("organization", "account", "project", "workspace", "key")
FILE: Final = "limits.yaml"


def _day(value: object) -> date:
    if type(value) is not date:
        raise ValueError
    return value


def _page(value: object) -> str:
    if not isinstance(value, str) or not value.startswith("https://"):
        raise ValueError
    return value


def _ceiling(**given: object) -> Ceiling:
    if not any(name in given for name in NUMBERS):
        raise Wrong("", f"needs one of {', '.join(NUMBERS)}")
    confidence = Confidence(str(given.pop("confidence")))
    return Ceiling(confidence=confidence, **given)  # type: ignore[arg-type]  # the shape has seen to it


TEXT: Final = leaves.text()
CEILING: Final[Shape[Ceiling]] = record(
    {
        "plan": TEXT,
        "models": TEXT,
        "shared": leaves.FLAG,
        "per": leaves.one_of(*OWNERS),
        **{name: leaves.whole(1) for name in NUMBERS},
        "confidence": leaves.one_of(*Confidence),
        "verified_on": leaf(_day, "a date like 2026-01-31", {"type": "string", "format": "date"}),
        "source_url": leaf(_page, "an https address", {"type": "string"}),
        "note": TEXT,
    },
    _ceiling,
    ["plan", "confidence", "verified_on", "source_url"],
)
CEILINGS: Final = mapping(listing(CEILING), naming.provider_id)


def parse_ceilings(raw: object, source: str = FILE) -> Ceilings:
    """Return what the decoded data file says. Raises ConfigError, which would be our own fault."""
    return shaped(CEILINGS, raw, source)


def load_ceilings() -> Ceilings:
    """Return the documented limits by provider id, in the order of the data file."""
    return parse_ceilings(decoded(FILE))
