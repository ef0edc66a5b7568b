"""``troyproxy explain``: the planner's decision for a request. Nothing is sent anywhere."""

from __future__ import annotations

import json
import secrets
from pathlib import Path
from typing import Any, Final

import typer

from troyproxy.auto.weights import FACTORS
from troyproxy.cli.commands import CONFIG, JSON
from troyproxy.cli.input import read_input
from troyproxy.cli.output import on_terminal, print_json, print_table
from troyproxy.cli.session import Session, run_with
from troyproxy.errors import ConfigError
from troyproxy.ports import Headers
from troyproxy.proxy.explain import draft_call, explain
from troyproxy.proxy.intake import decode_object

HELLO: Final = {"messages": [{"role": "user", "content": "Hello!"}]}


def explain_command(
    model: str = typer.Argument(..., metavar="MODEL", help="The model, as a client would name it."),
    body: Path | None = typer.Option(None, "--body", help="A chat request as JSON ('-': standard input)."),
    header: list[str] | None = typer.Option(
        None,
        "--header",
        "-H",
        metavar="'NAME: VALUE'",
        help="A header of the request, as x-troy-mode; may be repeated.",
    ),
    key: str | None = typer.Option(None, "--key", help="A client key by id or name: what it would get."),
    config: Path | None = CONFIG,
    as_json: bool = JSON,
) -> None:
    """Say where a request would go, and why: how the name resolves, each member's verdict, the order.

    A table on a terminal, JSON elsewhere. No upstream is called.

    \b
    Example:
      troyproxy explain auto --body request.json -H 'x-troy-mode: cheap'
    """
    request = HELLO if body is None else decode_object(read_input(body))
    asked = json.dumps({**request, "model": model}).encode()
    headers = tuple(map(_header, header or ()))
    found = run_with(config, lambda opened: _explain(opened, asked, headers, key))
    if as_json or not on_terminal():
        print_json(found)
    else:
        _show(found)


def _header(given: str) -> tuple[bytes, bytes]:
    name, colon, value = given.partition(":")
    if not (colon and name.strip() and given.isascii() and given.isprintable()):
        raise ConfigError(f"--header {given!r} is no header, as in 'x-troy-mode: cheap'")
    return name.strip().lower().encode(), value.strip().encode()


async def _explain(found: Session, body: bytes, headers: Headers, key: str | None) -> dict[str, Any]:
    services = found.services
    call = draft_call(
        body,
        found.snapshot,
        at=services.clock.now(),
        seed=secrets.randbits(64),
        headers=headers,
        key=None if key is None else await found.keys.find(key),
    )
    return explain(services.planner, call, services.learned)


def _show(found: dict[str, Any]) -> None:
    name, needs = found["model"], found["needs"]
    wants = [need for need in ("tools", "vision", "json", "audio") if needs[need]]
    facts = [
        ("model", f"{name['asked']} is {name['canonical']}: {name['how']}"),
        ("strategy", found["strategy"]),
        ("effort", found["effort"]["level"]),
        ("needs", ", ".join([*wants, f"about {needs['est_tokens']} tokens"])),
        ("order", " → ".join(found["order"])),
        ("refused", found["refused"] and found["refused"]["error"]["message"]),
    ]
    print_table(("what", "decision"), [fact for fact in facts if fact[1]])
    columns = ("place", "member", "account", "verdict", "reason", "context_length", "adapted")
    rows = [{**member, "adapted": ", ".join(member["adapted"])} for member in found["members"]]
    print_table([column.replace("_", " ") for column in columns], ([row[column] for column in columns] for row in rows))
    for decision in found.get("auto") or ():
        _show_auto(decision)


def _show_auto(decision: dict[str, Any]) -> None:
    """Print what the auto engine decided for one combo, and its factors: the score is their sum by weight."""
    marks = [mark for mark in ("incident", "known", "explored", "readmitted") if decision.get(mark)]
    facts = [
        ("scored", decision["combo"]),
        ("task", f"{decision['task']}, specificity {decision['specificity']:g}"),
        ("marks", ", ".join(marks)),
        ("last good", decision.get("last_known_good")),
        ("probe", decision.get("probe")),
    ]
    print_table(("what", "decision"), [fact for fact in facts if fact[1]])
    weights = ["weight", None, *(f"{decision['weights'][name]:.3f}" for name in FACTORS), None]
    rows = [_scored(candidate) for candidate in decision["candidates"]]
    print_table(("member", "score", *FACTORS, "out"), [weights, *rows], as_written=True)


def _scored(candidate: dict[str, Any]) -> list[object]:
    factors, score = candidate["factors"] or {}, candidate["score"]
    cells = [f"{factors[name]:.3f}" if name in factors else None for name in FACTORS]
    why = candidate["out"] or (candidate.get("exclusion") or {}).get("state")
    return [candidate["candidate"], None if score is None else f"{score:.4f}", *cells, None if why == "in" else why]
