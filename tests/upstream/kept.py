"""Scripts of a server that keeps a connection, for the tests of what may become of it while nobody asks."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from tests.upstream.loopback import Connection, Handler, Rig, read

ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
Script = Callable[[Connection], Awaitable[None]]


async def serve(conn: Connection) -> None:
    while True:
        await conn.request()
        await conn.write(ANSWER)


def kept_then(*scripts: Script) -> Handler:
    """Answer the first request; the second one on that connection, and then each new connection, meets a script."""

    async def handle(conn: Connection) -> None:
        number = conn.log.connections
        if number == 1:
            await conn.request()
            await conn.write(ANSWER)
        await scripts[min(number, len(scripts)) - 1](conn)

    return handle


async def warmed(rig: Rig) -> Rig:
    """One request is through, and its connection idle."""
    await read(await rig.upstream.send(rig.request()))
    return rig
