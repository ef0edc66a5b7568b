"""``troyproxy requests tail`` and ``show``: requests as they end, and the story of one."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import typer

from troyproxy.api.admin.requests import story
from troyproxy.cli.asking import URL, Told, asking
from troyproxy.cli.commands import CONFIG, JSON
from troyproxy.cli.moments import shown
from troyproxy.cli.output import on_terminal, print_json, print_table, warn
from troyproxy.cli.session import Session, run_with
from troyproxy.errors import NotFound
from troyproxy.telemetry.clean import one_line

STATES: Final = ("request", "failover", "circuit", "cooldown", "cleared", "config")
"""What is shown without being asked for more."""
ID: Final = typer.Argument(..., metavar="ID", help="What an answer had as x-troy-request-id.")


def tail(
    everything: bool = typer.Option(False, "--all", help="Attempts, skips and plans, too."),
    count: int | None = typer.Option(None, "--count", "-n", min=1, help="End after so many events."),
    url: str | None = URL,
    config: Path | None = CONFIG,
    as_json: bool = JSON,
) -> None:
    """Show requests of the running gateway as they end, with failovers, circuits and cooldowns as they come.

    One line each; JSON lines where nobody looks. Of several workers it is the one that answers, which is named. It ends
    with the gateway, or at Ctrl-C.

    \b
    Example:
      troyproxy requests tail
    """
    wanted = "" if everything else f"?kinds={','.join(STATES)}"
    line = _as_json if as_json or not on_terminal() else _as_text
    try:
        for told in _counted(asking(config, url).events(f"/api/events{wanted}"), count):
            _print(told, line)
    except KeyboardInterrupt:
        raise typer.Exit(0) from None


def _counted(events: Iterator[Told], count: int | None) -> Iterator[Told]:
    """Yield *events* until *count* of them were shown; those about the stream itself do not count."""
    shown = 0
    for told in events:
        yield told
        shown += told.kind not in ABOUT
        if count is not None and shown >= count:
            return


def _hello(facts: Mapping[str, Any]) -> str:
    return f"watching worker {facts['worker']['name']} (process {facts['worker']['pid']})"


def _lost(facts: Mapping[str, Any]) -> str:
    return f"{facts['events']} events are lost: this reader is too slow"


def _end(facts: Mapping[str, Any]) -> str:
    return f"the stream ends: {facts['reason']}"


ABOUT: Final[Mapping[str, Callable[[Mapping[str, Any]], str]]] = {"hello": _hello, "lost": _lost, "end": _end}
"""Events about the stream itself, and how they are said on standard error."""


def _print(told: Told, line: Callable[[Told], str]) -> None:
    if told.kind in ABOUT:
        warn(ABOUT[told.kind](told.facts))
    else:
        typer.echo(line(told))


def _as_json(told: Told) -> str:
    return json.dumps({"event": told.kind, **told.facts})


def _as_text(told: Told) -> str:
    at = _clock(float(told.facts.get("at", 0.0)))
    say = REQUEST if told.kind == "request" else tuple(name for name in told.facts if name != "at")
    said = " ".join(f"{name}={_word(name, told.facts[name])}" for name in say if told.facts.get(name) is not None)
    return one_line(f"{at} {told.kind:9} {said}")


def _clock(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%H:%M:%S")


def _word(name: str, fact: object) -> object:
    """Return *fact* as a person reads it: a time of the clock, yes or no, otherwise as it is."""
    if isinstance(fact, bool):
        return "yes" if fact else "no"
    return _clock(fact) if name == "until" and isinstance(fact, int | float) else fact


REQUEST: Final = (
    "request_id",
    "status",
    "outcome",
    "requested_model",
    "combo",
    "provider",
    "model",
    "trail",
    "skipped",
    "duration_ms",
    "first_token_ms",
    "input_tokens",
    "output_tokens",
    "cost_usd",
)
"""What a line says of a request, in this order."""


def show(request_id: str = ID, config: Path | None = CONFIG, as_json: bool = JSON) -> None:
    """Show the story of one request, from the database: how it was routed, each attempt, what it used.

    A table on a terminal, JSON elsewhere.

    \b
    Example:
      troyproxy requests show req_5f0c2a9d1b7e4c3a8d6f
    """
    found = run_with(config, lambda opened: _find(opened, request_id))
    if as_json or not on_terminal():
        print_json(found)
    else:
        _show(found)


async def _find(found: Session, request_id: str) -> dict[str, object]:
    row = await found.services.store.requests.find(request_id)
    if row is None:
        raise NotFound(f"the database has no request {request_id[:100]!r}")
    return story(row)


def _show(found: dict[str, Any]) -> None:
    apart = ("attempts", "skipped", "needs", "seed")
    print_table(
        ("what", "value"),
        [(name, _cell(name, value)) for name, value in found.items() if name not in apart and value not in (None, "")],
    )
    columns = ("provider", "model", "account", "outcome", "status", "duration_ms", "reason")
    print_table(
        [name.replace("_", " ") for name in columns],
        ([_cell(name, each[name]) for name in columns] for each in found["attempts"]),
    )
    if found["skipped"]:
        print_table(("skipped", "reason"), ((each["member"], each["reason"]) for each in found["skipped"]))


def _cell(name: str, value: object) -> object:
    """Return *value* as a person reads it: a date, a tenth of a millisecond, the parts of a sum."""
    if name == "at" and isinstance(value, float):
        return shown(value)
    if isinstance(value, Mapping):
        return ", ".join(f"{part} {_word(part, number)}" for part, number in value.items())
    return f"{value:.1f}" if name.endswith("_ms") and isinstance(value, float) else _word(name, value)
