"""A body that is gathered: what is kept of it, who is woken, and how long it is waited for."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Coroutine, Generator
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cli.test_exchange import GET, POST, Desk, Told, Transport, nothing, sending, settled
from tests.virtual import START, VirtualLoop
from troyproxy.cli.body import SMALL, Pieces, joined, keep
from troyproxy.errors import TroyError
from troyproxy.proxy.answers import TooMuch
from troyproxy.proxy.intake import ClientLeft, Patience, read_body

pytestmark = pytest.mark.anyio

NO_CONTENT = ({"type": "http.response.start", "status": 204, "headers": []}, {"type": "http.response.body"})
SIZED = POST + b"\r\n"
"""The head of a request whose body has four bytes."""


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, object]]:
    return "asyncio", {"loop_factory": VirtualLoop}


# --- what is kept


@given(st.lists(st.binary(max_size=2 * SMALL) | st.integers(1, 3 * SMALL).map(bytes)))
def test_pieces_of_any_size_are_one_body(parts: list[bytes]) -> None:
    pieces: Pieces = []
    for part in parts:
        keep(pieces, part)
    assert (joined(pieces), pieces) == (b"".join(parts), [])


def test_a_piece_alone_is_not_copied() -> None:
    pieces, piece = Pieces(), b"x" * 10
    keep(pieces, piece)
    assert joined(pieces) is piece


def test_small_pieces_are_kept_together() -> None:
    pieces = Pieces()
    for _ in range(10_000):
        keep(pieces, b"xy")
    keep(pieces, b"z" * SMALL)
    keep(pieces, b"end")
    assert list(map(len, pieces)) == [2, 19_998, SMALL, 3]


# --- who is woken


class Steps:
    """Awaits something, and counts how often it is waited."""

    def __init__(self, coroutine: Coroutine[Any, Any, bytes | None]) -> None:
        self._coroutine, self.count = coroutine, 0

    def __await__(self) -> Generator[Any, Any, bytes | None]:
        inner = self._coroutine.__await__()
        try:
            while True:
                waited = next(inner)
                self.count += 1
                yield waited
        except StopIteration as end:
            body: bytes | None = end.value
            return body


async def gathered(told: Told, limit: int = 100) -> bytes | None:
    return await told.peer.gather(limit, stall_s=60.0, total_s=600.0)


async def test_who_gathers_is_woken_once() -> None:
    got: list[object] = []

    async def act(told: Told) -> None:
        steps = Steps(gathered(told))
        got.extend((await steps, steps.count))
        await sending(*NO_CONTENT)(told)

    await Desk(act).gets(SIZED, b"a", b"b", b"c", b"d")
    assert got == [b"abcd", 1]


async def test_a_body_that_is_here_is_not_waited_for() -> None:
    got: list[object] = []

    async def act(told: Told) -> None:
        steps = Steps(gathered(told))
        got.extend((await steps, steps.count))

    await Desk(act).gets(SIZED + b"abcd")
    assert got == [b"abcd", 0]


async def test_a_client_that_waits_to_be_told_is_told_by_who_gathers() -> None:
    got: list[bytes | None] = []

    async def act(told: Told) -> None:
        got.append(await gathered(told))

    desk = Desk(act)
    written = list(await desk.gets(POST + b"expect: 100-continue\r\n\r\n"))
    await desk.gets(b"abcd")
    assert (written, got) == ([b"HTTP/1.1 100 Continue\r\n\r\n"], [b"abcd"])


@pytest.mark.parametrize("data", [(b"ab",), (b"ab", b"c"), (b"ab", b"cd")], ids=["some", "more", "all of it"])
async def test_who_leaves_before_its_body_is_taken_has_left(data: tuple[bytes, ...]) -> None:
    got: list[object] = []

    async def act(told: Told) -> None:
        got.append(await gathered(told))
        got.append((await told.receive())["type"])

    desk = Desk(act)
    await desk.gets(SIZED)
    for piece in data:
        desk.connection.data_received(piece)
    desk.connection.connection_lost(None)
    await settled()
    assert got == [None, "http.disconnect"]


async def test_who_left_before_it_is_asked_is_not_waited_for() -> None:
    got: list[bytes | None] = []

    async def act(told: Told) -> None:
        await asyncio.sleep(1)
        got.append(await gathered(told))

    desk = Desk(act)
    await desk.gets(SIZED)
    desk.connection.connection_lost(None)
    await asyncio.sleep(2)
    assert got == [None]


@pytest.mark.parametrize("before", [b"", b"abc"], ids=["while it waits", "before that"])
async def test_too_much_is_told_before_the_body_is_whole(before: bytes) -> None:
    got: list[object] = []

    async def act(told: Told) -> None:
        try:
            await gathered(told, 2)
        except TooMuch:
            got.append("too much")
        await sending(*NO_CONTENT)(told)

    desk = Desk(act)
    await desk.gets(SIZED + before, *([] if before else [b"a", b"bc"]))
    assert (got, desk.transport.closed) == (["too much"], False)
    await desk.gets(b"d" + GET)
    assert len(desk.told) == 2


async def test_behind_a_body_only_the_end_is_received() -> None:
    got: list[object] = []

    async def act(told: Told) -> None:
        await gathered(told)
        got.append((await told.receive())["type"])

    desk = Desk(act)
    await desk.gets(SIZED, b"abcd")
    waiting = list(got)
    desk.connection.connection_lost(None)
    await settled()
    assert (waiting, got) == ([], ["http.disconnect"])


# --- how long


async def ending(delays: list[float], *, peer: bool, total: int = 6) -> tuple[object, float]:
    """Return what comes of a body whose pieces come after *delays*, and when. The last one ends it."""
    came: list[tuple[object, float]] = []

    async def act(told: Told) -> None:
        patience, who = Patience(stall_s=10.0, total_s=25.0), told.peer if peer else None
        result: object = None
        try:
            result = await read_body(told.receive, (), limit=total, patience=patience, peer=who)
        except (TroyError, ClientLeft) as error:
            result = type(error), str(error), getattr(error, "headers", None)
        came.append((result, round(asyncio.get_running_loop().time() - START, 6)))

    desk = Desk(act)
    await desk.gets(b"POST / HTTP/1.1\r\nhost: h\r\ncontent-length: %d\r\n\r\n" % len(delays))
    for delay in delays:
        await asyncio.sleep(delay)
        desk.connection.data_received(b"x")
    await asyncio.sleep(100)
    desk.connection.connection_lost(None)
    return came[0]


DELAYS = st.lists(st.sampled_from([0.0, 0.3, 3.3, 7.7, 9.9, 10.1, 12.0]), min_size=1, max_size=8)


@given(DELAYS)
def test_whoever_waits_is_as_patient(delays: list[float]) -> None:
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        one = runner.run(ending(delays, peer=True))
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        other = runner.run(ending(delays, peer=False))
    assert one == other


@pytest.mark.parametrize(
    ("delays", "at"), [([9.0, 9.0], None), ([11.0], 10.0), ([9.0, 11.0], 19.0), ([9.0, 9.0, 9.0], 25.0)]
)
async def test_a_body_has_its_time_from_piece_to_piece_and_in_all(delays: list[float], at: float | None) -> None:
    result, ended = await ending(delays, peer=True)
    assert (result if at is None else ended) == (b"xx" if at is None else at)


@pytest.mark.parametrize("end", ["whole", "too much", "late", "left"])
async def test_nothing_of_a_gathered_body_waits_for_the_collector(end: str) -> None:
    kept: list[weakref.ref[Any]] = []

    class Thing:
        pass

    async def act(told: Told) -> None:
        told.scope["thing"] = thing = Thing()
        kept.append(weakref.ref(thing))
        with suppress(TooMuch, TimeoutError):
            await told.peer.gather(2 if end == "too much" else 9, stall_s=5.0, total_s=9.0)
        await sending(*NO_CONTENT)(told)

    desk = Desk(act)
    gc.collect()
    gc.disable()
    try:
        await desk.gets(SIZED, b"a", *([b"bcd"] if end in {"whole", "too much"} else []))
        if end == "left":
            desk.connection.connection_lost(None)
        await asyncio.sleep(100)
        desk.told.clear()
        desk.transport, desk.connection = Transport(), None  # type: ignore[assignment]
        await settled()
        assert [each() for each in kept] == [None]
    finally:
        gc.enable()


async def test_a_body_that_nobody_gathers_is_still_received() -> None:
    desk = Desk(nothing)
    got: list[bytes] = []

    async def act(told: Told) -> None:
        got.append((await told.receive())["body"])

    desk.act = act
    await desk.gets(SIZED + b"ab")
    assert got == [b"ab"]
