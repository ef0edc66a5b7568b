"""How adapters that only yield pieces read a whole body."""

from __future__ import annotations

import pytest

from tests.fakes import FakeResponse, Reply
from troyproxy.ports import gathered
from troyproxy.ports.upstream import MANY

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(("limit", "fits"), [(4, True), (3, False)])
async def test_a_whole_body_is_read_up_to_its_limit(limit: int, fits: bool) -> None:
    parts: list[bytes] = []
    response = FakeResponse(Reply(body=[b"ab", b"cd", b""]))
    assert (await gathered(response.chunks(), limit, parts), b"".join(parts)) == (fits, b"abcd")


async def test_what_is_behind_the_limit_is_still_to_come() -> None:
    parts: list[bytes] = []
    response = FakeResponse(Reply(body=[b"ab", b"cd", b"ef"]))
    assert not await response.read(3, parts)
    assert (parts, [chunk async for chunk in response.chunks()]) == ([b"ab", b"cd"], [b"ef"])


async def test_a_great_many_small_pieces_become_few() -> None:
    parts: list[bytes] = []
    response = FakeResponse(Reply(body=[b"%d" % (at % 10) for at in range(3000)]))
    assert await response.read(3000, parts)
    assert (len(parts), b"".join(parts)) == (2 + 3000 - 2 * MANY, b"0123456789" * 300)
