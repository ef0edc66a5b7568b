"""Requests are the same however the network cuts them, also where a body of known length passes by the parser."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cli.test_exchange import Act, Desk, Told, sending, settled
from tests.cli.test_protocol import App, comes, rest, serving
from troyproxy.cli import reading
from troyproxy.proxy.answers import Receive, Send
from troyproxy.proxy.call import Scope

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("uvicorn_heard")]

LIMIT = 1 << 22
NO_CONTENT = ({"type": "http.response.start", "status": 204, "headers": []}, {"type": "http.response.body"})
BODY = b"GET /smuggled HTTP/1.1\r\nhost: h\r\n\r\n"
OFFER = b"connection: Upgrade\r\nupgrade: h2c\r\n"
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
"""Only who waits for a body lets its client hear that."""
CLOSE = b"connection: close\r\n"

Seen = list[tuple[str, bytes | None]]


def post(path: bytes, body: bytes, more: bytes = b"", version: bytes = b"1.1") -> bytes:
    head = b"POST %b HTTP/%b\r\nhost: h\r\n%bContent-Length: %d \r\n\r\n" % (path, version, more, len(body))
    return head + body


def chunked(path: bytes, body: bytes) -> bytes:
    head = b"POST %b HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n" % path
    return head + b"%x;a=b\r\n%b\r\n0\r\nx: y\r\n\r\n" % (len(body), body)


async def gathered(told: Told) -> bytes | None:
    return await told.peer.gather(LIMIT, stall_s=60.0, total_s=600.0)


async def received(told: Told) -> bytes:
    body, more = b"", True
    while more:
        message = await told.receive()
        body, more = body + message["body"], message["more_body"]
    return body


def reader(seen: Seen, read: Callable[[Told], Awaitable[bytes | None]]) -> Act:
    async def act(told: Told) -> None:
        seen.append((told.scope["path"], await read(told)))
        await sending(*NO_CONTENT)(told)

    return act


async def outcome(read: Callable[[Told], Awaitable[bytes | None]], *data: bytes) -> tuple[Seen, bytes, bool]:
    """Return the requests that an app sees of *data*, what is written and whether the connection ends."""
    seen: Seen = []
    desk = Desk(reader(seen, read))
    for piece in data:
        await desk.gets(piece)
    for _ in range(4):
        await settled()
    return seen, b"".join(desk.transport.writes), desk.transport.closed


REQUESTS = {
    "two": post(b"/a", BODY) + post(b"/b", b"x" * 90),
    "an offer": post(b"/a", BODY, OFFER) + post(b"/b", b"12345"),
    "to be told": post(b"/a", BODY, b"expect: 100-continue\r\n") + post(b"/b", b"12345"),
    "in chunks": chunked(b"/a", BODY) + post(b"/b", BODY) + chunked(b"/c", b"1"),
    "the last": post(b"/a", BODY, CLOSE) + post(b"/b", b"12345"),
    "an old one": post(b"/a", BODY, version=b"1.0") + post(b"/b", b"12345"),
    "lines between": post(b"/a", BODY) + b"\r\n\r\n" + post(b"/b", b"12345"),
    "nonsense behind": post(b"/a", BODY) + b"\0\r\n\r\n",
}


REFUSED = "nonsense behind"
"""Whether that is said, or the connection just ends, depends on what had been answered by then."""


@pytest.mark.parametrize("read", [gathered, received])
@pytest.mark.parametrize("name", REQUESTS)
def test_a_cut_anywhere_changes_nothing(name: str, read: Callable[[Told], Awaitable[bytes | None]]) -> None:
    sent = REQUESTS[name]

    async def comes_of(*data: bytes) -> tuple[Seen, bytes, bool]:
        seen, written, closed = await outcome(read, *data)
        return seen, b"" if name == REFUSED else written.replace(CONTINUE, b""), closed

    async def differing() -> list[int]:
        whole = await comes_of(sent)
        assert whole[0][0] == ("/a", BODY)
        return [cut for cut in range(1, len(sent)) if await comes_of(sent[:cut], sent[cut:]) != whole]

    assert asyncio.run(differing()) == []


PIECES = st.lists(st.integers(1, 200), max_size=12)
SMALL_BODIES = st.binary(max_size=120)


@given(SMALL_BODIES, SMALL_BODIES, PIECES, st.sampled_from([gathered, received]))
def test_two_requests_are_the_same_in_any_pieces(
    one: bytes, two: bytes, sizes: list[int], read: Callable[[Told], Awaitable[bytes | None]]
) -> None:
    sent, pieces, at = post(b"/a", one) + post(b"/b", two), list[bytes](), 0
    for size in sizes:
        pieces.append(sent[at : at + size])
        at += size
    seen, written, closed = asyncio.run(outcome(read, *filter(None, pieces), *filter(None, [sent[at:]])))
    answers = written.count(b"HTTP/1.1 204 No Content\r\n\r\n")
    assert (seen, answers, closed) == ([("/a", one), ("/b", two)], 2, False)


async def test_a_head_behind_a_body_that_passed_by_has_its_measure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MAX_HEAD", 300)
    seen: Seen = []
    desk = Desk(reader(seen, gathered))
    body = b"x" * 900
    await desk.gets(post(b"/", body)[:-700], body[:300], body[:400] + b"GET / HTTP/1.1\r\n")
    before = desk.transport.closed
    written = await desk.gets(b"x: " + b"y" * 200, b"y" * 200)
    assert (seen, before, desk.transport.closed, written[-1][:12]) == ([("/", body)], False, True, b"HTTP/1.1 431")


async def test_a_piece_behind_the_head_goes_to_the_app_as_it_came() -> None:
    seen: Seen = []
    body = b"x" * 70_000
    head, _, _ = post(b"/", body).partition(body)
    await Desk(reader(seen, gathered)).gets(head, body)
    assert seen[0][1] is body


async def test_what_comes_behind_a_last_request_is_nobodys(caplog: pytest.LogCaptureFixture) -> None:
    seen: Seen = []
    desk = Desk(reader(seen, gathered))
    sent = post(b"/a", b"12345", CLOSE)
    await desk.gets(sent[:-2], sent[-2:] + b"\0 no request at all", post(b"/b", b""))
    assert ([path for path, _ in seen], caplog.text) == (["/a"], "")


async def test_a_large_body_that_is_gathered_does_not_stop_the_reading() -> None:
    seen: Seen = []
    desk = Desk(reader(seen, gathered))
    piece = b"x" * reading.MAX_BODY
    await desk.gets(post(b"/", piece * 3)[: -3 * len(piece)])
    stopped = []
    for _ in range(3):
        desk.connection.data_received(piece)
        stopped.append(not desk.transport.reading)
    await settled()
    assert (seen, any(stopped)) == ([("/", piece * 3)], False)


async def test_reading_that_was_stopped_goes_on_when_the_body_is_gathered() -> None:
    seen: Seen = []
    desk = Desk(reader(seen, gathered))
    body = b"x" * (reading.MAX_BODY + 2)
    desk.connection.data_received(post(b"/", body)[:-1])
    stopped = not desk.transport.reading
    await settled()
    going_on = desk.transport.reading
    await desk.gets(b"x")
    assert (stopped, going_on, seen) == (True, True, [("/", body)])


async def test_the_rest_of_a_body_after_its_answer_is_read_and_dropped() -> None:
    desk = Desk(sending(*NO_CONTENT))
    sent = post(b"/a", b"x" * 5000)
    await desk.gets(sent[:1000], sent[1000:3000], sent[3000:] + post(b"/b", b""))
    assert ([told.scope["path"] for told in desk.told], len(desk.transport.writes)) == (["/a", "/b"], 2)


async def test_the_rest_of_a_body_after_its_answer_gives_the_connection_its_time_anew() -> None:
    desk = Desk(sending(*NO_CONTENT))
    sent = post(b"/a", b"x" * 5000)
    await desk.gets(sent[:1000])
    desk.connection._quiet_since = 0.0
    await desk.gets(sent[1000:3000])
    assert desk.connection._quiet_since > 0.0


@pytest.fixture(params=[False, True], ids=["asyncio", "uvloop"])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, object]]:
    return "asyncio", {"use_uvloop": request.param}


class Gatherer(App):
    """Reads each body whole, by the request's peer."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.bodies.append(await gathered(Told(scope, receive, send)) or b"")
        await sending(*NO_CONTENT)(Told(scope, receive, send))


@pytest.mark.parametrize("app", [App(), Gatherer()], ids=["received", "gathered"])
async def test_large_bodies_come_over_a_real_connection_as_they_were_sent(app: App) -> None:
    app.bodies.clear()
    bodies = [bytes([number]) * (700_001 * number) for number in range(1, 4)]
    async with serving(app) as (reader_, writer):
        for body in bodies:
            writer.write(post(b"/", body))
        writer.write(post(b"/", b"the end", CLOSE))
        answers = await rest(reader_)
    assert (app.bodies, answers.count(b"HTTP/1.1 204")) == ([*bodies, b"the end"], 4)


async def test_a_client_that_leaves_within_its_body_is_missed() -> None:
    left: list[bytes | None] = []

    class Missing(Gatherer):
        async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
            left.append(await gathered(Told(scope, receive, send)))

    async with serving(Missing()) as (_, writer):
        writer.write(post(b"/", b"x" * 500_000)[:-1])
        await writer.drain()
        writer.close()
        await comes(lambda: bool(left))
    assert left == [None]


async def test_an_app_that_reads_nothing_is_sent_no_more_than_may_wait() -> None:
    async def act(told: Told) -> None:
        await asyncio.Event().wait()
        del told

    desk = Desk(act)
    await desk.gets(post(b"/", b"x" * 900_000)[:1000], b"x" * reading.MAX_BODY, b"x")
    for task in desk.state.tasks:
        task.cancel()
    await settled()
    assert not desk.transport.reading
