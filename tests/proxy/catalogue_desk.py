"""A catalogue refresh with everything around it, and a scripted server on loopback to fetch from."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from tests.fake_store import FakeStore
from tests.fakes import FakeClock, FakeEventLog, FakeObserver
from tests.store.waiting import until
from tests.upstream.loopback import Answer, Connection, Log, Seen, handler_of, server
from troyproxy.errors import ConfigError
from troyproxy.proxy.catalogue_refresh import CatalogueRefresh
from troyproxy.proxy.catalogue_shelf import CatalogueShelf
from troyproxy.proxy.health import HealthKeeper
from troyproxy.proxy.orders import Orders
from troyproxy.proxy.policy import health_policy
from troyproxy.proxy.snapshots import SnapshotKeeper
from troyproxy.proxy.sources import SnapshotSource
from troyproxy.settings.catalogue_file import NAME, CatalogueFile
from troyproxy.settings.load import Configuration, load
from troyproxy.settings.values import Settings
from troyproxy.upstream.http import HttpxUpstream

ENV = {"OPENAI_API_KEY": "sk-of-the-tests"}
NOTHING = ((b"content-length", b"0"),)
JSON = ((b"content-type", b"application/json"),)


def catalogue(context: int = 4321, name: str = "gpt-brand-new") -> bytes:
    models = {name: {"tool_call": True, "limit": {"context": context}, "cost": {"input": 1, "output": 2}}}
    return json.dumps({"openai": {"models": models}}).encode()


def good(raw: bytes = catalogue(), *headers: tuple[bytes, bytes]) -> Answer:
    return Answer(headers=(*JSON, *headers), steps=(raw,))


@dataclass
class Desk:
    """Everything around one refresh."""

    refresh: CatalogueRefresh
    shelf: CatalogueShelf
    snapshots: SnapshotKeeper
    orders: Orders
    store: FakeStore
    clock: FakeClock
    log: Log
    answers: list[Answer]
    file: Path
    broken: list[ConfigError] = field(default_factory=list)

    def context(self, name: str = "gpt-brand-new") -> int | None:
        return self.snapshots.current.providers["openai"].model(name).limits.context


@asynccontextmanager
async def desk(folder: Path, *answers: Answer, clock: FakeClock | None = None) -> AsyncIterator[Desk]:
    """A refresh whose server gives *answers* in turn, the last one for ever."""
    left = list(answers)

    async def serve(conn: Connection) -> None:
        while True:
            first = await conn.request()
            answer = left.pop(0) if len(left) > 1 else left[0]
            with suppress(AnsweredError):
                await handler_of(answer)(Replayed(conn, first))
                return

    async with server(serve) as (port, log):
        upstream = HttpxUpstream(env={})
        made = made_for(folder, f"http://127.0.0.1:{port}/api.json?a=b", upstream, log, left, clock or FakeClock())
        await made.snapshots.reload(0)
        try:
            yield made
        finally:
            await upstream.aclose()


class AnsweredError(Exception):
    """The one request of a `Replayed` has its answer."""


class Replayed(Connection):
    """A connection whose next request has been read; it serves that one."""

    def __init__(self, conn: Connection, first: Seen) -> None:
        super().__init__(conn.reader, conn.writer, conn.log)
        self._first = [first]

    async def request(self) -> Seen:
        if not self._first:
            raise AnsweredError
        return self._first.pop()


def made_for(
    folder: Path, url: str, upstream: HttpxUpstream, log: Log, answers: list[Answer], clock: FakeClock
) -> Desk:
    store, first, broken = FakeStore(), load(ENV, folder=folder), list[ConfigError]()

    def again() -> Configuration:
        if broken:
            raise broken[0]
        return first

    health = HealthKeeper(
        clock=clock, log=FakeEventLog(), observer=FakeObserver(), policy=health_policy(Settings()), rng=Random(7)
    )
    orders = Orders(store.control, health, clock)
    shelf = CatalogueShelf(CatalogueFile(folder, url), first.builtins, clock)
    source = SnapshotSource(first, again, store=store, clock=clock, fetched=shelf.models)
    snapshots = SnapshotKeeper(source.build, control=store.control, clock=clock, on_change=(), orders=orders)
    refresh = CatalogueRefresh(
        url,
        shelf,
        upstream=upstream,
        snapshots=snapshots,
        orders=orders,
        clock=clock,
        rng=Random(len(answers)),
        deadline_s=5.0,
    )
    return Desk(refresh, shelf, snapshots, orders, store, clock, log, answers, folder / NAME, broken)


def url_of(d: Desk) -> str:
    request = d.refresh._request
    return request.provider.base_url + request.path


@asynccontextmanager
async def following(d: Desk) -> AsyncIterator[None]:
    """Its background work runs, and the fetch at its start is over."""
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(d.refresh.follow())
        await until(lambda: len(d.log.requests) == 1 and not d.refresh._turn.locked())
        yield
        task.cancel()
