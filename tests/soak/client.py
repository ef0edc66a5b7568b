"""The soak's clients: raw HTTP/1.1, strict about framing and about what an answer must be.

Whatever is wrong with an answer is written into its `Outcome`; nothing is judged twice elsewhere.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any, Final

from tests.e2e.gateway import CHAT, KEY
from tests.soak.plan import Ask, Leave, said

PATIENCE_S: Final = 45.0
READ_SPAN: Final = 2000
"""Bytes of an answer within which a client that hangs up while it reads does so."""
LATER_SPAN_S: Final = 1.5
RESET: Final = struct.pack("ii", 1, 0)


class Left(Exception):
    """This client hangs up here, as planned."""


@dataclass(slots=True)
class Outcome:
    """What one request came to, as its client saw it."""

    ask: Ask
    kind: str = "lost"
    """``whole``, ``stream`` (both good), ``cut`` (told in-band), ``error`` (a status), ``left``, or ``lost``."""
    status: int = 0
    request_id: str = ""
    generation: int | None = None
    endings: int | None = None
    """Of a stream that was read to its end."""
    wrong: list[str] = field(default_factory=list)

    def judge(self, body: bytes) -> None:
        """Say what a whole answer is, and what is wrong with it."""
        if self.status != 200:
            self.kind = "error"
            if self.status < 400 or not body:
                self.wrong.append(f"an answer with status {self.status} and {len(body)} bytes")
        elif self.ask.stream:
            self._judge_stream(body)
        else:
            self.kind = "whole"
            self._judge_text(_text(json.loads(body)["choices"][0]["message"]))

    def _judge_stream(self, body: bytes) -> None:
        datas = [line[6:] for line in body.split(b"\n") if line.startswith(b"data: ")]
        events: list[dict[str, Any]] = [json.loads(data) for data in datas if data != b"[DONE]"]
        errors = [event for event in events if event.get("error")]
        self.endings = datas.count(b"[DONE]") + len(errors)
        if self.endings != 1 or not (datas[-1] == b"[DONE]" or events[-1] in errors):
            self.wrong.append(f"{self.endings} endings, the last data is {datas[-1:]!r}")
        if not self.ask.wants_usage and b'"usage"' in body:
            self.wrong.append("usage that nobody asked for")
        choices = [choice for event in events for choice in event.get("choices") or ()]
        text = "".join(_text(choice["delta"]) for choice in choices)
        self.kind = "cut" if errors else "stream"
        if not errors:
            self._judge_text(text)
        elif text.find(self.ask.marker) not in {-1, 0, 10}:  # 10: behind the `{"text": "` of a tool call
            self.wrong.append(f"somebody else's half: {text[:60]!r}")

    def _judge_text(self, text: str) -> None:
        if text.startswith("{"):
            text = json.loads(text)["text"]
        found = said(text)
        if found is None or found[0] != self.ask.marker:
            self.wrong.append(f"not its whole own answer: {text[:60]!r} ({len(text)} characters)")
        else:
            self.generation = found[1]


def _text(message: dict[str, Any]) -> str:
    calls = message.get("tool_calls") or ()
    return (message.get("content") or "") + "".join(call["function"]["arguments"] for call in calls)


class Line:
    """One client and its connection, which it may use for several requests."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._reader: asyncio.StreamReader
        self._writer: asyncio.StreamWriter | None = None

    async def ask(self, ask: Ask) -> Outcome:
        """Send one request and read its answer, or hang up as planned."""
        outcome = Outcome(ask)
        try:
            async with asyncio.timeout(PATIENCE_S):
                await self._ask(ask, outcome)
        except Left:
            outcome.kind = "left"
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError, LookupError) as exc:
            outcome.wrong.append(f"{type(exc).__name__}: {exc}"[:200])
        if outcome.kind in {"left", "lost"} or not ask.keeps:
            self.close(hard=ask.keeps)
        return outcome

    async def _ask(self, ask: Ask, outcome: Outcome) -> None:
        body = ask.body()
        head = (
            f"POST {CHAT} HTTP/1.1\r\nhost: soak\r\nauthorization: Bearer {KEY}\r\ncontent-type: application/json\r\n"
        )
        await self._send(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body, ask.leave)
        if ask.leave is not Leave.LATER:
            await self._answer(ask, outcome)
            return
        try:
            async with asyncio.timeout(ask.leave_at * LATER_SPAN_S):
                await self._answer(ask, outcome)
        except TimeoutError:
            raise Left from None

    async def _send(self, request: bytes, leave: Leave) -> None:
        if self._writer is None:
            self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)
        self._writer.write(request[: len(request) // 2] if leave is Leave.HALF_SENT else request)
        await self._writer.drain()
        if leave in {Leave.HALF_SENT, Leave.SENT}:
            raise Left

    async def _answer(self, ask: Ask, outcome: Outcome) -> None:
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = head[:-4].split("\r\n")
        named = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        outcome.status, outcome.request_id = int(first.split(" ")[1]), named["x-troy-request-id"]
        body = bytearray()
        async for part in self._parts(named):
            body += part
            if ask.leave is Leave.READING and len(body) > ask.leave_at * READ_SPAN:
                raise Left
        outcome.judge(bytes(body))

    async def _parts(self, named: dict[str, str]) -> AsyncIterator[bytes]:
        if "content-length" in named:
            yield await self._reader.readexactly(int(named["content-length"]))
            return
        if named.get("transfer-encoding") != "chunked":
            raise ValueError("an answer without framing")
        while size := int(await self._reader.readuntil(b"\r\n"), 16):
            yield (await self._reader.readexactly(size + 2))[:-2]
        await self._reader.readexactly(2)

    def close(self, *, hard: bool = False) -> None:
        """Hang up, *hard* with a reset."""
        writer, self._writer = self._writer, None
        if writer is None:
            return
        if hard:
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        writer.close()
