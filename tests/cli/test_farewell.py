"""A client that does not read what was written last does not keep its connection."""

from __future__ import annotations

import asyncio

import pytest

from tests.cli.test_exchange import GET, HI, OK, Desk, Told, Transport, settled
from troyproxy.cli import farewell
from troyproxy.cli.farewell import leave

pytestmark = pytest.mark.anyio


class Unread(Transport):
    """Holds so many bytes, a step at a time; `aborted` when they are dropped."""

    def __init__(self, *left: int) -> None:
        super().__init__()
        self._left = list(left)
        self.aborted = False

    def get_write_buffer_size(self) -> int:
        return self._left.pop(0) if len(self._left) > 1 else self._left[0]

    def abort(self) -> None:
        self.aborted = True


@pytest.mark.parametrize(("left", "aborted"), [((5, 5), True), ((5, 3, 3), True), ((5, 3, 0), False), ((0,), False)])
async def test_only_a_client_that_takes_nothing_more_is_dropped(
    left: tuple[int, ...], *, aborted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(farewell, "UNREAD_S", 0.0)
    transport = Unread(*left)
    leave(transport, asyncio.get_running_loop())
    await settled()
    assert (transport.closed, transport.aborted) == (True, aborted)


async def test_nothing_is_said_into_an_answer_that_has_begun() -> None:
    async def act(told: Told) -> None:
        await told.send(OK)
        await told.send({**HI, "more_body": True})
        await told.receive()
        await told.receive()

    desk = Desk(act)
    before = len(await desk.gets(GET))
    await desk.gets(b"\0no request\r\n\r\n")
    assert (len(desk.transport.writes), desk.transport.closed) == (before, True)
    desk.connection.connection_lost(None)
    await settled()
