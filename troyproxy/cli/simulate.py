"""``troyproxy simulate``: recorded requests under other policies, side by side. Nothing is called or written."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, Final

import typer

from troyproxy.app.simulating import simulated
from troyproxy.cli.commands import JSON
from troyproxy.cli.output import on_terminal, print_json, print_table, warn
from troyproxy.cli.progress import progress
from troyproxy.errors import ConfigError
from troyproxy.proxy.replay.recording import Recording
from troyproxy.proxy.replay.simulation import Simulated, simulate
from troyproxy.proxy.replay.tally import Tally
from troyproxy.proxy.replay.trace import TracedRequest, TraceError, lines_of, read_trace
from troyproxy.settings.assemble import assemble
from troyproxy.settings.load import Configuration
from troyproxy.settings.policies import load_policy

RECORDED: Final = "recorded"
SHOWN: Final = 20
"""Members in the table; JSON has more."""


def simulate_command(
    trace: Path = typer.Argument(..., metavar="TRACE", help="What `requests export` wrote ('-': standard input)."),
    policy: list[Path] = typer.Option(..., "--policy", "-p", help="A config file; give several to compare them."),
    seed: int = typer.Option(0, "--seed", help="Draws outcomes that are not recorded; the same seed, the same draws."),
    as_json: bool = JSON,
) -> None:
    """Walk recorded requests again under other policies, and say what would have become of them.

    A table on a terminal, JSON elsewhere. No upstream is called; credentials may be missing.

    \b
    Example:
      troyproxy simulate week.jsonl --policy troyproxy.yaml --policy new.yaml
    """
    policies = [(str(path), _read(path)) for path in policy]
    with _opened(trace) as file:
        found = _compare(Trace(file, str(trace)), policies, seed)
    for told in found["policies"]:
        for name, count in list(told["unknown_models"].items())[:SHOWN]:
            warn(f"{told['policy']}: {count} requests asked for {name!r}, which it does not know")
    if as_json or not on_terminal():
        print_json(found)
    else:
        _show(found)


def _read(path: Path) -> Configuration:
    """Return the policy in a file. Raises ConfigError before a long trace is read, not after."""
    configuration = load_policy(path, os.environ)
    assemble(configuration, now=0.0)
    return configuration


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    """Open a trace for reading it several times; what comes by standard input is put aside."""
    if str(path) == "-":
        with TemporaryFile() as aside:
            shutil.copyfileobj(sys.stdin.buffer, aside)
            yield aside
        return
    try:
        file = path.open("rb")
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror})") from None
    with file:
        yield file


class Trace:
    """A file that is read from its beginning each time."""

    def __init__(self, file: IO[bytes], name: str) -> None:
        self._file, self.name = file, name

    def requests(self) -> Iterator[TracedRequest]:
        """Yield the requests. Raises TraceError, ConfigError."""
        try:
            self._file.seek(0)
            yield from read_trace(lines_of(self._file, self.name), self.name)
        except OSError as error:
            raise ConfigError(f"{self.name}: cannot be read ({error.strerror})") from None


def _compare(trace: Trace, policies: list[tuple[str, Configuration]], seed: int) -> dict[str, Any]:
    recording, recorded = Recording(), Tally()
    for request in trace.requests():
        recording.add(request)
        recorded.record(request)
    if not recording.requests:
        raise TraceError(f"{trace.name}: holds no request")
    with progress("simulating", recording.requests * len(policies)) as step:
        told = [_simulate(trace, recording, name, policy, partial(_note, step), seed) for name, policy in policies]
    span = {"requests": recording.requests, "since": recording.first_at, "until": recording.last_at}
    return {"trace": {"file": trace.name, **span}, "seed": seed, RECORDED: recorded.told(), "policies": told}


def _note(step: Callable[[], None], tally: Tally, result: Simulated) -> None:
    tally.simulate(result)
    step()


def _simulate(
    trace: Trace,
    recording: Recording,
    name: str,
    configuration: Configuration,
    note: Callable[[Tally, Simulated], None],
    seed: int,
) -> dict[str, Any]:
    tally = Tally()
    make = partial(simulated, name, configuration, now=recording.first_at)
    simulate(trace.requests(), recording, make, partial(note, tally), seed=seed)
    return {"policy": name, **tally.told(), **tally.evidence()}


# --- the table ---


def _show(found: dict[str, Any]) -> None:
    columns = [found[RECORDED], *found["policies"]]
    heads = [RECORDED, *(told["policy"] for told in found["policies"])]
    print_table(["", *heads], [[what, *map(cell, columns)] for what, cell in ROWS], as_written=True)
    members = _members(columns)
    if members:
        print_table(
            ["served by", *heads],
            [[name, *(_share(told, name) for told in columns)] for name in members],
            as_written=True,
        )


def _members(columns: list[dict[str, Any]]) -> list[str]:
    """Return the members to show: those that served most, in whichever column."""
    most: dict[str, int] = {}
    for told in columns:
        for name, count in told["members"].items():
            most[name] = max(most.get(name, 0), count)
    return sorted(most, key=lambda name: (-most[name], name))[:SHOWN]


def _share(told: dict[str, Any], name: str) -> str:
    count = told["members"].get(name, 0)
    served = sum(told["members"].values())
    return f"{count}  {count / served:.0%}" if count else "-"


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


def _cost(told: dict[str, Any]) -> str:
    unknown = f" ({told['unpriced']} unknown)" if told["unpriced"] else ""
    return f"{told['cost_usd']:.4f}{unknown}"


def _drawn(told: dict[str, Any]) -> str:
    sources = told.get("outcomes_from")
    if sources is None:
        return "-"
    return f"{sources['recorded']} recorded, {sum(sources.values()) - sources['recorded']} drawn"


def _outcomes(told: dict[str, Any]) -> str:
    return ", ".join(f"{count} {name}" for name, count in told["outcomes"].items())


ROWS: Final[tuple[tuple[str, Callable[[dict[str, Any]], str]], ...]] = (
    ("requests", lambda told: str(told["requests"])),
    ("success rate", lambda told: _number(told["success_rate"], ".2%")),
    ("ended", _outcomes),
    ("attempts per request", lambda told: _number(told["attempts_per_request"], ".3f")),
    ("cost in USD", _cost),
    ("latency p50, ms", lambda told: _number(told["latency_ms"]["p50"], ".0f")),
    ("latency p95, ms", lambda told: _number(told["latency_ms"]["p95"], ".0f")),
    ("outcomes of attempts", _drawn),
)
