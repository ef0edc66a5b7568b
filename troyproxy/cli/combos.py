"""``troyproxy combos``: chains of models under one name. The rules are those of the admin API: one book for both."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import typer

from troyproxy.catalog.combos import STRATEGY_NAMES, Combo
from troyproxy.cli.commands import CONFIG, JSON, group
from troyproxy.cli.input import read_input
from troyproxy.cli.output import print_json, print_table, warn
from troyproxy.cli.probe import ProbeFailed
from troyproxy.cli.session import Session, run_with
from troyproxy.proxy.combo_book import as_written, effective_weights
from troyproxy.proxy.intake import decode_object
from troyproxy.proxy.trials import Trial, as_told

app = group("Combos: chains of models under one name. A running gateway follows within a second.")
NAME = typer.Argument(..., metavar="NAME", help="The combo's name or id.")


@app.command("list")
def list_combos(config: Path | None = CONFIG, as_json: bool = JSON) -> None:
    """List the combos of the config file and the database.

    \b
    Example:
      troyproxy combos list
    """
    combos = run_with(config, lambda found: found.combos.entries())
    if as_json:
        print_json([as_written(combo) for combo in combos])
    else:
        print_table(("name", "id", "strategy", "members", "origin"), (_cells(combo) for combo in combos))


def _cells(combo: Combo) -> tuple[object, ...]:
    members = ", ".join(member.label for member in combo.members)
    return combo.name, combo.id, combo.strategy, members, combo.origin.value


@app.command()
def show(name: str = NAME, config: Path | None = CONFIG, as_json: bool = JSON) -> None:
    """Show one combo and its members.

    \b
    Example:
      troyproxy combos show daily
    """
    _print(run_with(config, lambda found: found.combos.find(name)), as_json=as_json)


def _print(combo: Combo, *, as_json: bool) -> None:
    if as_json:
        print_json(as_written(combo))
        return
    print_table(("name", "id", "strategy", "members", "origin"), [_cells(combo)])
    rows = ((i, m.label, m.account, f"{m.weight:g}") for i, m in enumerate(combo.members, 1))
    if combo.members:
        print_table(("place", "member", "account", "weight"), rows)
    if combo.config:
        print_table(("option", "value"), [(key, json.dumps(value)) for key, value in combo.config.items()])
    weights = effective_weights(combo)
    if weights is not None:
        print_table(
            ("factor", "weight"), [(name, f"{weight:.4f}") for name, weight in weights.items()], as_written=True
        )


@app.command()
def create(
    name: str = typer.Argument(..., metavar="NAME", help="The new combo's name."),
    members: list[str] = typer.Option(
        [], "--member", "-m", help="provider/model, or combo/NAME; repeat it, in order. Only auto may do without."
    ),
    strategy: str | None = typer.Option(
        None, "--strategy", "-s", help=f"One of {', '.join(STRATEGY_NAMES)}. Default: fallback."
    ),
    body: Path | None = typer.Option(
        None, "--body", help="The combo as JSON, as the API takes it ('-': standard input); options come first."
    ),
    config: Path | None = CONFIG,
    as_json: bool = JSON,
) -> None:
    """Make a combo.

    \b
    Example:
      troyproxy combos create daily --member groq/llama-3.3-70b-versatile --member openai/gpt-4o
      troyproxy combos create thrifty --strategy auto --body thrifty.json
    """
    written = {} if body is None else decode_object(read_input(body))
    said = {"name": name, "strategy": strategy, "members": members}
    raw = {**written, **{field: value for field, value in said.items() if value}}
    if members:
        raw.pop("models", None)  # their other name
    combo, warnings = run_with(config, lambda found: _create(found, raw))
    for warning in warnings:
        warn(warning)
    _print(combo, as_json=as_json)


async def _create(found: Session, raw: Mapping[str, object]) -> tuple[Combo, list[str]]:
    return await found.combos.create(raw)


@app.command()
def delete(name: str = NAME, config: Path | None = CONFIG, as_json: bool = JSON) -> None:
    """Remove a combo from the database.

    \b
    Example:
      troyproxy combos delete daily
    """
    combo = run_with(config, lambda found: found.combos.remove(name))
    if as_json:
        print_json({"id": combo.id, "deleted": True})
    else:
        typer.echo(f"the combo {combo.name} is gone")


@app.command("test")
def ask_combo(name: str = NAME, config: Path | None = CONFIG, as_json: bool = JSON) -> None:
    """Send one tiny chat request to each member of a combo and print what came of it. It may cost a few tokens.

    \b
    Example:
      troyproxy combos test daily
    """
    trials = run_with(config, lambda found: _test(found, name))
    ok = any(trial.ok for trial in trials)
    if as_json:
        print_json({"name": name, "ok": ok, "members": [as_told(trial) for trial in trials]})
    else:
        columns = ("member", "account", "result", "status", "ms", "answer")
        print_table(columns, (_outcome(trial) for trial in trials))
    if not ok:
        raise ProbeFailed(f"no member of {name} answered")


async def _test(found: Session, name: str) -> list[Trial]:
    return await found.services.trials.combo(await found.combos.find(name))


def _outcome(trial: Trial) -> tuple[object, ...]:
    result = f"skipped: {trial.skipped}" if trial.skipped is not None else "ok" if trial.ok else trial.error_class
    ms = None if trial.ms is None else f"{trial.ms:.0f}"
    return trial.member, trial.account, result or "failed", trial.status, ms, trial.message
