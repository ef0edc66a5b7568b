"""One connection without a socket: whatever comes, in whatever order, its slot is freed once and nothing escapes."""

from __future__ import annotations

import asyncio
import gc
from contextlib import suppress
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz_http import WORDS
from troyproxy.ports import UpstreamFailed
from troyproxy.upstream.outbox import Write
from troyproxy.upstream.pooled.connection import PIECE, Connection
from troyproxy.upstream.pooled.response import PooledResponse

ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"
EVENTS = ("eof", "lost", "reset", "pause", "resume", "read", "close")


class Wire(asyncio.Transport):
    """A transport that writes down what is done with it; closing it takes effect later, as in a real one."""

    def __init__(self) -> None:
        super().__init__()
        self.written = bytearray()
        self.unsent = 0
        self.closing = self.paused = self.aborted = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += data

    def is_closing(self) -> bool:
        return self.closing

    def pause_reading(self) -> None:
        assert not self.paused
        self.paused = True

    def resume_reading(self) -> None:
        assert self.paused
        self.paused = False

    def close(self) -> None:
        self.closing = True

    def abort(self) -> None:
        self.closing = self.aborted = True

    def get_write_buffer_size(self) -> int:
        return self.unsent


@dataclass(slots=True)
class House:
    """A pool that counts."""

    freed: list[Connection] = field(default_factory=list)
    lost: list[Connection] = field(default_factory=list)
    posted: list[tuple[Write, bytes]] = field(default_factory=list)
    waits: bool = False
    """Whether what is posted waits for `turn`."""

    def free(self, connection: Connection) -> None:
        self.freed.append(connection)

    def gone(self, connection: Connection) -> None:
        self.lost.append(connection)

    def post(self, write: Write, data: bytes) -> None:
        self.posted.append((write, data))
        if not self.waits:
            self.turn()

    def turn(self) -> None:
        """End the turn of the event loop."""
        posted, self.posted = self.posted, []
        for write, data in posted:
            write(data)


def made() -> tuple[Connection, Wire, House]:
    house, wire = House(), Wire()
    connection = Connection(house)
    connection.connection_made(wire)
    assert connection.adopt()
    return connection, wire, house


def read_some(response: PooledResponse) -> None:
    """Take what is there, without waiting."""
    with suppress(StopIteration, StopAsyncIteration, UpstreamFailed):
        response.chunks().__anext__().send(None)  # type: ignore[attr-defined]  # a coroutine


def play(event: bytes | str, connection: Connection, wire: Wire, response: PooledResponse) -> None:
    if isinstance(event, bytes):
        if not wire.paused and not wire.closing:
            connection.data_received(event)
    elif event == "eof":
        if not wire.paused and not wire.closing:
            connection.eof_received()
            wire.closing = True
    elif event in {"lost", "reset"}:
        connection.connection_lost(ConnectionResetError(104, "x") if event == "reset" else None)
        wire.closing = True
    elif event == "read":
        read_some(response)
    elif event == "close":
        response._leave()
    else:
        getattr(connection, f"{event}_writing")()


@given(
    st.lists(
        st.one_of(st.sampled_from((ANSWER, CHUNKED, *WORDS, b"x" * 70_000)), st.sampled_from(EVENTS)), max_size=12
    ),
    st.sampled_from([b"", b"{}", b"x" * (3 * PIECE)]),
)
def test_a_slot_is_freed_once_whatever_happens(events: list[bytes | str], body: bytes) -> None:
    async def script() -> None:
        connection, wire, house = made()
        response = connection.ask(b"POST / HTTP/1.1\r\n\r\n", body, bodiless=False)
        for event in events:
            play(event, connection, wire, response)
        connection.connection_lost(None)
        assert house.lost == [connection]
        assert len(house.freed) <= 1
        assert response._line is None
        assert (response._parser._machine, connection._response) == (None, None)

    asyncio.run(script())


@pytest.mark.anyio
async def test_a_small_body_goes_out_with_its_head() -> None:
    connection, wire, _ = made()
    connection.ask(b"HEAD", b"body", bodiless=False)
    assert bytes(wire.written) == b"HEADbody"


@pytest.mark.anyio
async def test_a_large_body_waits_for_its_peer() -> None:
    connection, wire, _ = made()
    connection.pause_writing()
    connection.ask(b"", b"x" * (3 * PIECE), bodiless=False)
    waiting = len(wire.written)
    connection.resume_writing()
    assert (waiting, len(wire.written)) == (0, 3 * PIECE)


@pytest.mark.anyio
async def test_a_refusal_stops_the_body() -> None:
    connection, wire, house = made()
    connection.pause_writing()
    connection.ask(b"", b"x" * (3 * PIECE), bodiless=False)
    connection.data_received(b"HTTP/1.1 413 Too Large\r\ncontent-length: 1\r\n\r\n")
    connection.resume_writing()
    connection.data_received(b"x")
    assert (len(wire.written), wire.closing, house.freed, house.lost) == (0, True, [], [connection])


@pytest.mark.anyio
@pytest.mark.parametrize("unsent", [0, 5])
async def test_a_peer_that_has_refused_need_not_read_the_rest_before_its_connection_ends(unsent: int) -> None:
    connection, wire, _ = made()
    connection.ask(b"", b"x" * 10, bodiless=False)
    wire.unsent = unsent
    connection.data_received(b"HTTP/1.1 413 Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n")
    assert (wire.closing, wire.aborted) == (True, unsent > 0)


@pytest.mark.anyio
async def test_an_answer_to_half_a_request_ends_the_connection() -> None:
    connection, _, house = made()
    connection.pause_writing()
    connection.ask(b"", b"x" * (3 * PIECE), bodiless=False)
    connection.data_received(ANSWER)
    assert (house.freed, house.lost) == ([], [connection])


@pytest.mark.anyio
async def test_behind_a_request_that_its_peer_has_not_taken_there_is_no_other() -> None:
    connection, wire, house = made()
    connection.ask(b"", b"x" * PIECE, bodiless=False)
    wire.unsent = 1
    connection.data_received(ANSWER)
    assert (wire.aborted, house.freed, house.lost) == (True, [], [connection])


@pytest.mark.anyio
async def test_a_connection_that_ended_before_it_served_is_not_adopted() -> None:
    house = House()
    connection = Connection(house)
    connection.connection_made(Wire())
    connection.data_received(b"hello")
    assert (connection.adopt(), house.lost) == (False, [])


@pytest.mark.anyio
async def test_nothing_is_asked_of_a_dead_connection() -> None:
    connection, wire, _ = made()
    connection.connection_lost(None)
    response = connection.ask(b"HEAD", b"", bodiless=False)
    with pytest.raises(UpstreamFailed):
        await response.arrived()
    assert not wire.written


@pytest.mark.anyio
@pytest.mark.parametrize(
    "answer", [ANSWER, CHUNKED, CHUNKED[:-5], b"HTTP/1.1 200 OK\r\n\r\nok", b"HTTP/1.1 101 X\r\n\r\n"]
)
async def test_an_exchange_leaves_no_circle_to_the_collector(answer: bytes) -> None:
    """It would keep bodies for as long as the collector does not come."""
    connection, _, _ = made()
    gc.collect()
    gc.disable()
    try:
        response = connection.ask(b"HEAD", b"{}", bodiless=False)
        connection.data_received(answer)
        response._leave()
        del response
        assert gc.collect() == 0
    finally:
        gc.enable()


@pytest.mark.anyio
async def test_what_comes_before_a_request_has_gone_out_is_no_answer_to_it() -> None:
    connection, wire, house = made()
    house.waits = True
    response = connection.ask(b"HEAD", b"", bodiless=False)
    connection.data_received(ANSWER)
    house.turn()
    with pytest.raises(UpstreamFailed):
        await anext(response.chunks())
    assert (bytes(wire.written), wire.aborted, house.lost) == (b"", True, [connection])


@pytest.mark.anyio
async def test_a_request_that_ends_in_the_turn_in_which_it_is_made_is_not_sent() -> None:
    connection, wire, house = made()
    house.waits = True
    connection.ask(b"HEAD", b"", bodiless=False)
    connection.close()
    house.turn()
    assert bytes(wire.written) == b""
