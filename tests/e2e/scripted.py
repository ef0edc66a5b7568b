"""The scripted upstream: a raw HTTP/1.1 server in a process of its own that sends exactly the bytes it was told to.

It listens on two loopback ports. On the first it plays any number of providers: a base URL is
``http://127.0.0.1:PORT/<provider>/v1``, and what is answered is chosen by (provider, account key, model). On the second
it takes orders, one JSON object a line (`World.obey`). It prints both ports and leaves when its standard input ends.
`upstreams.py` drives it; what a reply and a step are is written there.
"""

from __future__ import annotations

import asyncio
import base64
import json
import socket
import struct
import sys
import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from tests.e2e import shapes

TICK_S: Final = 0.005
READ_GAP_S: Final = 0.004
"""After each write, so that one write is one network read at the other end."""
HEAD_LIMIT: Final = 1 << 18
RESET: Final = struct.pack("ii", 1, 0)
ANY: Final = "*"


class PeerLeft(Exception):
    """The gateway closed its connection before the reply was over."""


class Broken(Exception):
    """The script ends this connection."""


@dataclass(slots=True)
class Record:
    """One request as it came, and how it ended: open, done, left (by the gateway), cut (by the script)."""

    provider: str
    key: str
    model: str
    path: str
    headers: list[tuple[str, str]]
    body: str
    at: float
    state: str = "open"


@dataclass(slots=True)
class World:
    """Scripts, gates, what was seen."""

    scripts: dict[tuple[str, str, str], list[dict[str, Any]]] = field(default_factory=dict)
    gates: set[str] = field(default_factory=set)
    records: list[Record] = field(default_factory=list)
    connections: Counter[str] = field(default_factory=Counter)

    def obey(self, order: dict[str, Any]) -> object:
        """Carry out one order of the test and return its answer."""
        if order["do"] == "script":
            self.scripts[order["provider"], order["key"], order["model"]] = order["replies"]
        elif order["do"] == "open":
            self.gates.add(order["gate"])
        elif order["do"] == "requests":
            return [asdict(record) for record in self.records]
        elif order["do"] == "connections":
            return dict(self.connections)
        return None

    def reply(self, record: Record) -> dict[str, Any]:
        """Take the next reply from the most specific script; the last one of a script stays."""
        for key in (record.key, ANY):
            for model in (record.model, ANY):
                if replies := self.scripts.get((record.provider, key, model)):
                    return replies.pop(0) if len(replies) > 1 else replies[0]
        return {"say": "healthy"}


def said(reply: dict[str, Any], record: Record) -> dict[str, Any]:
    """Return the reply as bytes: a friendly answer, or an echo of the request, to whatever was asked."""
    body = json.loads(base64.b64decode(record.body) or b"{}")
    text = f"{record.model} by {record.provider}"
    if reply["say"] == "echo":
        text = json.dumps({"path": record.path, "headers": record.headers, "body": body})
    if record.path.endswith("/embeddings"):
        vector = {"object": "embedding", "index": 0, "embedding": [0.25, -0.5]}
        usage = {"prompt_tokens": 2, "total_tokens": 2}
        return _json(shapes.dumps({"object": "list", "data": [vector], "model": record.model, "usage": usage}))
    if not body.get("stream"):
        return _json(shapes.completion(text, model=record.model))
    events = [shapes.role(), shapes.delta(text), shapes.delta(finish="stop")]
    if (body.get("stream_options") or {}).get("include_usage"):
        events.append(shapes.usage_event())
    headers = [["content-type", "text/event-stream"]]
    steps = [["write", base64.b64encode(data).decode()] for data in (*events, shapes.DONE)]
    return {"status": 200, "headers": headers, "steps": steps, "framing": "chunked"}


def _json(body: bytes) -> dict[str, Any]:
    steps = [["write", base64.b64encode(body).decode()]]
    return {"status": 200, "headers": [["content-type", "application/json"]], "steps": steps, "framing": "length"}


class Connection:
    """One accepted connection: requests one after another until either side ends it."""

    def __init__(self, world: World, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._world, self._reader, self._writer = world, reader, writer
        self._framing = "length"

    async def serve(self) -> None:
        """Serve until the end. Raises IncompleteReadError, ConnectionError, PeerLeft, Broken."""
        while True:
            record = await self._request()
            self._world.records.append(record)
            try:
                await self._play(record)
                record.state = "done"
            except Broken:
                record.state = "cut"
                raise
            except (PeerLeft, ConnectionError):
                record.state = "left"
                raise
            if self._framing in {"close", "raw"}:
                return

    async def _request(self) -> Record:
        head = await self._reader.readuntil(b"\r\n\r\n")
        first, *lines = head[:-4].decode("latin-1").split("\r\n")
        pairs = [(name.lower(), value.strip()) for name, _, value in (line.partition(":") for line in lines)]
        named = dict(pairs)
        body = await self._reader.readexactly(int(named.get("content-length", "0")))
        path = first.split(" ")[1]
        key = named.get("authorization", "").removeprefix("Bearer ") or named.get("x-api-key", "")
        try:
            model = str(json.loads(body).get("model", ""))
        except (ValueError, AttributeError):
            model = ""
        coded = base64.b64encode(body).decode()
        return Record(path.split("/")[1], key, model, path, pairs, coded, time.time())

    async def _play(self, record: Record) -> None:
        reply = self._world.reply(record)
        if "say" in reply:
            reply = said(reply, record)
        self._framing = reply["framing"]
        await self._head(reply)
        for name, *values in reply["steps"]:
            await self._step(name, values)
        if self._framing == "chunked":
            await self._send(b"0\r\n\r\n")

    async def _head(self, reply: dict[str, Any]) -> None:
        if self._framing == "raw":
            return
        lines = [f"HTTP/1.1 {reply['status']} Scripted", *(f"{name}: {value}" for name, value in reply["headers"])]
        if self._framing == "length":
            size = sum(len(base64.b64decode(step[1])) for step in reply["steps"] if step[0] == "write")
            lines.append(f"content-length: {size}")
        elif self._framing == "chunked":
            lines.append("transfer-encoding: chunked")
        else:
            lines.append("connection: close")
        await self._send(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))

    async def _step(self, name: str, values: list[Any]) -> None:
        match name:
            case "write":
                await self._write(base64.b64decode(values[0]))
            case "pause":
                await self._pause(values[0])
            case "gate":
                await self._until(lambda: values[0] in self._world.gates)
            case "drip":
                while True:
                    await self._write(base64.b64decode(values[0]))
                    await self._pause(values[1])
            case "hang":
                await self._until(lambda: False)
            case _:
                self._end(name)

    def _end(self, name: str) -> None:
        if name == "reset":
            sock = self._writer.get_extra_info("socket")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        raise Broken

    async def _pause(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        await self._until(lambda: time.monotonic() >= deadline)

    async def _write(self, data: bytes) -> None:
        if not data:
            return
        framed = b"%x\r\n%b\r\n" % (len(data), data) if self._framing == "chunked" else data
        await self._send(framed)

    async def _send(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()
        await asyncio.sleep(READ_GAP_S)

    async def _until(self, true: Any) -> None:  # noqa: ANN401 - any predicate
        while not true():
            if self._reader.at_eof() or self._reader.exception() or self._writer.transport.is_closing():
                raise PeerLeft
            await asyncio.sleep(TICK_S)


async def main() -> None:
    """Serve until standard input ends."""
    world = World()

    async def upstream(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        world.connections.update(("accepted", "open"))
        try:
            await Connection(world, reader, writer).serve()
        except (asyncio.IncompleteReadError, ConnectionError, PeerLeft, Broken):
            pass
        finally:
            world.connections["open"] -= 1
            writer.close()

    async def control(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            writer.write(json.dumps(world.obey(json.loads(line))).encode() + b"\n")
            await writer.drain()
        writer.close()

    async with (
        await asyncio.start_server(upstream, "127.0.0.1", 0, limit=HEAD_LIMIT) as first,
        await asyncio.start_server(control, "127.0.0.1", 0, limit=1 << 28) as second,
    ):
        ports = [server.sockets[0].getsockname()[1] for server in (first, second)]
        sys.stdout.write(json.dumps(ports) + "\n")
        sys.stdout.flush()
        await asyncio.to_thread(sys.stdin.buffer.read)


if __name__ == "__main__":
    asyncio.run(main())
