"""Compressed bodies, both ways: read as they come, refused when damaged, and bounded when they are bombs."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Final

import brotli
import pytest
import zstandard

from tests.e2e.client import Response
from tests.e2e.gateway import CHAT, Gateway, chat, client_headers, run_gateway
from tests.e2e.shapes import DONE, completion, delta, dumps, error, role
from tests.e2e.upstreams import Gate, Reply, Upstreams
from tests.soak.watch import peak_mb, rss_mb

MIB: Final = 1 << 20
BOMB_MB: Final = 256
ROOM_MB: Final = 160
"""What reading up to 32 MiB may cost on top, generously; a bomb that goes off costs more."""
JSON: Final = ("content-type", "application/json")
SSE: Final = ("content-type", "text/event-stream")
WELL: Final = completion("compressed é")
EVENTS: Final = (role(), delta("a"), delta("b"), delta(finish="stop"))
Packer = Callable[[bytes], bytes]


def _zlib(wbits: int) -> tuple[Packer, Packer]:
    machine = zlib.compressobj(wbits=wbits)
    return (lambda data: machine.compress(data) + machine.flush(zlib.Z_SYNC_FLUSH)), (
        lambda data: machine.compress(data) + machine.flush()
    )


def _brotli() -> tuple[Packer, Packer]:
    machine = brotli.Compressor(quality=1)
    return (lambda data: machine.process(data) + machine.flush()), (
        lambda data: machine.process(data) + machine.finish()
    )


def _zstd() -> tuple[Packer, Packer]:
    machine = zstandard.ZstdCompressor().compressobj()
    return (lambda data: machine.compress(data) + machine.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)), (
        lambda data: machine.compress(data) + machine.flush()
    )


MACHINES: Final[dict[str, Callable[[], tuple[Packer, Packer]]]] = {
    "gzip": lambda: _zlib(31),
    "deflate": lambda: _zlib(15),
    "br": _brotli,
    "zstd": _zstd,
}
"""For each coding: what packs a part so that it can be read at once, and what packs the last part."""


def packed(coding: str, body: bytes) -> bytes:
    """Return the whole body, compressed."""
    return MACHINES[coding]()[1](body)


def bomb(coding: str, head: bytes, tail: bytes) -> bytes:
    """Return what unpacks to hundreds of megabytes between *head* and *tail*."""
    part, last = MACHINES[coding]()
    blank = b" " * MIB
    return b"".join([part(head), *(part(blank) for _ in range(BOMB_MB)), last(tail)])


SPELLINGS: Final[dict[str, tuple[str, bytes]]] = {
    "in capitals": ("GZIP", gzip.compress(WELL)),
    "x-gzip": ("x-gzip", gzip.compress(WELL)),
    "in two members": ("gzip", gzip.compress(WELL[:50]) + gzip.compress(WELL[50:])),
    "raw deflate": ("deflate", zlib.compress(WELL)[2:-4]),
    "twice": ("br, gzip", gzip.compress(brotli.compress(WELL))),
    "identity": ("identity", WELL),
}


@pytest.fixture(scope="module")
def gateway(folder: Path, upstreams: Upstreams) -> Iterator[Gateway]:
    config = {"providers": {"alpha": {"base_url": upstreams.base_url("alpha"), "auth": "none"}}}
    with run_gateway(folder, config) as running:
        yield running


def answered(gateway: Gateway, upstreams: Upstreams, model: str, reply: Reply, *, streams: bool = False) -> Response:
    """Return what a client gets of *reply*."""
    upstreams.script("alpha", reply, model=model)
    return gateway.post(chat(f"alpha/{model}", stream=streams))


def posted(gateway: Gateway, coding: str, body: bytes) -> Response:
    """Return the answer to a compressed request."""
    return gateway.whole("POST", CHAT, body, [*client_headers(), ("content-encoding", coding)])


# --- from the upstream ---


@pytest.mark.parametrize("kind", SPELLINGS)
def test_every_spelling_of_a_coding_is_read(gateway: Gateway, upstreams: Upstreams, kind: str) -> None:
    coding, body = SPELLINGS[kind]
    reply = Reply(200, (JSON, ("content-encoding", coding)), (body,), "length")
    answer = answered(gateway, upstreams, f"spelt-{kind}".replace(" ", "-"), reply)
    assert (answer.status, answer.body) == (200, WELL)
    assert "content-encoding" not in answer.headers


@pytest.mark.parametrize("coding", MACHINES)
def test_each_event_of_a_compressed_stream_arrives_when_it_is_sent(
    gateway: Gateway, upstreams: Upstreams, coding: str
) -> None:
    part, last = MACHINES[coding]()
    gates = [Gate(f"{coding}-{at}") for at in range(2)]
    steps = (part(EVENTS[0] + EVENTS[1]), gates[0], part(EVENTS[2]), gates[1], last(EVENTS[3] + DONE))
    upstreams.script("alpha", Reply(200, (SSE, ("content-encoding", coding)), steps), model=f"live-{coding}")
    with closing(gateway.stream(chat(f"alpha/live-{coding}"))) as answer:
        assert "content-encoding" not in answer.headers
        assert answer.read() == EVENTS[0] + EVENTS[1]
        upstreams.open(gates[0].name)
        assert answer.read() == EVENTS[2]
        upstreams.open(gates[1].name)
        assert answer.rest() == EVENTS[3] + DONE


@pytest.mark.parametrize("coding", MACHINES)
def test_a_compressed_stream_that_is_cut_anywhere_is_never_a_quiet_half(
    gateway: Gateway, upstreams: Upstreams, coding: str
) -> None:
    part, last = MACHINES[coding]()
    body = b"".join([*(part(event) for event in EVENTS), last(DONE)])
    for at in range(len(body)):
        reply = Reply(200, (SSE, ("content-encoding", coding)), (body[:at],), "chunked")
        upstreams.script("alpha", reply, model=f"cut-{coding}-{at}")

    def ask(at: int) -> bool:
        with closing(gateway.stream(chat(f"alpha/cut-{coding}-{at}"))) as answer:
            said = answer.rest()
            if answer.status != 200:
                return answer.status == 502
        whole = said == b"".join(EVENTS) + DONE
        return whole or (said.count(b'"error"') == 1 and DONE not in said)

    with ThreadPoolExecutor(4) as pool:
        quiet = [at for at, fine in enumerate(pool.map(ask, range(len(body)))) if not fine]
    assert quiet == []


@pytest.mark.parametrize("coding", MACHINES)
@pytest.mark.parametrize("status", [404, 500])
def test_a_damaged_error_body_keeps_its_status(
    gateway: Gateway, upstreams: Upstreams, status: int, coding: str
) -> None:
    body = packed(coding, error("no such thing", "scripted"))[:-6]
    reply = Reply(status, (JSON, ("content-encoding", coding)), (body,), "length")
    answer = answered(gateway, upstreams, f"damaged-{coding}-{status}", reply)
    assert answer.status == status
    assert "content-encoding" not in answer.headers
    assert answer.headers["content-length"] == str(len(answer.body))


@pytest.mark.parametrize("coding", ["gzip", "zstd"])
@pytest.mark.parametrize("status", [400, 500])
def test_an_error_that_is_not_in_the_coding_it_claims_keeps_its_words(
    gateway: Gateway, upstreams: Upstreams, status: int, coding: str
) -> None:
    body = error("no such thing", "scripted")
    reply = Reply(status, (JSON, ("content-encoding", coding)), (body,), "length")
    answer = answered(gateway, upstreams, f"plain-{coding}-{status}", reply)
    assert (answer.status, answer.body) == (status, body)
    assert "content-encoding" not in answer.headers


def test_an_error_in_a_coding_that_nobody_knows_keeps_its_bytes_and_says_so(
    gateway: Gateway, upstreams: Upstreams
) -> None:
    reply = Reply(404, (JSON, ("content-encoding", "snappy")), (b"\x00\xffwhatever",), "length")
    answer = answered(gateway, upstreams, "unknown-error", reply)
    assert (answer.status, answer.body) == (404, b"\x00\xffwhatever")
    assert answer.headers["content-encoding"] == "snappy"


@pytest.mark.parametrize("streams", [False, True])
def test_an_answer_in_a_coding_that_nobody_knows_is_none(gateway: Gateway, upstreams: Upstreams, streams: bool) -> None:
    reply = Reply(200, (JSON, ("content-encoding", "snappy")), (b"\x00\xffwhatever",), "length")
    answer = answered(gateway, upstreams, f"unknown-{streams}", reply, streams=streams)
    assert (answer.status, answer.code) == (502, "upstream_invalid")


@pytest.mark.parametrize("coding", MACHINES)
def test_a_bomb_of_an_answer_stops_at_the_limit(gateway: Gateway, upstreams: Upstreams, coding: str) -> None:
    before = rss_mb(gateway.pid)
    body = bomb(coding, WELL[:-1], b"}")
    for number, (status, kind, streams) in enumerate([(200, JSON, False), (200, SSE, True), (500, JSON, False)]):
        reply = Reply(status, (kind, ("content-encoding", coding)), (body,), "length")
        answer = answered(gateway, upstreams, f"bomb-{coding}-{number}", reply, streams=streams)
        assert answer.status in {500, 502}
        assert len(answer.body) <= 32 * MIB
    assert peak_mb(gateway.pid) - before < ROOM_MB


# --- from the client ---


@pytest.mark.parametrize("coding", [*MACHINES, "x-gzip", "identity", "identity, br"])
def test_a_compressed_request_is_read_and_goes_on_plain(gateway: Gateway, upstreams: Upstreams, coding: str) -> None:
    name = f"asked-{coding}".replace(", ", "-")
    body = dumps(chat(f"alpha/{name}", "é 北京"))
    plain = coding == "identity"
    sent = body if plain else packed(coding.removeprefix("x-").removeprefix("identity, "), body)
    assert posted(gateway, coding, sent).status == 200
    (seen,) = upstreams.requests("alpha", model=name)
    assert seen.body == body.replace(b"alpha/", b"")
    assert "content-encoding" not in dict(seen.headers)
    assert dict(seen.headers)["content-length"] == str(len(seen.body))


@pytest.mark.parametrize("coding", MACHINES)
def test_a_request_that_is_cut_anywhere_is_refused_and_reaches_nobody(
    gateway: Gateway, upstreams: Upstreams, coding: str
) -> None:
    body = packed(coding, dumps(chat(f"alpha/torn-{coding}")))
    answers = [posted(gateway, coding, body[:at]) for at in range(1, len(body))]
    assert {(answer.status, answer.code) for answer in answers} == {(400, "invalid_request")}
    assert upstreams.requests("alpha", model=f"torn-{coding}") == []
    assert posted(gateway, coding, body).status == 200


@pytest.mark.parametrize("coding", MACHINES)
def test_a_bomb_of_a_request_stops_at_the_limit(gateway: Gateway, upstreams: Upstreams, coding: str) -> None:
    before = rss_mb(gateway.pid)
    body = dumps(chat(f"alpha/boom-{coding}"))
    answer = posted(gateway, coding, bomb(coding, body[:-1], b"}"))
    assert (answer.status, answer.code) == (413, "body_too_large")
    assert peak_mb(gateway.pid) - before < ROOM_MB
    assert upstreams.requests("alpha", model=f"boom-{coding}") == []
