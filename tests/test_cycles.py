"""What a request leaves behind is freed when it ends: the collector looks seldom, and what waits for it heaps up."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from tests.bench.inprocess import SHAPES, STREAMS, Caller, gateway_here
from tests.cli.test_exchange import GET, HI, OK, Desk, sending
from tests.leaks.scanning import LAMP_ASKED
from troyproxy.leaks.scanner import Scanner
from troyproxy.middleware.guarding import Guarding
from troyproxy.proxy.call import Call
from troyproxy.proxy.client import Client
from troyproxy.proxy.ledger import Ledger

MADE = (Call, Ledger, Client, Guarding, Scanner)


@pytest.fixture
def no_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def alive() -> list[str]:
    return [type(each).__name__ for each in gc.get_objects() if isinstance(each, MADE)]


@pytest.mark.anyio
@pytest.mark.usefixtures("no_collector")
@pytest.mark.parametrize("shape", [*SHAPES, *STREAMS])
async def test_nothing_that_is_made_for_a_request_waits_for_the_collector(shape: str) -> None:
    async with gateway_here() as (app, key):
        before = alive()
        await Caller(app, key, {**SHAPES, **STREAMS}[shape])(3)
        assert alive() == before


@pytest.mark.anyio
@pytest.mark.usefixtures("no_collector")
async def test_a_connection_that_is_lost_is_freed() -> None:
    desk = Desk(sending(OK, HI))
    await desk.gets(GET)
    connection = weakref.ref(desk.connection)
    desk.connection.connection_lost(None)
    del desk.connection
    assert connection() is None


@pytest.mark.usefixtures("no_collector")
def test_a_scanner_that_read_a_call_is_freed() -> None:
    scanner = Scanner(LAMP_ASKED)
    scanner.feed('<tool_call>{"name": "set_lamp", "arguments": {')
    scanner.finish()
    freed = weakref.ref(scanner)
    del scanner
    assert freed() is None
