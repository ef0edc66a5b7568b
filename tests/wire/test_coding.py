"""Every coding, whole and cut anywhere, in bounded pieces. How answers use it is tested with the upstream adapters."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import brotli
import pytest
import zstandard

from troyproxy.wire.coding import CODECS, ERRORS, FREE_MEMBERS, MAX_PIECE, MEMBER_BYTES, Codec

PACK: Final[dict[bytes, Callable[[bytes], bytes]]] = {
    b"gzip": gzip.compress,
    b"x-gzip": gzip.compress,
    b"deflate": zlib.compress,
    b"br": brotli.compress,
    b"zstd": zstandard.ZstdCompressor().compress,
}
BODY: Final = b"the quick brown fox " * 30


def _fed(codec: Codec, *parts: bytes) -> bytes:
    return b"".join(piece for part in parts for piece in codec.feed(part))


def test_every_coding_has_a_packer_here() -> None:
    assert PACK.keys() == CODECS.keys()


@pytest.mark.parametrize("name", PACK)
def test_a_cut_anywhere_changes_nothing(name: bytes) -> None:
    packed = PACK[name](BODY)
    for cut in range(len(packed) + 1):
        codec = CODECS[name]()
        assert (_fed(codec, packed[:cut], packed[cut:]), codec.finished) == (BODY, True)


@pytest.mark.parametrize("name", PACK)
def test_a_stream_that_breaks_off_is_not_finished(name: bytes) -> None:
    codec = CODECS[name]()
    _fed(codec, PACK[name](BODY)[:-1])
    assert not codec.finished


@pytest.mark.parametrize("name", PACK)
def test_a_bomb_comes_in_bounded_pieces(name: bytes) -> None:
    sizes = [len(piece) for piece in CODECS[name]().feed(PACK[name](b"\0" * (8 << 20)))]
    assert (sum(sizes), max(sizes) <= max(2 << 20, 2 * MAX_PIECE)) == (8 << 20, True)


@pytest.mark.parametrize("name", PACK)
def test_what_is_not_packed_raises_an_error_of_the_library(name: bytes) -> None:
    with pytest.raises(ERRORS):
        _fed(CODECS[name](), b"\xff" * 100)


@pytest.mark.parametrize("name", [b"gzip", b"zstd"])
def test_several_members_are_one_body(name: bytes) -> None:
    assert _fed(CODECS[name](), PACK[name](b"a") + PACK[name](b"b")) == b"ab"


@pytest.mark.parametrize("name", [b"gzip", b"zstd"])
def test_members_that_hold_nothing_are_bounded(name: bytes) -> None:
    with pytest.raises(ERRORS, match="too many"):
        _fed(CODECS[name](), PACK[name](b"") * (FREE_MEMBERS + 10))


@pytest.mark.parametrize("name", [b"gzip", b"zstd"])
def test_as_many_members_as_a_stream_has_events_are_read(name: bytes) -> None:
    event = b"data: " + b"x" * MEMBER_BYTES + b"\n\n"
    parts = [PACK[name](event)] * (FREE_MEMBERS * 2)
    assert _fed(CODECS[name](), *parts) == event * len(parts)


@pytest.mark.parametrize("name", PACK)
@pytest.mark.parametrize("behind", [b"\0", b"\0" * 64, b"garbage"])
def test_what_stands_behind_the_end_is_no_part_of_it(name: bytes, behind: bytes) -> None:
    codec, finished = CODECS[name](), False
    with suppress(*ERRORS):
        _fed(codec, PACK[name](BODY) + behind)
        finished = codec.finished
    assert not finished


def test_deflate_is_read_raw_too() -> None:
    machine = zlib.compressobj(wbits=-15)
    packed = machine.compress(BODY) + machine.flush()
    assert _fed(CODECS[b"deflate"](), packed[:1], packed[1:]) == BODY
