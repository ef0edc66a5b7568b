"""A client whose answer goes no further is dropped: it does not read, or the answer broke off."""

from __future__ import annotations

import pytest

from tests.cli.test_exchange import FLOW, GET, HI, MORE, Desk, Told

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("uvicorn_heard")]


@pytest.mark.parametrize("complete", [True, False])
async def test_a_client_that_is_dropped_is_no_error(caplog: pytest.LogCaptureFixture, *, complete: bool) -> None:
    async def act(told: Told) -> None:
        await told.send(FLOW)
        await told.send(MORE)
        if complete:
            await told.send(HI)
        told.peer.drop()

    desk = Desk(act)
    await desk.gets(GET)
    assert (desk.transport.closed, caplog.text, desk.state.tasks) == (not complete, "", set())


@pytest.mark.parametrize("old", [True, False])
async def test_an_answer_that_ends_with_its_connection_does_not_look_whole(*, old: bool) -> None:
    async def act(told: Told) -> None:
        await told.send(FLOW)
        await told.send(MORE)
        told.peer.drop()

    desk = Desk(act)
    await desk.gets(GET.replace(b"1.1", b"1.0") if old else GET)
    assert (desk.transport.closed, desk.transport.aborted) == (True, old)
