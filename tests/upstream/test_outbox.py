"""Small writes wait for the end of the turn, in order; a lot of bytes, or a flush, wait for nothing."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troyproxy.upstream.outbox import MOST, Outbox

pytestmark = pytest.mark.anyio


async def test_the_first_write_of_a_turn_goes_at_once_and_the_others_when_it_is_over() -> None:
    box, written = Outbox(asyncio.get_running_loop()), list[bytes]()
    for data in (b"a", b"b", b"c"):
        box.post(written.append, data)
    before = list(written)
    await asyncio.sleep(0)
    assert (before, written) == ([b"a"], [b"a", b"b", b"c"])


async def test_each_turn_has_a_first_write() -> None:
    box, written = Outbox(asyncio.get_running_loop()), list[bytes]()
    box.post(written.append, b"a")
    await asyncio.sleep(0)
    box.post(written.append, b"b")
    assert written == [b"a", b"b"]


async def test_what_is_posted_while_others_are_written_comes_behind_them() -> None:
    box, written = Outbox(asyncio.get_running_loop()), list[bytes]()

    def again(data: bytes) -> None:
        written.append(data)
        box.post(written.append, b"later")

    box.post(written.append, b"first")
    box.post(again, b"second")
    box.post(written.append, b"third")
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert written == [b"first", b"second", b"third", b"later"]


async def test_a_flush_leaves_nothing_behind() -> None:
    box, written = Outbox(asyncio.get_running_loop()), list[bytes]()
    box.post(written.append, b"a")
    box.post(written.append, b"b")
    box.flush()
    at_once = list(written)
    await asyncio.sleep(0)
    assert (at_once, written) == ([b"a", b"b"], [b"a", b"b"])


class Later(asyncio.SelectorEventLoop):
    """A loop that never runs."""


@given(st.lists(st.integers(0, MOST // 2), max_size=20))
def test_so_many_bytes_wait_at_most_and_none_is_lost_or_overtaken(sizes: list[int]) -> None:
    loop, written, most = Later(), list[bytes](), 0
    box = Outbox(loop)
    posted = [bytes([number]) * size for number, size in enumerate(sizes)]
    for count, data in enumerate(posted, 1):
        box.post(written.append, data)
        most = max(most, sum(map(len, posted[:count])) - sum(map(len, written)))
    box.flush()
    loop.close()
    assert written == posted
    assert most <= MOST
