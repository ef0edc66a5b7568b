"""The soak: many mixed clients against upstreams that fail, and then the books are compared.

    python -m tests.soak [--seconds N] [--clients N] [--seed N]

Three processes on the loopback: `troyproxy serve`, one upstream that plays every provider (`upstream.py`), and this one
with the clients (`client.py`). Meanwhile an operator lifts all locks once a second, since the scripted refusals would
otherwise lock every account for minutes. It prints a table, and ends with status 1 when a claim (`claims.py`) fails.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import random
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import uvloop

from tests.e2e.gateway import ROOT, Gateway, run_gateway
from tests.e2e.until import until
from tests.soak.claims import Claim, Story, claims, flat, strength
from tests.soak.client import Line, Outcome
from tests.soak.plan import ACCOUNTS, COMBOS, DEAD, PROVIDERS, ask
from tests.soak.upstream import Seen
from tests.soak.watch import EVERY_S, Watch, sockets

CLIENTS: Final = 200
SECONDS: Final = 180.0
"""With the longest start, answer and drain it stays below five minutes."""
DRAIN_S: Final = 30.0
WARM_SHARE: Final = 1 / 3
STRONG_S: Final = 20.0
"""A shorter run need not meet every failure."""
SETTINGS: Final = {
    "TROY_STREAM_IDLE_MS": "2500",
    "TROY_FIRST_OUTPUT_MS": "2500",
    "TROY_UPSTREAM_TIMEOUT_MS": "4000",
    "TROY_RETRY_BUDGET": "0.5",
    "TROY_MAX_INFLIGHT": "20",
}


@contextmanager
def run_upstream(seed: int) -> Iterator[int]:
    """Run the upstream, and yield its port."""
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    command = (sys.executable, "-m", "tests.soak.upstream", str(seed))
    env = {**os.environ, "PYTHONPATH": path}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT, env=env) as process:
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline())
        finally:
            process.kill()


@contextmanager
def dead_port() -> Iterator[int]:
    """Yield a port where nobody listens: it is bound, so that nobody else will."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]


def config(port: int, dead: int) -> dict[str, object]:
    """Return the gateway's configuration."""
    accounts = [{"name": name, "api_key": f"sk-soak-{name}-0123456789"} for name in ACCOUNTS]
    base = "http://127.0.0.1:{}/{}/v1"
    providers = {name: {"base_url": base.format(port, name), "accounts": accounts} for name in PROVIDERS}
    providers[DEAD] = {"base_url": base.format(dead, DEAD), "accounts": accounts[:1]}
    return {"providers": providers, "combos": COMBOS}


class Load:
    """The clients and the operator."""

    def __init__(self, gateway: Gateway, seed: int, seconds: float) -> None:
        self._gateway, self._seed = gateway, seed
        self._until = time.monotonic() + seconds
        self._numbers = itertools.count()
        self.outcomes: list[Outcome] = []
        self.watch = Watch(gateway.pid)

    async def run(self, clients: int) -> None:
        """Run *clients* until the time is over and all are answered."""
        async with asyncio.TaskGroup() as tasks:
            beside = [tasks.create_task(self.watch.run()), tasks.create_task(self._operate())]
            async with asyncio.TaskGroup() as load:
                for number in range(clients):
                    load.create_task(self._client(number / clients))
            for task in beside:
                task.cancel()

    async def _client(self, after_s: float) -> None:
        await asyncio.sleep(after_s)
        line = Line(self._gateway.port)
        while time.monotonic() < self._until:
            asked = ask(self._seed, next(self._numbers))
            self.outcomes.append(await line.ask(asked))
            await asyncio.sleep(asked.pause_s)
        line.close()

    async def _operate(self) -> None:
        while True:
            await asyncio.to_thread(self._gateway.admin, "POST", "/api/cooldowns/clear", {})
            await asyncio.sleep(1.0)


def report(port: int) -> tuple[int, list[Seen]]:
    """Return how many connections the upstream has open, and what it has seen."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/report", timeout=DRAIN_S) as answer:
        told = json.loads(answer.read())
    return told["open"], [Seen(**{**it, "reported": it["reported"] and tuple(it["reported"])}) for it in told["seen"]]


def drained(gateway: Gateway, port: int, before: int) -> list[Claim]:
    """Wait until nothing is held any more, and claim that it came to that."""
    waits = {
        "places of accounts are back to 0": lambda: sum(it["inflight"] for it in gateway.status()["accounts"]),
        "requests in flight are back to 0": lambda: int(gateway.metric("inflight_requests")),
        "upstream connections are back to 0": lambda: report(port)[0],
        "the gateway's sockets are as before": lambda: sockets(gateway.pid) - before,
        "rows waiting for the database are back to 0": lambda: int(gateway.metric("queue_depth")),
    }
    deadline = time.monotonic() + DRAIN_S
    return [_back_to_nothing(name, left, deadline) for name, left in waits.items()]


def _back_to_nothing(name: str, left: Callable[[], int], deadline: float) -> Claim:
    try:
        until(lambda: left() <= 0, within_s=max(0.0, deadline - time.monotonic()))
    except AssertionError:
        return Claim(name, str(left()), [f"{left()} left after {DRAIN_S:g} s"])
    return Claim(name, "0")


def rows(gateway: Gateway) -> list[dict[str, Any]]:
    """Return every usage row."""
    return [
        {**row, "attempts": json.loads(row["attempts"]), "wasted": json.loads(row["wasted"] or "null")}
        for row in gateway.rows()
    ]


def healthy(gateway: Gateway) -> Claim:
    """Claim that the gateway is up and has logged no error."""
    with (gateway.folder / "gateway.log").open(encoding="utf-8") as log:
        errors = [line[:300] for line in log if not line.startswith("{") or json.loads(line)["level"] == "error"]
    return Claim("the gateway logged no error", f"{len(errors)}", errors)


def soak(folder: Path, seed: int, seconds: float, clients: int) -> tuple[list[Claim], Load]:
    """Run the whole of it."""
    with (
        run_upstream(seed) as port,
        dead_port() as dead,
        run_gateway(folder, config(port, dead), **SETTINGS) as gateway,
    ):
        before = sockets(gateway.pid)
        load = Load(gateway, seed, seconds)
        uvloop.run(load.run(clients))
        held = drained(gateway, port, before)
        story = Story(load.outcomes, report(port)[1], rows(gateway))
        warm = int(seconds * WARM_SHARE / EVERY_S)
        found = [*claims(story), *held, flat(load.watch.rss_mb, warm), healthy(gateway)]
    return [*found, *(strength(story) if seconds >= STRONG_S else [])], load


def table(found: list[Claim]) -> str:
    """Return the claims for a terminal."""
    wide = max(len(claim.name) for claim in found)
    lines: list[str] = []
    for claim in found:
        lines.append(f"{'ok  ' if claim.holds else 'FAIL'} {claim.name:{wide}}  {claim.figure}")
        lines += [f"       against it: {line}" for line in claim.against[:3]]
        lines += [f"       and {len(claim.against) - 3} more"] if len(claim.against) > 3 else []
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of load; up to a minute more to end")
    parser.add_argument("--clients", type=int, default=CLIENTS)
    parser.add_argument("--seed", type=int, default=None)
    options = parser.parse_args()
    seed = random.SystemRandom().randrange(1 << 31) if options.seed is None else options.seed
    sys.stdout.write(f"{options.clients} clients for {options.seconds:g} s, seed {seed}\n")
    sys.stdout.flush()
    with tempfile.TemporaryDirectory(prefix="troy-soak-") as folder:
        found, load = soak(Path(folder), seed, options.seconds, options.clients)
    rate = len(load.outcomes) / options.seconds
    sys.stdout.write(f"{table(found)}\n{rate:.0f} requests a second, {max(load.watch.sockets)} sockets at most\n")
    return 0 if all(claim.holds for claim in found) else 1


if __name__ == "__main__":
    sys.exit(main())
