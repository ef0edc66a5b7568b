"""Field case HD-01: whatever an upstream compresses, body and headers agree at the client."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

import brotli
import pytest
import zstandard

from tests.e2e.cases.house import combo, failed, provider
from tests.e2e.cases.reads import DONE, OK, STOP
from tests.e2e.client import Response
from tests.e2e.gateway import CHAT, Gateway, chat, client_headers, run_gateway
from tests.e2e.shapes import completion, dumps, error
from tests.e2e.upstreams import Gate, Reply, Upstreams

CODINGS: Final[dict[str, Callable[[bytes], bytes]]] = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": brotli.compress,
    "zstd": lambda body: zstandard.ZstdCompressor().compress(body),
}
ACCEPTS: Final = {
    "nothing": [],
    "identity": [("accept-encoding", "identity")],
    "gzip": [("accept-encoding", "gzip, br")],
}
WELL: Final = completion("compressed é")
REFUSAL: Final = error("no such path", "not_found")


@pytest.fixture(scope="module")
def gateway(folder: Path, upstreams: Upstreams) -> Iterator[Gateway]:
    broken = [f"hd01-corrupt-{at}" for at in range(len(CODINGS))]
    config = {
        "providers": {name: provider(upstreams, name) for name in ("alpha", "beta")},
        "combos": {f"c-{model}": combo(f"alpha/{model}", f"beta/{model}") for model in broken},
    }
    with run_gateway(folder, config) as running:
        yield running


def coded(coding: str, body: bytes, status: int = 200) -> Reply:
    """Return a compressed answer with the compressed length."""
    headers = (("content-type", "application/json"), ("content-encoding", coding))
    return Reply(status, headers, (CODINGS[coding](body),), "length")


def asked(gateway: Gateway, model: str, accept: str = "nothing", *, streams: bool = False) -> Response:
    """Return the whole answer, having said what is accepted."""
    body = dumps(chat(model, stream=streams))
    return gateway.whole("POST", CHAT, body, [*client_headers(), *ACCEPTS[accept]])


@pytest.mark.parametrize("accept", ACCEPTS)
@pytest.mark.parametrize("coding", CODINGS)
def test_hd_01_a_compressed_answer_is_plain_at_the_client(
    gateway: Gateway, upstreams: Upstreams, coding: str, accept: str
) -> None:
    model = f"hd01-{coding}-{accept}"
    upstreams.script("alpha", coded(coding, WELL), coded(coding, REFUSAL, 404), model=model)
    for status, body in ((200, WELL), (404, REFUSAL)):
        answer = asked(gateway, f"alpha/{model}", accept)
        assert (answer.status, answer.body) == (status, body)
        assert "content-encoding" not in answer.headers
        assert answer.headers["content-length"] == str(len(body))
    assert {dict(seen.headers)["accept-encoding"] for seen in upstreams.requests("alpha", model=model)} == {"identity"}


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("coding", CODINGS)
def test_hd_01_a_compressed_refusal_of_a_stream_is_plain_too(
    gateway: Gateway, upstreams: Upstreams, coding: str, streams: bool
) -> None:
    model = f"hd01-refused-{coding}-{streams:d}"
    upstreams.script("alpha", coded(coding, REFUSAL, 500), model=model)
    answer = asked(gateway, f"alpha/{model}", streams=streams)
    assert (answer.status, answer.body, "content-encoding" in answer.headers) == (500, REFUSAL, False)


def test_hd_01_the_events_of_a_compressed_stream_come_as_they_are_sent(gateway: Gateway, upstreams: Upstreams) -> None:
    machine = zlib.compressobj(wbits=31)
    first = machine.compress(OK) + machine.flush(zlib.Z_SYNC_FLUSH)
    rest = machine.compress(STOP + DONE) + machine.flush()
    headers = (("content-type", "text/event-stream"), ("content-encoding", "gzip"))
    upstreams.script("alpha", Reply(200, headers, (first, Gate("hd01"), rest)), model="hd01-stream")
    with closing(gateway.stream(chat("alpha/hd01-stream"))) as answer:
        assert answer.read() == OK
        upstreams.open("hd01")
        assert answer.rest() == STOP + DONE
        assert "content-encoding" not in answer.headers


@pytest.mark.parametrize("status", [200, 204, 205])
def test_hd_01_an_empty_answer_that_claims_a_coding_is_a_failure(
    gateway: Gateway, upstreams: Upstreams, status: int
) -> None:
    headers = (("content-encoding", "gzip"), ("content-type", "application/json"), ("content-length", "0"))
    upstreams.script("alpha", Reply(status, headers, (), "close"), model=f"hd01-{status}")
    answer = asked(gateway, f"alpha/hd01-{status}")
    assert (answer.status, answer.code) == (502, "upstream_invalid")
    assert failed(gateway, "alpha", f"hd01-{status}")[0]["error_class"] == "transient"


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("coding", CODINGS)
def test_hd_01_a_corrupt_body_is_a_failure_and_no_hang(
    gateway: Gateway, upstreams: Upstreams, coding: str, streams: bool
) -> None:
    model = f"hd01-corrupt-{list(CODINGS).index(coding)}"
    headers = (("content-type", "application/json"), ("content-encoding", coding))
    packed = CODINGS[coding](WELL)
    bad = (packed[:-9], b"this is not compressed at all", b"\x00" * 8 + packed[8:])
    for body in bad:
        upstreams.script("alpha", Reply(200, headers, (body,), "length"), model=model)
        gateway.admin("POST", "/api/cooldowns/clear", {"provider": "alpha", "model": model})
        answer = asked(gateway, f"c-{model}", streams=streams)
        assert (answer.status, answer.headers["x-troy-model"]) == (200, f"beta/{model}")
        alone = asked(gateway, f"alpha/{model}", streams=streams)
        assert alone.status == 502
        assert "content-encoding" not in alone.headers
