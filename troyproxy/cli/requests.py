"""``troyproxy requests``: what was recorded of requests."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

import typer

from troyproxy.cli.commands import CONFIG, group
from troyproxy.cli.moments import earlier
from troyproxy.cli.output import warn
from troyproxy.cli.session import Session, run_with
from troyproxy.cli.tail import show, tail
from troyproxy.cli.whole_file import whole_file
from troyproxy.proxy.replay.export import Export, Exported

app = group("Requests: what was recorded of them.")
app.command("tail")(tail)
app.command("show")(show)
STDOUT: Final = Path("-")


@app.callback()
def _group() -> None:
    """Requests: what was recorded of them."""


@app.command()
def export(
    since: str = typer.Option("7d", "--since", help="From when on: 7d, 12h, 30m, or a date."),
    out: Path = typer.Option(STDOUT, "--out", "-o", help="The file to write ('-': standard output)."),
    config: Path | None = CONFIG,
) -> None:
    """Write a trace for `troyproxy simulate`: JSON lines, one per request, oldest first.

    It holds needs, attempts and outcomes; no prompt, no answer, no key. A file is written whole or not at all.

    \b
    Example:
      troyproxy requests export --since 7d --out week.jsonl
    """
    done = run_with(config, lambda found: _export(found, since, out))
    left = f"; left out: {done.left_out} that were refused before routing, or trials" if done.left_out else ""
    warn(f"exported {done.requests} requests{left}")


async def _export(found: Session, since: str, out: Path) -> Exported:
    services = found.services
    now = services.clock.now()
    keys = [*services.snapshots.current.keys.values(), *await services.store.keys.list()]
    export = Export(services.store.requests, {key.id: key for key in keys}, earlier(since, now), now)
    with _file(out) as file:
        async for line in export.lines():
            file.write(line)
    return export.done


@contextmanager
def _file(out: Path) -> Iterator[IO[bytes]]:
    if out != STDOUT:
        with whole_file(out) as file:
            yield file
        return
    yield sys.stdout.buffer
    sys.stdout.buffer.flush()
