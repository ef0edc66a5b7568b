"""What every `ports.Upstream` keeps, on every adapter: two over real loopback sockets, one into an app in process."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager

import brotli
import pytest
import zstandard

from tests.upstream.loopback import FAST, HTTPX, PATIENCE_S, Answer, Rig, in_process, read
from troyproxy.ports import UpstreamFailed
from troyproxy.resilience.faults import Fault

pytestmark = pytest.mark.anyio
Rigging = Callable[[Answer], AbstractAsyncContextManager[Rig]]
SSE = (b"content-type", b"text/event-stream")
BIG = bytes(range(256)) * 4096


@pytest.fixture(params=[FAST.over, HTTPX.over, in_process], ids=["fast", "httpx", "in_process"])
def rigged(request: pytest.FixtureRequest) -> Rigging:
    rigging: Rigging = request.param
    return rigging


def gzipped(data: bytes, wbits: int = zlib.MAX_WBITS | 16) -> bytes:
    machine = zlib.compressobj(wbits=wbits)
    return machine.compress(data) + machine.flush()


CODINGS: dict[bytes, Callable[[bytes], bytes]] = {
    b"gzip": gzipped,
    b"deflate": zlib.compress,
    b"br": brotli.compress,
    b"zstd": zstandard.compress,
}


async def test_events_arrive_one_by_one(rigged: Rigging) -> None:
    gate = asyncio.Event()
    async with rigged(Answer(headers=(SSE,), steps=(b"data: 1\n\n", gate, b"data: 2\n\n"))) as rig:
        response = await rig.upstream.send(rig.request())
        chunks = response.chunks()
        first = await anext(chunks)
        gate.set()
        assert (first, await anext(chunks)) == (b"data: 1\n\n", b"data: 2\n\n")
        await response.aclose()


async def test_the_head_is_there_before_the_body(rigged: Rigging) -> None:
    gate = asyncio.Event()
    async with rigged(Answer(status=201, headers=(SSE,), steps=(gate, b"x"))) as rig:
        response = await rig.upstream.send(rig.request())
        gate.set()
        assert (response.status, await read(response)) == (201, b"x")


async def test_an_abandoned_stream_closes_the_upstream(rigged: Rigging) -> None:
    async with rigged(Answer(headers=(SSE,), steps=(b"data: 1\n\n", None))) as rig:
        response = await rig.upstream.send(rig.request())
        await anext(response.chunks())
        await response.aclose()
        assert await asyncio.wait_for(rig.log.gone.wait(), PATIENCE_S)


async def test_a_cancelled_send_closes_the_upstream(rigged: Rigging) -> None:
    async with rigged(Answer(silent=True)) as rig:
        async with asyncio.TaskGroup() as group:
            sending = group.create_task(rig.upstream.send(rig.request()))
            await rig.log.arrived.wait()
            sending.cancel()
        assert await asyncio.wait_for(rig.log.gone.wait(), PATIENCE_S)


async def test_a_cancelled_read_closes_the_upstream(rigged: Rigging) -> None:
    async with rigged(Answer(headers=(SSE,), steps=(b"data: 1\n\n", None))) as rig:
        response = await rig.upstream.send(rig.request())
        chunks = response.chunks()
        await anext(chunks)
        async with asyncio.TaskGroup() as group:
            reading = group.create_task(_outcome(chunks))
            await asyncio.sleep(0)
            reading.cancel()
        await response.aclose()
        assert await asyncio.wait_for(rig.log.gone.wait(), PATIENCE_S)


async def test_a_close_beside_a_pending_read_ends_the_read(rigged: Rigging) -> None:
    async with rigged(Answer(headers=(SSE,), steps=(b"data: 1\n\n", None))) as rig:
        response = await rig.upstream.send(rig.request())
        chunks = response.chunks()
        await anext(chunks)
        async with asyncio.TaskGroup() as group:
            reading = group.create_task(_outcome(chunks))
            await asyncio.sleep(0)
            await response.aclose()
        assert reading.result() is Fault.RESET


async def _outcome(chunks: AsyncIterator[bytes]) -> Fault | bytes:
    try:
        return await anext(chunks)
    except UpstreamFailed as failed:
        return failed.fault


async def test_a_closed_response_reads_as_a_failure(rigged: Rigging) -> None:
    async with rigged(Answer(steps=(b"x",))) as rig:
        response = await rig.upstream.send(rig.request())
        await response.aclose()
        with pytest.raises(UpstreamFailed):
            await anext(response.chunks())


async def test_closing_twice_is_fine(rigged: Rigging) -> None:
    async with rigged(Answer(steps=(b"x", None))) as rig:
        response = await rig.upstream.send(rig.request())
        await response.aclose()
        await response.aclose()
        again = await rig.upstream.send(rig.request())
        assert again.status == 200
        await again.aclose()


async def test_closing_the_adapter_twice_is_fine(rigged: Rigging) -> None:
    async with rigged(Answer(steps=(b"x",))) as rig:
        assert await read(await rig.upstream.send(rig.request())) == b"x"
        await rig.upstream.aclose()


async def test_response_headers_are_raw_with_repeats_and_lower_case_names(rigged: Rigging) -> None:
    sent = ((b"X-Two", b"A"), (b"x-two", b"b"), (b"X-Latin", b"caf\xe9"))
    async with rigged(Answer(headers=sent)) as rig:
        response = await rig.upstream.send(rig.request())
        expected = [(b"x-two", b"A"), (b"x-two", b"b"), (b"x-latin", b"caf\xe9")]
        assert [pair for pair in response.headers if pair[0].startswith(b"x-")] == expected
        await response.aclose()


async def test_the_upstream_gets_the_given_headers_and_framing_only(rigged: Rigging) -> None:
    given = ((b"content-type", b"application/json"), (b"user-agent", b"u"), (b"accept-encoding", b"identity"))
    stale = ((b"content-length", b"999"), (b"host", b"evil.example"))
    async with rigged(Answer()) as rig:
        await read(await rig.upstream.send(rig.request(body="é".encode(), headers=(*given, *stale))))
        seen = rig.log.requests[0]
        host = rig.provider.base_url.removeprefix("http://").removesuffix("/v1").encode()
        assert sorted(seen.headers) == sorted([*given, (b"host", host), (b"content-length", b"2")])


async def test_the_path_stands_behind_the_base_url(rigged: Rigging) -> None:
    async with rigged(Answer()) as rig:
        await read(await rig.upstream.send(rig.request("/embeddings")))
        assert (rig.log.requests[0].method, rig.log.requests[0].target) == ("POST", "/v1/embeddings")


async def test_a_megabyte_passes_both_ways(rigged: Rigging) -> None:
    async with rigged(Answer(steps=(BIG, BIG[::-1]))) as rig:
        got = await read(await rig.upstream.send(rig.request(body=BIG)))
        assert (rig.log.requests[0].body == BIG, got == BIG + BIG[::-1]) == (True, True)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_an_answer(rigged: Rigging, status: int) -> None:
    async with rigged(Answer(status=status, headers=((b"location", b"/elsewhere"), (b"content-length", b"0")))) as rig:
        response = await rig.upstream.send(rig.request())
        await read(response)
        assert (response.status, len(rig.log.requests)) == (status, 1)


async def test_cookies_are_not_kept(rigged: Rigging) -> None:
    async with rigged(Answer(headers=((b"set-cookie", b"session=1; Path=/"),))) as rig:
        for _ in range(2):
            await read(await rig.upstream.send(rig.request()))
        assert not [name for seen in rig.log.requests for name, _ in seen.headers if name == b"cookie"]


async def test_a_lost_connection_before_the_head_is_a_reset(rigged: Rigging) -> None:
    async with rigged(Answer(headless=True)) as rig:
        with pytest.raises(UpstreamFailed) as caught:
            await rig.upstream.send(rig.request())
        assert (caught.value.fault, caught.value.body_sent) == (Fault.RESET, True)


async def test_a_cut_stream_is_a_reset_behind_what_arrived(rigged: Rigging) -> None:
    async with rigged(Answer(headers=(SSE,), steps=(b"data: 1\n\n",), cut=True)) as rig:
        response = await rig.upstream.send(rig.request())
        chunks = response.chunks()
        first = await anext(chunks)
        with pytest.raises(UpstreamFailed) as caught:
            await anext(chunks)
        await response.aclose()
        assert (first, caught.value.fault, caught.value.body_sent) == (b"data: 1\n\n", Fault.RESET, True)


@pytest.mark.parametrize("coding", CODINGS)
async def test_a_compressed_answer_is_decoded_and_its_headers_agree(rigged: Rigging, coding: bytes) -> None:
    packed = CODINGS[coding](BIG)
    headers = ((b"content-encoding", coding), (b"content-length", str(len(packed)).encode()), (b"x-kept", b"1"))
    async with rigged(Answer(status=404, headers=headers, steps=(packed,))) as rig:
        response = await rig.upstream.send(rig.request())
        names = {name for name, _ in response.headers}
        assert await read(response) == BIG
        assert names & {b"content-encoding", b"content-length", b"x-kept"} == {b"x-kept"}


async def test_compressed_events_are_not_held_until_the_end(rigged: Rigging) -> None:
    machine, gate = zlib.compressobj(wbits=zlib.MAX_WBITS | 16), asyncio.Event()
    head = machine.compress(b"data: 1\n\n") + machine.flush(zlib.Z_SYNC_FLUSH)
    tail = machine.compress(b"data: 2\n\n") + machine.flush()
    async with rigged(Answer(headers=(SSE, (b"content-encoding", b"gzip")), steps=(head, gate, tail))) as rig:
        response = await rig.upstream.send(rig.request())
        chunks = response.chunks()
        first = await anext(chunks)
        gate.set()
        assert (first, await anext(chunks)) == (b"data: 1\n\n", b"data: 2\n\n")
        await response.aclose()


@pytest.mark.parametrize("body", [b"not gzip at all", gzipped(BIG)[:-20]])
async def test_a_damaged_compressed_answer_is_a_protocol_fault(rigged: Rigging, body: bytes) -> None:
    async with rigged(Answer(headers=((b"content-encoding", b"gzip"),), steps=(body,))) as rig:
        response = await rig.upstream.send(rig.request())
        with pytest.raises(UpstreamFailed) as caught:
            await read(response)
        await response.aclose()
        assert caught.value.fault is Fault.PROTOCOL


async def test_an_empty_answer_may_claim_any_coding(rigged: Rigging) -> None:
    headers = ((b"content-encoding", b"gzip"), (b"content-length", b"0"))
    async with rigged(Answer(status=200, headers=headers)) as rig:
        assert await read(await rig.upstream.send(rig.request())) == b""
