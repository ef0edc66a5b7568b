"""Content codings: every cut gives the same bytes, bombs come in pieces, what is unknown is left alone."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import AsyncIterator, Callable, Iterable

import brotli
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from troyproxy.ports import Headers, UpstreamFailed
from troyproxy.upstream.decoding import codecs_of, decoded
from troyproxy.wire.coding import ERRORS, MAX_PIECE


def raw_deflate(data: bytes) -> bytes:
    machine = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return machine.compress(data) + machine.flush()


PACKERS: dict[str, tuple[bytes, Callable[[bytes], bytes]]] = {
    "gzip": (b"gzip", gzip.compress),
    "x-gzip": (b"x-gzip", gzip.compress),
    "deflate": (b"deflate", zlib.compress),
    "raw-deflate": (b"deflate", raw_deflate),
    "br": (b"br", brotli.compress),
    "zstd": (b"zstd", zstandard.compress),
}


def headers(*codings: bytes) -> Headers:
    return tuple((b"content-encoding", coding) for coding in codings)


def unpack(coding: bytes, chunks: Iterable[bytes]) -> list[bytes]:
    [codec] = codecs_of(headers(coding))
    return [piece for chunk in chunks for piece in codec.feed(chunk)]


@given(st.sampled_from(sorted(PACKERS)), st.binary(max_size=500), st.data())
def test_a_cut_anywhere_changes_nothing(name: str, body: bytes, data: st.DataObject) -> None:
    coding, pack = PACKERS[name]
    packed = pack(body)
    cut = data.draw(st.integers(1, len(packed)))
    assert b"".join(unpack(coding, (packed[:cut], packed[cut:]))) == body


@pytest.mark.parametrize("name", PACKERS)
def test_a_bomb_comes_in_bounded_pieces(name: str) -> None:
    coding, pack = PACKERS[name]
    pieces = unpack(coding, (pack(bytes(1 << 25)),))
    assert (sum(map(len, pieces)), max(map(len, pieces)) <= 8 * MAX_PIECE) == (1 << 25, True)


@pytest.mark.parametrize("name", ["gzip", "zstd"])
def test_several_members_are_one_body(name: str) -> None:
    coding, pack = PACKERS[name]
    assert b"".join(unpack(coding, (pack(b"one ") + pack(b"two"),))) == b"one two"


@pytest.mark.parametrize("size", [MAX_PIECE, 2 * MAX_PIECE])
def test_a_body_of_whole_pieces_is_finished(size: int) -> None:
    [codec] = codecs_of(headers(b"gzip"))
    body = b"".join(codec.feed(gzip.compress(bytes(size))))
    assert (len(body), codec.finished) == (size, True)


@pytest.mark.parametrize("coding", [b"gzip", b"deflate", b"br", b"zstd"])
def test_garbage_raises_an_error_of_the_library(coding: bytes) -> None:
    with pytest.raises(ERRORS):
        unpack(coding, (b"\xff\xfegarbage" * 20,))


def test_garbage_behind_a_good_start_raises_too() -> None:
    with pytest.raises(ERRORS):
        unpack(b"deflate", (zlib.compress(b"x" * 9)[:2], b"\xff" * 20))


@pytest.mark.parametrize(
    "codings",
    [(), (b"identity",), (b"",), (b"compress",), (b"gzip", b"aes128gcm"), (b"gzip, gzip", b"gzip, gzip")],
)
def test_nothing_unknown_is_undone(codings: tuple[bytes, ...]) -> None:
    assert codecs_of(headers(*codings)) == []


async def one(chunk: bytes) -> AsyncIterator[bytes]:
    yield chunk


@pytest.mark.anyio
async def test_codings_are_undone_from_the_last_to_the_first() -> None:
    packed = brotli.compress(gzip.compress(b"hello"))
    kept, body = decoded(200, (*headers(b"gzip, BR"), (b"content-length", b"9"), (b"x", b"1")), one(packed))
    assert (kept, b"".join([piece async for piece in body])) == (((b"x", b"1"),), b"hello")


@pytest.mark.anyio
async def test_an_untouched_body_is_the_source_itself() -> None:
    source = one(b"x")
    assert decoded(200, headers(b"dcb"), source) == (headers(b"dcb"), source)
    assert [piece async for piece in source] == [b"x"]


@pytest.mark.anyio
@pytest.mark.parametrize("coding", [b"gzip", b"zstd", b"br", b"gzip, zstd"])
async def test_an_error_that_is_not_what_it_claims_passes_as_it_is(coding: bytes) -> None:
    async def source() -> AsyncIterator[bytes]:
        for part in (b"{", b'"error": ', b'"plain words"}'):
            yield part

    kept, body = decoded(400, headers(coding), source())
    assert (kept, b"".join([piece async for piece in body])) == ((), b'{"error": "plain words"}')


@pytest.mark.anyio
async def test_a_body_that_is_damaged_behind_a_good_start_fails() -> None:
    packed = gzip.compress(b"".join(b"%d" % at for at in range(50_000)))
    _, body = decoded(400, headers(b"gzip"), one(packed[:40_000] + b"\xff" * 5000))
    with pytest.raises(UpstreamFailed, match=r"damaged|ended early"):
        assert [piece async for piece in body] == []


@pytest.mark.anyio
async def test_a_body_that_ends_early_fails_behind_what_was_readable() -> None:
    _, body = decoded(200, headers(b"gzip"), one(gzip.compress(b"x" * 100_000)[:-9]))
    got: list[bytes] = []
    with pytest.raises(UpstreamFailed):
        got.extend([piece async for piece in body])
