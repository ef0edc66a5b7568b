"""``troyproxy explain``: the planner's decision for a request. Nothing is sent anywhere."""

from __future__ import annotations

import json
import secrets
import sys
from pathlib import Path
from typing import Any, Final

import typer

from troyproxy.auto.weights import FACTORS
from troyproxy.cli.commands import CONFIG, JSON
from troyproxy.cli.output import on_terminal, print_json, print_table
from troyproxy.cli.session import Session, run_with
from troyproxy.errors import ConfigError
from troyproxy.proxy.explain import draft_call, explain
from troyproxy.proxy.intake import decode_object

HELLO: Final = {"messages": [{"role": "user", "content": "Hello!"}]}


def explain_command(
    model: str = typer.Argument(..., metavar="MODEL", help="The model, as a client would name it."),
    body: Path | None = typer.Option(None, "--body", help="A chat request as JSON ('-': standard input)."),
    config: Path | None = CONFIG,
    as_json: bool = JSON,
) -> None:
    """Say where a request would go, and why: how the name resolves, each member's verdict, the order.

    A table on a terminal, JSON elsewhere. No upstream is called.

    \b
    Example:
      troyproxy explain daily --body request.json
    """
    request = HELLO if body is None else decode_object(_read(body))
    asked = json.dumps({**request, "model": model}).encode()
    found = run_with(config, lambda opened: _explain(opened, asked))
    if as_json or not on_terminal():
        print_json(found)
    else:
        _show(found)


def _read(path: Path) -> bytes:
    try:
        return sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror})") from None


async def _explain(found: Session, body: bytes) -> dict[str, Any]:
    services = found.services
    call = draft_call(body, found.snapshot, at=services.clock.now(), seed=secrets.randbits(64))
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
