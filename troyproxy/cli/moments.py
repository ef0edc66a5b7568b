"""Moments on the command line: read as a date or as a time from now, shown in UTC."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final

import typer

from troyproxy.settings.leaves import MOMENT
from troyproxy.settings.report import Report

_SPAN: Final = re.compile(r"([0-9]{1,5})([mhd])")
_SECONDS: Final = {"m": 60, "h": 3600, "d": 86_400}


def expiry(text: str, now: float) -> float:
    """Return the unix seconds that *text* means: ``90d``, ``12h``, ``30m``, or a date. Raises BadParameter."""
    span = _SPAN.fullmatch(text)
    if span is not None:
        return now + int(span[1]) * _SECONDS[span[2]]
    at = MOMENT.read(text, "", Report())
    if at is None:
        raise typer.BadParameter("allowed: 90d, 12h, 30m, or a date like 2030-01-31 or 2030-01-31T12:00:00Z")
    if at <= now:
        raise typer.BadParameter(f"{text} is over already")
    return at


def earlier(text: str, now: float) -> float:
    """Return the unix seconds that *text* means as a moment before: ``7d``, ``12h``, or a date. Raises BadParameter."""
    span = _SPAN.fullmatch(text)
    if span is not None:
        return now - int(span[1]) * _SECONDS[span[2]]
    at = MOMENT.read(text, "", Report())
    if at is None:
        raise typer.BadParameter("allowed: 7d, 12h, 30m, or a date like 2026-01-31 or 2026-01-31T12:00:00Z")
    return at


def seconds(text: str) -> float:
    """Return the seconds that *text* means: ``12h``, ``30m``, ``90d``. Raises BadParameter."""
    span = _SPAN.fullmatch(text)
    if span is None:
        raise typer.BadParameter("allowed: 90d, 12h or 30m")
    return float(int(span[1]) * _SECONDS[span[2]])


def shown(at: float | None) -> str | None:
    """Return the moment *at* (unix seconds) as ISO 8601, None for none."""
    return None if at is None else datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
