"""The soak's upstream, a process of its own: `python -m tests.soak.upstream SEED`.

It plays every provider on one port, which it prints; what it answers is drawn from the seed, the marker in the request
and how often that marker has come. ``GET /report`` tells what came and what became of it.
"""

from __future__ import annotations

import asyncio
import json
import random
import socket
import struct
import sys
from collections import Counter
from dataclasses import asdict, dataclass
from typing import Final

import uvloop

from tests.soak import script
from tests.soak.plan import FAULT_SHARE, MARKER, generation

RESET: Final = struct.pack("ii", 1, 0)
HEAD_LIMIT: Final = 1 << 16


class Broken(Exception):
    """The script ended the connection, or the gateway did."""


@dataclass(slots=True)
class Seen:
    """One request as the upstream saw it."""

    marker: str
    request_id: str
    provider: str
    fault: str
    """Empty: none."""
    number: int
    """Of the generation."""
    state: str = "open"
    """``open``, ``done`` (all of the script was sent) or ``left`` (the gateway went away)."""
    reported: tuple[int, int] | None = None
    """Input and output tokens of the last report that was sent."""


class Upstream:
    """Everything that the process knows."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._times: Counter[str] = Counter()
        self._seen: list[Seen] = []
        self._open = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection until either side ends it."""
        self._open += 1
        try:
            while True:
                path, named, body = await _request(reader)
                if path == "/report":
                    await _send(writer, script.answer(self._report())[0])
                    continue
                seen, steps = self._draw(path, named, body)
                await _play(reader, writer, seen, steps)
        except (asyncio.IncompleteReadError, ConnectionError, Broken):
            pass
        finally:
            self._open -= 1
            writer.close()

    def _report(self) -> bytes:
        # This connection is none of the gateway's.
        return json.dumps({"open": self._open - 1, "seen": [asdict(it) for it in self._seen]}).encode()

    def _draw(self, path: str, named: dict[str, str], body: bytes) -> tuple[Seen, script.Steps]:
        found = MARKER.search(body.decode())
        if found is None:
            raise Broken
        marker, asked = found[0], json.loads(body)
        self._times[marker] += 1
        chance = random.Random(f"{self._seed}/{marker}/{self._times[marker]}")
        it = generation(chance, marker, len(self._seen), tools="tools" in asked)
        stream = asked.get("stream") is True
        fault = ""
        way: script.Way = script.streamed if stream else script.whole
        drawn = chance.random()
        if drawn < FAULT_SHARE:
            fault, way = chance.choice(list((script.STREAMED if stream else script.WHOLE).items()))
        elif stream and drawn > 0.97:
            way = chance.choice(list(script.NOISE.values()))
        seen = Seen(marker, named.get("x-request-id", ""), path.split("/")[1], fault, it.number)
        self._seen.append(seen)
        return seen, way(it)


async def _request(reader: asyncio.StreamReader) -> tuple[str, dict[str, str], bytes]:
    head = await reader.readuntil(b"\r\n\r\n")
    first, *lines = head[:-4].decode("latin-1").split("\r\n")
    named = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(named.get("content-length", "0")))
    return first.split(" ")[1], named, body


async def _play(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, seen: Seen, steps: script.Steps) -> None:
    """Carry out *steps*. Raises Broken where the connection ends with them, or before."""
    seen.state = "left"  # unless all of it is sent
    for step in steps:
        if isinstance(step, script.Wait):
            await asyncio.sleep(step.seconds)
        elif isinstance(step, script.End):
            seen.state = await _end(reader, writer, step.how)
            raise Broken
        else:
            if reader.at_eof() or writer.transport.is_closing():
                raise Broken
            await _send(writer, step)
            seen.reported = step.usage or seen.reported
    seen.state = "done"


async def _send(writer: asyncio.StreamWriter, step: script.Step) -> None:
    assert isinstance(step, script.Write)
    writer.write(step.data)
    await writer.drain()


async def _end(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, how: str) -> str:
    """End the connection, and return how that went."""
    if how == "hang":
        await reader.read(1)  # nothing comes but the end
        return "left"
    if how == "reset":
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    return "done"


async def main(seed: int) -> None:
    """Serve until standard input ends."""
    upstream = Upstream(seed)
    server = await asyncio.start_server(upstream.serve, "127.0.0.1", 0, limit=HEAD_LIMIT, backlog=512)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await asyncio.to_thread(sys.stdin.buffer.read)


if __name__ == "__main__":
    uvloop.run(main(int(sys.argv[1])))
