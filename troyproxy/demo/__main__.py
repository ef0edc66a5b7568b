"""``python -m troyproxy.demo``: the demo provider as a server of its own, for tests and staging.

It prints one line, ``http://HOST:PORT/v1``, as soon as it accepts connections.
"""

from __future__ import annotations

import argparse
import asyncio
import socket
import sys
from collections.abc import Sequence

import uvicorn

from troyproxy.demo.app import demo_app


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve until a signal."""
    parser = argparse.ArgumentParser(prog="python -m troyproxy.demo", description="An OpenAI-shaped demo provider.")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0 = a free one (default)")
    parser.add_argument("--pace-ms", type=float, default=20.0, help="time a token takes (default 20)")
    options = parser.parse_args(arguments)
    with socket.create_server((options.host, options.port)) as listener:
        config = uvicorn.Config(
            demo_app(pace_s=options.pace_ms / 1000),
            lifespan="off",
            log_level="critical",  # a scripted cut is an exception, and no news
            timeout_graceful_shutdown=1,
        )
        asyncio.run(_serve(uvicorn.Server(config), listener))


async def _serve(server: uvicorn.Server, listener: socket.socket) -> None:
    host, port = listener.getsockname()[:2]
    sys.stdout.write(f"http://{host}:{port}/v1\n")  # the socket listens already: early connections wait in its queue
    sys.stdout.flush()
    await server.serve(sockets=[listener])


if __name__ == "__main__":
    main()
