"""The demo provider as an ASGI app: ``POST /chat/completions``, ``/completions``, ``/embeddings``, ``GET /models``, and
what ``media.py`` knows: ``/audio/*``, ``/images/*``, ``/moderations``, ``/rerank``.

Every path is served under ``/v1`` as well. What a model name does is written in ``faults.py``; what is said, and when a
tool is called, in ``answers.py``. A cut is an exception: a server drops the connection on it, the in-process transport
reports a reset.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from typing import Final

from starlette.types import ASGIApp, Receive, Scope, Send

from troyproxy.demo.answers import answer_to
from troyproxy.demo.asks import Ask, ask_of
from troyproxy.demo.faults import Kind, Script, error_body, script_of
from troyproxy.demo.media import PATHS, Media, media_of
from troyproxy.demo.peer import Gone, Peer, TooLarge
from troyproxy.demo.provider import MODELS
from troyproxy.demo.shapes import (
    Reply,
    completion,
    dumps,
    embeddings,
    event,
    events,
    model_object,
    role_event,
    shown,
)

JSON: Final = "application/json"
SSE: Final = "text/event-stream; charset=utf-8"
HTML: Final = b"<!doctype html><html><body><h1>Not what you asked for</h1></body></html>"
POSTS: Final = frozenset({"/chat/completions", "/completions", "/embeddings"}) | PATHS


class Cut(ConnectionError):
    """The scripted loss of the connection."""


def demo_app(*, pace_s: float = 0.02, now: Callable[[], float] = time.time) -> ASGIApp:
    """Return the app. *pace_s* is the time a token takes, *now* gives unix seconds."""
    return DemoApp(pace_s, now)


class DemoApp:
    """See `demo_app`."""

    def __init__(self, pace_s: float, now: Callable[[], float]) -> None:
        self._pace_s = pace_s
        self._now = now
        self._numbers = itertools.count(1)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            raise NotImplementedError(f"the demo provider does not speak {scope['type']}")
        peer = Peer(receive, send)
        path = scope["path"].removeprefix("/v1").rstrip("/")
        try:
            if path in POSTS:
                await self._post(scope, path, peer)
            else:
                await self._get(scope, path, peer)
        except Gone:
            return
        except TooLarge:
            await _fail(peer, 413, {})

    async def _get(self, scope: Scope, path: str, peer: Peer) -> None:
        head, _, name = path.removeprefix("/").partition("/")
        if head != "models":
            await _fail(peer, 404, {})
        elif scope["method"] != "GET":
            await _fail(peer, 405, {"allow": "GET"})
        elif name:
            await peer.respond(200, dumps(model_object(name, int(self._now()))), {"content-type": JSON})
        else:
            models = [model_object(model, int(self._now())) for model in MODELS]
            await peer.respond(200, dumps({"object": "list", "data": models}), {"content-type": JSON})

    async def _post(self, scope: Scope, path: str, peer: Peer) -> None:
        if scope["method"] != "POST":
            await _fail(peer, 405, {"allow": "POST"})
            return
        ask = ask_of(await peer.body(), dict(scope["headers"]).get(b"content-type", b""))
        if ask is None:
            await _fail(peer, 400, {})
            return
        script = script_of(ask.model)
        await peer.pause(script.first_s)
        if script.kind in _INSTEAD:
            await _instead(script, ask, peer)
        elif path == "/embeddings":
            await _whole(dumps(embeddings(ask)), script, peer, {})
        elif (media := media_of(path, ask, int(self._now()))) is not None:
            await self._show(media, script, peer)
        else:
            await self._say(self._reply(scope, path, ask, script), script, peer)

    def _reply(self, scope: Scope, path: str, ask: Ask, script: Script) -> Reply:
        headers = shown({name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]})
        return Reply(
            ask,
            answer_to(ask, script.kind, headers),
            next(self._numbers),
            int(self._now()),
            legacy=path == "/completions",
            usage_every=script.usage_every,
        )

    async def _say(self, reply: Reply, script: Script, peer: Peer) -> None:
        headers = {"x-request-id": f"req_demo_{reply.number}"}
        if script.kind is Kind.ERROR_EVENT:
            await _error_event(reply, peer, headers)
        elif reply.ask.stream:
            await self._stream(reply, script, peer, headers)
        else:
            token_s = script.token_s or 0.0
            await peer.pause(token_s * reply.answer.tokens)
            await _whole(dumps(completion(reply)), script, peer, headers)

    async def _show(self, media: Media, script: Script, peer: Peer) -> None:
        headers = {"x-request-id": f"req_demo_{next(self._numbers)}"}
        if script.kind is Kind.ERROR_EVENT:
            await peer.respond(200, dumps(error_body(503)), {"content-type": JSON, **headers})
            return
        token_s = script.token_s or 0.0
        if len(media.pieces) == 1:
            await peer.pause(token_s)
            await _whole(media.pieces[0], script, peer, headers, media.kind)
            return
        await peer.start(200, {"content-type": media.kind, **headers})
        last = len(media.pieces) - 1
        for number, piece in enumerate(media.pieces):
            if script.cut_after is not None and number == min(script.cut_after, last):
                raise Cut
            await peer.pause(token_s if number else 0.0)
            await peer.write(piece)
        await peer.end()

    async def _stream(self, reply: Reply, script: Script, peer: Peer, headers: dict[str, str]) -> None:
        pace_s = self._pace_s if script.token_s is None else script.token_s
        await peer.start(200, {"content-type": SSE, **headers})
        for number, chunk in enumerate(events(reply)):
            if number == script.cut_after:
                raise Cut
            await peer.pause(pace_s if number else 0.0)
            await peer.write(chunk)
        await peer.end()


_INSTEAD: Final = frozenset({Kind.FAIL, Kind.HANG, Kind.EMPTY, Kind.GARBAGE})
"""Kinds that say nothing of their own."""


async def _instead(script: Script, ask: Ask, peer: Peer) -> None:
    if script.kind is Kind.FAIL:
        retry = {} if script.retry_after_s is None else {"retry-after": str(script.retry_after_s)}
        await _fail(peer, script.status, retry)
    elif script.kind is Kind.HANG:
        await peer.gone()
    elif script.kind is Kind.EMPTY:
        await peer.respond(200, b"", {"content-type": SSE if ask.stream else JSON})
    else:
        await peer.respond(200, HTML, {"content-type": "text/html; charset=utf-8"})


async def _fail(peer: Peer, status: int, headers: dict[str, str]) -> None:
    body = b"" if status == 304 else dumps(error_body(status))
    await peer.respond(status, body, {"content-type": JSON, **headers})


async def _whole(body: bytes, script: Script, peer: Peer, headers: dict[str, str], kind: str = JSON) -> None:
    if script.cut_after is None:
        await peer.respond(200, body, {"content-type": kind, **headers})
        return
    await peer.start(200, {"content-type": kind, "content-length": str(len(body)), **headers})
    await peer.write(body[: len(body) // 2])
    raise Cut


async def _error_event(reply: Reply, peer: Peer, headers: dict[str, str]) -> None:
    if not reply.ask.stream:
        await peer.respond(200, dumps(error_body(503)), {"content-type": JSON, **headers})
        return
    await peer.start(200, {"content-type": SSE, **headers})
    await peer.write(role_event(reply))
    await peer.write(event(error_body(503)))
    await peer.end()
