"""What the edge puts into a call, and into the head of its answer."""

from __future__ import annotations

import pytest

from tests.api.test_edge import Watching, edge, fine
from tests.asgi import drive, http_scope
from tests.fakes import FakeClock
from tests.peers import FakePeer
from troyproxy.proxy.answers import Receive, Send, send_json
from troyproxy.proxy.call import Call, Scope, call_of
from troyproxy.proxy.stage import Stage

pytestmark = pytest.mark.anyio


@pytest.fixture
def watching() -> Watching:
    return Watching()


async def test_a_call_knows_who_waits_for_its_answer(watching: Watching, clock: FakeClock) -> None:
    calls: list[Call | None] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        calls.append(call_of(scope))
        await fine(scope, receive, send)

    peer = FakePeer()
    scope = peer.at(http_scope(headers=[(b"x-a", b"b")]))
    await drive(edge(app, watching, clock), scope)
    await drive(edge(app, watching, clock), http_scope())
    assert [call and (call.peer, call.header(b"x-a")) for call in calls] == [(peer, "b"), (None, None)]


async def test_a_layer_of_ours_asks_the_call_for_its_head(watching: Watching, clock: FakeClock) -> None:
    class Ours(Stage):
        async def __call__(self, *asked: object) -> None:
            raise AssertionError(f"asked as an app: {asked}")

        async def serve(self, call: Call, scope: Scope, receive: Receive, send: Send) -> None:
            del scope, receive
            await send({"type": "http.response.start", "status": 200, "headers": call.head(200, ((b"x-a", b"b"),))})
            await send({"type": "http.response.body"})

    answer = await drive(edge(Ours(), watching, clock), http_scope())
    told = (answer.header("x-a"), answer.header("x-troy-attempts"), answer.header("x-troy-request-id"))
    assert told == ("b", "0", watching.rows[0].request_id)


async def test_a_story_that_is_told_is_not_told_again(watching: Watching, clock: FakeClock) -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send_json(send, 200, {}, {"x-troy-attempts": "7"})

    answer = await drive(edge(app, watching, clock), http_scope())
    assert (answer.header("x-troy-attempts"), answer.header("x-troy-request-id")) == ("7", None)
