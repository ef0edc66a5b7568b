"""What the gateway is compared to: the route that a good engineer writes by hand in front of one upstream.

It knows one upstream and its key, and keeps no books; it streams, and it closes what it opened.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
from httpx_aiohttp import AiohttpTransport
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route


def create_app() -> Starlette:
    """Return the app, for the upstream in BENCH_UPSTREAM."""
    url = os.environ["BENCH_UPSTREAM"] + "/v1/chat/completions"
    limits = httpx.Limits(max_connections=0)  # for aiohttp: no limit
    client = httpx.AsyncClient(transport=AiohttpTransport(limits=limits), timeout=httpx.Timeout(60))
    headers = {"authorization": "Bearer none", "content-type": "application/json"}

    async def chat(request: Request) -> Response:
        asked = client.build_request("POST", url, content=await request.body(), headers=headers)
        answer = await client.send(asked, stream=True)
        kind = answer.headers.get("content-type", "application/json")
        if kind.startswith("text/event-stream"):
            body = answer.aiter_raw()
            return StreamingResponse(
                body, answer.status_code, media_type=kind, background=BackgroundTask(answer.aclose)
            )
        return Response(await answer.aread(), answer.status_code, media_type=kind)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with client:
            yield

    return Starlette(routes=[Route("/v1/chat/completions", chat, methods=["POST"])], lifespan=lifespan)
