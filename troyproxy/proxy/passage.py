"""One upstream's answer to a request that is passed through: byte for byte, with the content type it came with.

JSON is held whole up to a cap: until it is complete the walk may still go on, and its usage is read. What is no JSON
although it is called so passes too, but not an object without its end: so ends a body whose only frame was its
connection, when that breaks off. Everything else (sound, text, events) and longer JSON flows as it comes, and its first
byte is the commit point. What breaks off behind that cannot be told in-band, since only the upstream knows the format:
`Served.cut` says so, and the walk ends the client's connection without an end of the body, so that nobody takes half
for whole.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Final

from troyproxy.accounting.usage import Usage, fuller, read_usage
from troyproxy.ports import Headers, UpstreamFailed, UpstreamResponse
from troyproxy.proxy.call import Call
from troyproxy.proxy.client import Client
from troyproxy.proxy.outcome import Broken, Served, Target
from troyproxy.proxy.policy import WalkPolicy
from troyproxy.resilience.faults import Fault
from troyproxy.wire import chat, json
from troyproxy.wire.headers import media_type
from troyproxy.wire.sse import FrameDecoder, StreamTooLong

CLASSIFIED: Final = 64 * 1024
EVENTS: Final = "text/event-stream"
PAGE: Final = "text/html"
RESULTS: Final = ("data", "results", "text", "segments", "output", "choices")
"""Members of an answer; beside one of them an ``error`` is no failure."""

Commit = Callable[[], Headers]


class Passage:
    """Passes one response on. *commit* is called once, at the commit point, and returns the head for the client.

    *deadline* (of the event loop's clock) bounds the wait for the first byte, and for the whole of what is held.
    """

    def __init__(
        self, call: Call, target: Target, client: Client, *, policy: WalkPolicy, commit: Commit, deadline: float
    ) -> None:
        self._call, self._target, self._client = call, target, client
        self._policy, self._commit, self._deadline = policy, commit, deadline
        self._loop = asyncio.get_running_loop()
        self._ear = _Ear(policy.max_event)
        self.usage: Usage | None = None
        """What the upstream reported, in JSON or in an event."""

    async def run(self, response: UpstreamResponse) -> Broken | Served:
        """Hold, commit, pass on. Raises ClientGone."""
        kind = media_type(response.headers)
        if kind == PAGE:
            return self._broken(Fault.NOT_A_COMPLETION, "the upstream answered with a page")
        held: list[bytes] = []
        ended = await self._hold(response, held, self._policy.max_body if _is_json(kind) else 0)
        if isinstance(ended, Broken):
            return ended
        body = b"".join(held)
        if ended:
            return await self._whole(response, body, kind)
        return await self._flow(response, body, kind)

    # --- held ---

    async def _hold(self, response: UpstreamResponse, held: list[bytes], limit: int) -> Broken | bool:
        """Read until the end (then True) or until more than *limit* bytes are there."""
        since = self._loop.time()
        try:
            with self._client.alarm.until(self._deadline):
                return await response.read(limit, held)
        except UpstreamFailed as exc:
            return self._broken(exc.fault)
        except TimeoutError:
            return self._broken(Fault.TIMEOUT_TOTAL)
        finally:
            self._call.ledger.upstream_s += self._loop.time() - since

    async def _whole(self, response: UpstreamResponse, body: bytes, kind: str) -> Broken | Served:
        if not body.strip():
            return self._broken(Fault.EMPTY, "the upstream's answer is empty")
        value = json.decoded(body) if _is_json(kind) else None
        if value is None and _is_half(body):
            return self._broken(Fault.RESET, "the upstream's answer ends before its JSON does")
        self.usage = read_usage(value)
        error = _failure_in(value)
        if error is not None:
            failure = self._target.failure(chat.error_code(error), body=body[:CLASSIFIED], in_band=True)
            return Broken(failure, usage=self.usage, message=chat.error_message(error))
        await self._client.whole(response.status, self._commit(), body)
        return Served(self.usage)

    # --- committed ---

    async def _flow(self, response: UpstreamResponse, begun: bytes, kind: str) -> Served:
        chunks = response.chunks()
        left = _length(response.headers)
        length = () if left is None else ((b"content-length", str(left).encode()),)
        await self._client.open(response.status, (*self._commit(), *length))
        hears = kind == EVENTS
        fault: Fault | None = None
        chunk: bytes | None = begun
        while chunk is not None and fault is None:
            left = None if left is None else left - len(chunk)
            if left is not None and left < 0:
                return self._cut(Fault.PROTOCOL)
            if hears:
                self.usage = self._ear.hear(chunk)
            await self._client.part(chunk, more=True)
            chunk, fault = await self._next(chunks)
        if fault is not None or left:
            return self._cut(fault or Fault.RESET)
        if hears:
            self.usage = self._ear.hear(b"", last=True)
        await self._client.part(b"", more=False)
        return Served(self.usage)

    async def _next(self, chunks: AsyncIterator[bytes]) -> tuple[bytes | None, Fault | None]:
        """Return what comes next, None at the end; or how it failed."""
        try:
            with self._client.alarm.until(self._loop.time() + self._policy.idle_of(self._target.provider)):
                return await anext(chunks, None), None
        except UpstreamFailed as exc:
            return None, exc.fault
        except TimeoutError:
            return None, Fault.TIMEOUT_IDLE

    def _cut(self, fault: Fault) -> Served:
        self._call.ledger.truncated = True
        return Served(self.usage, cut=self._target.failure(fault=fault))

    def _broken(self, fault: Fault, message: str = "") -> Broken:
        return Broken(self._target.failure(fault=fault), message=message)


class _Ear:
    """Listens for usage in events that pass by. An event over *limit* bytes makes it deaf, nothing else."""

    def __init__(self, limit: int) -> None:
        self._decoder: FrameDecoder | None = FrameDecoder(limit)
        self._usage: Usage | None = None

    def hear(self, chunk: bytes, *, last: bool = False) -> Usage | None:
        """Take what comes; return what was reported so far."""
        if self._decoder is None:
            return self._usage
        try:
            frames = self._decoder.feed(chunk, last=last)
        except StreamTooLong as exc:
            frames, self._decoder = exc.frames, None
        for frame in frames:
            if frame.data is not None and b'"usage"' in frame.data:
                self._usage = fuller(self._usage, read_usage(json.decoded(frame.data)))
        return self._usage


def _is_json(kind: str) -> bool:
    return kind == "application/json" or kind.endswith("+json")


def _is_half(body: bytes) -> bool:
    """Whether *body* begins as a JSON object or array does and does not end as it must."""
    body = body.strip()
    ends = {b"{": b"}", b"[": b"]"}
    return body[:1] in ends and not body.endswith(ends[body[:1]])


def _failure_in(value: object) -> object | None:
    """Return the error that *value* is instead of an answer."""
    if isinstance(value, Mapping) and any(value.get(name) for name in RESULTS):
        return None
    return chat.error_of(value)


def _length(headers: Headers) -> int | None:
    """Return the declared length of a body, if there is exactly one that can be."""
    given = [value for name, value in headers if name == b"content-length"]
    return int(given[0]) if len(given) == 1 and given[0].isdigit() and len(given[0]) < 16 else None
