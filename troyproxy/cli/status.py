"""``troyproxy status``: circuits, cooldowns and requests in flight of the running gateway."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from troyproxy.cli.asking import URL, asking
from troyproxy.cli.commands import CONFIG, JSON
from troyproxy.cli.moments import shown
from troyproxy.cli.output import on_terminal, print_json, print_table

CLOSED: Final = "closed"
NOTHING: Final = (("nothing is barred",),)


def status_command(url: str | None = URL, config: Path | None = CONFIG, as_json: bool = JSON) -> None:
    """Show what the running gateway knows now: open circuits, cooldowns, requests in flight, queues.

    A table on a terminal, JSON elsewhere. Of several workers it is the one that answers, which is named.

    \b
    Example:
      troyproxy status
    """
    found = asking(config, url).get("/api/status")
    if as_json or not on_terminal():
        print_json(found)
    else:
        show(found)


def show(found: dict[str, Any]) -> None:
    """Print the page as tables."""
    print_table(("what", "state"), facts(found))
    barred = [*_circuits(found["circuits"]), *_cooldowns(found["cooldowns"])]
    print_table(("barred", "account", "model", "why", "until"), barred or NOTHING)
    print_table(("provider", "account", "in flight"), [_account(each) for each in found["accounts"]])


def facts(found: dict[str, Any]) -> list[tuple[str, object]]:
    """Return what holds for the process as a whole, as rows."""
    worker, config, shared = found["worker"], found["config"], found["shared_state"]
    queues = ", ".join(f"{name} {waiting}" for name, waiting in found["queues"].items())
    rows: list[tuple[str, object]] = [
        ("worker", f"{worker['name']} (process {worker['pid']})"),
        ("configuration", f"revision {config['revision']}, loaded {shown(config['loaded_at'])}"),
        ("refused reload", config["error"]),
        ("shared state", None if shared is None else "up" if shared["up"] else "down"),
        ("waiting to be written", queues),
        *(("warning", warning) for warning in config["warnings"]),
    ]
    return [row for row in rows if row[1] is not None]


def _circuits(circuits: Sequence[dict[str, Any]]) -> Iterator[tuple[object, ...]]:
    for each in circuits:
        if each["state"] != CLOSED:
            yield each["provider"], "*", each["model"], f"circuit {each['state']}", shown(each["until"])


def _cooldowns(cooldowns: Sequence[dict[str, Any]]) -> Iterator[tuple[object, ...]]:
    for each in cooldowns:
        why = f"{each['class']}{' (soft)' if each['soft'] else ''}"
        yield each["provider"], each["account"], each["model"], why, shown(each["until"])


def _account(each: dict[str, Any]) -> tuple[object, ...]:
    return each["provider"], each["account"], each["inflight"]
