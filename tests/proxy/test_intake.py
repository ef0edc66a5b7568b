from __future__ import annotations

import asyncio
import gzip
import random
import zlib
from collections.abc import Callable, Iterator
from contextlib import nullcontext

import brotli
import pytest
import zstandard

from tests.asgi import Message, Receive
from tests.peers import FakePeer
from troyproxy.errors import (
    BodyTooLarge,
    InvalidJSON,
    InvalidRequest,
    TroyError,
    UnsupportedEncoding,
    UnsupportedMediaType,
)
from troyproxy.proxy.answers import TooMuch
from troyproxy.proxy.intake import ClientLeft, Patience, content_coding, decode_object, inflate, read_body, require_json
from troyproxy.wire import coding as codings
from troyproxy.wire.coding import MAX_PIECE

pytestmark = pytest.mark.anyio

LIMIT = 1 << 20


def _deflate_raw(data: bytes) -> bytes:
    machine = zlib.compressobj(wbits=-15)
    return machine.compress(data) + machine.flush()


PACK: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": brotli.compress,
    "zstd": zstandard.ZstdCompressor().compress,
}


def _receive(*parts: bytes, leave: bool = False) -> Receive:
    messages: list[Message] = [
        {"type": "http.request", "body": part, "more_body": at + 1 < len(parts) or leave}
        for at, part in enumerate(parts)
    ]
    messages += [{"type": "http.disconnect"}] if leave else []

    async def receive() -> Message:
        return messages.pop(0)

    return receive


async def _read(*parts: bytes, limit: int = LIMIT, leave: bool = False, **headers: str) -> bytes:
    raw = tuple((name.replace("_", "-").encode(), value.encode()) for name, value in headers.items())
    return await read_body(_receive(*parts, leave=leave), raw, limit=limit)


async def test_a_body_in_one_piece_is_the_same_object() -> None:
    body = b'{"a":1}'
    assert await _read(body) is body


async def test_a_body_in_pieces_is_joined() -> None:
    assert await _read(b"a", b"", b"b") == b"ab"


async def test_a_message_without_a_body_is_an_empty_piece() -> None:
    async def receive() -> Message:
        return {"type": "http.request"}

    assert await read_body(receive, (), limit=LIMIT) == b""


async def test_a_client_that_leaves_while_it_sends_is_told_apart() -> None:
    with pytest.raises(ClientLeft):
        await _read(b"a", leave=True)


async def _slowly(*parts: bytes, every_s: float) -> bytes:
    """Read a body whose pieces come so far apart."""
    receive = _receive(*parts)

    async def receive_slowly() -> Message:
        await asyncio.sleep(every_s)
        return await receive()

    return await read_body(receive_slowly, (), limit=LIMIT, patience=Patience(stall_s=10.0, total_s=25.0))


async def test_a_slow_client_has_its_time() -> None:
    assert await _slowly(b"a", b"b", every_s=9.0) == b"ab"


@pytest.mark.parametrize(("parts", "every_s"), [(1, 11.0), (4, 9.0)])
async def test_a_body_that_does_not_come_in_time_is_a_bad_request_that_ends_the_connection(
    parts: int, every_s: float
) -> None:
    with pytest.raises(InvalidRequest, match="did not arrive in time") as refused:
        await _slowly(*[b"x"] * parts, every_s=every_s)
    assert refused.value.headers["connection"] == "close"


@pytest.mark.parametrize(
    ("gathered", "error"),
    [(None, ClientLeft), (TooMuch(), BodyTooLarge), (TimeoutError(), InvalidRequest), (b"{}", None)],
)
async def test_what_comes_of_the_wait_of_a_peer_is_what_comes_of_receiving(
    gathered: bytes | Exception | None, error: type[Exception] | None
) -> None:
    peer = FakePeer(None, gathered)
    with nullcontext() if error is None else pytest.raises(error) as refused:
        assert await read_body(_never, (), limit=LIMIT, peer=peer) == gathered
    assert refused is None or ("connection" in getattr(refused.value, "headers", {})) is (error is InvalidRequest)


async def _never() -> Message:
    raise AssertionError("received")


async def test_what_a_peer_gathered_is_decompressed() -> None:
    peer = FakePeer(None, gzip.compress(b"{}"))
    assert await read_body(_never, ((b"content-encoding", b"gzip"),), limit=LIMIT, peer=peer) == b"{}"


async def test_a_declared_length_over_the_limit_is_refused_before_a_byte_is_read() -> None:
    async def never() -> Message:
        raise AssertionError("read")

    with pytest.raises(BodyTooLarge):
        await read_body(never, ((b"content-length", b"9" * 50),), limit=LIMIT)


@pytest.mark.parametrize("declared", ["", "abc", "-1", "٣"])
async def test_a_senseless_length_is_the_servers_affair(declared: str) -> None:
    assert await read_body(_receive(b"{}"), ((b"content-length", declared.encode()),), limit=LIMIT) == b"{}"


async def test_a_body_that_grows_over_the_limit_is_refused() -> None:
    with pytest.raises(BodyTooLarge, match="1 MiB"):
        await _read(*[b"x" * 300_000] * 4)


@pytest.mark.parametrize("coding", PACK)
async def test_every_coding_is_undone(coding: str) -> None:
    body = b'{"text":"' + b"abc" * 50_000 + b'"}'
    assert await _read(PACK[coding](body), content_encoding=coding.upper()) == body


async def test_deflate_is_read_in_both_of_its_meanings() -> None:
    assert inflate(_deflate_raw(b"hello"), "deflate", limit=LIMIT) == b"hello"


async def test_several_gzip_members_are_one_body() -> None:
    assert inflate(gzip.compress(b"a") + gzip.compress(b"b"), "gzip", limit=LIMIT) == b"ab"


@pytest.mark.parametrize("coding", PACK)
async def test_a_bomb_stops_at_the_limit(coding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    taken = 0
    make = codings.CODECS[coding.encode()]

    class Counting:
        def __init__(self) -> None:
            self.inner = make()

        @property
        def finished(self) -> bool:
            return self.inner.finished

        def feed(self, data: bytes) -> Iterator[bytes]:
            nonlocal taken
            for piece in self.inner.feed(data):
                taken += len(piece)
                yield piece

    monkeypatch.setitem(codings.CODECS, coding.encode(), Counting)
    bomb = PACK[coding](b"\0" * (64 << 20))
    with pytest.raises(BodyTooLarge):
        await _read(bomb, content_encoding=coding)
    assert taken <= LIMIT + (2 << 20) + MAX_PIECE


@pytest.mark.parametrize("coding", PACK)
@pytest.mark.parametrize("keep", [0.3, 0.7])
async def test_a_compressed_body_that_breaks_off_is_a_bad_request(coding: str, keep: float) -> None:
    packed = PACK[coding](bytes(range(256)) * 400)
    with pytest.raises(InvalidRequest, match=coding):
        await _read(packed[: int(len(packed) * keep)], content_encoding=coding)


@pytest.mark.parametrize("coding", PACK)
@pytest.mark.parametrize("behind", [b"\0", b"\0" * 64, b"garbage", b'{"a": 1}'])
async def test_what_stands_behind_a_compressed_body_is_a_bad_request(coding: str, behind: bytes) -> None:
    with pytest.raises(InvalidRequest):
        await _read(PACK[coding](b'{"a": 1}') + behind, content_encoding=coding)


@pytest.mark.parametrize("coding", PACK)
async def test_a_large_compressed_body_is_undone_too(coding: str) -> None:
    body = random.Random(7).randbytes(300_000).hex().encode()
    assert await _read(PACK[coding](body), content_encoding=coding) == body


@pytest.mark.parametrize("coding", PACK)
async def test_a_body_that_is_not_compressed_at_all_is_a_bad_request(coding: str) -> None:
    with pytest.raises(InvalidRequest, match=r"not valid|ends too early"):
        await _read(b'{"model":"x"}' * 10, content_encoding=coding)


async def test_an_empty_body_with_a_coding_is_empty() -> None:
    assert await _read(b"", content_encoding="gzip") == b""


@pytest.mark.parametrize("coding", ["compress", "gzip, br", "gzip,gzip", "x" * 100])
async def test_unknown_and_stacked_codings_are_refused(coding: str) -> None:
    with pytest.raises(UnsupportedEncoding):
        await _read(b"", content_encoding=coding)


def test_codings_stacked_by_repeating_the_header_are_refused() -> None:
    with pytest.raises(UnsupportedEncoding):
        content_coding(((b"content-encoding", b"gzip"), (b"content-encoding", b"br")))


@pytest.mark.parametrize(
    ("given", "coding"), [("identity", ""), ("", ""), ("identity, gzip", "gzip"), (" GZIP ", "gzip")]
)
def test_identity_is_no_coding(given: str, coding: str) -> None:
    assert content_coding(((b"content-encoding", given.encode()),)) == coding


# --- JSON ---


@pytest.mark.parametrize(
    ("body", "error", "says"),
    [
        (b"", InvalidJSON, "empty"),
        (b" \n ", InvalidJSON, "empty"),
        (b"\xef\xbb\xbf", InvalidJSON, "valid JSON"),
        (b"{", InvalidJSON, "valid JSON"),
        (b"{'a':1}", InvalidJSON, "valid JSON"),
        (b'{"a":1} x', InvalidJSON, "valid JSON"),
        (b"\xff\xfe", InvalidJSON, "UTF-8"),
        (b"[" * 100_000, InvalidJSON, "valid JSON"),
        (b'{"a":' * 100_000, InvalidJSON, "too deep"),
        (b'{"a":' + b"9" * 10_000 + b"}", InvalidJSON, "too large"),
        (b"[]", InvalidRequest, "an array"),
        (b'"x"', InvalidRequest, "a string"),
        (b"true", InvalidRequest, "a boolean"),
        (b"null", InvalidRequest, "null"),
        (b"1", InvalidRequest, "a number"),
        (b"1.5", InvalidRequest, "a number"),
    ],
)
def test_every_odd_body_has_its_error(body: bytes, error: type[TroyError], says: str) -> None:
    with pytest.raises(error, match=says) as caught:
        decode_object(body)
    assert caught.value.http_status == 400


@pytest.mark.parametrize("body", [b'{"a":1,"a":2}', b'\xef\xbb\xbf{"a":2}', b' {"a": 2} '])
def test_duplicates_marks_and_blanks_are_read(body: bytes) -> None:
    assert decode_object(body) == {"a": 2}


def test_nan_is_read() -> None:
    assert decode_object(b'{"a":NaN}')["a"] != 0


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"])
def test_a_body_that_declares_to_be_something_else_is_refused(kind: str) -> None:
    with pytest.raises(UnsupportedMediaType):
        require_json(((b"content-type", kind.encode()),))


@pytest.mark.parametrize("kind", ["application/json; charset=utf-8", "APPLICATION/JSON", "application/x+json", ""])
def test_json_in_any_dress_is_read(kind: str) -> None:
    require_json(((b"content-type", kind.encode()),))
    require_json(())
    assert kind is not None
