"""What the layers share: act on chat requests, pass everything else through, refuse by an ASGI answer.

A layer is one decision, `decide`: it looks at the request, may refuse it by raising a TroyError, and returns what
becomes of the answer (None: nothing). Inside the gateway the `Call` is there already. Standing alone the layer makes
one: it reads the body once, and afterwards delegates to the real `receive`, so that `http.disconnect` is still heard.
Layers that stand alone together share that one call.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Awaitable, Callable
from typing import Final

from troyproxy.errors import TroyError
from troyproxy.proxy.answers import Message, Receive, Send, send_error
from troyproxy.proxy.call import CHAT_PATH, Call, Scope, call_of, local_path, put_call, raw_headers
from troyproxy.proxy.intake import ClientLeft, decode_object, read_body, require_json
from troyproxy.proxy.stage import ASGIApp, Serve, Stage, straight, told

Wrap = Callable[[Send], Send]
"""Returns the `send` for the layers inside, given the one outside."""
Decide = Callable[[Call], Wrap | None]

MAX_BODY: Final = 32 << 20

FRAMING: Final = frozenset({b"content-length", b"content-encoding", b"transfer-encoding"})


class Layer(Stage):
    """Base of the layers that look at the body. *max_body* bounds it, in bytes, when the layer stands alone."""

    def __init__(self, app: ASGIApp, *, max_body: int = MAX_BODY) -> None:
        self.app, self._max_body = app, max_body
        within = app if isinstance(app, Layer) else None
        self.decisions: tuple[Decide, ...] = (self.decide, *(within.decisions if within is not None else ()))
        """Its own, and those of the layers right behind it: no layer has to hand the call to the next one."""
        self.behind: Serve = within.behind if within is not None else straight(app)
        """What comes behind all of them."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        call = call_of(scope)
        if call is not None:
            await self.serve(call, scope, receive, send)
        elif is_chat(scope):
            await self._stand_alone(scope, receive, send)
        else:
            await self.app(scope, receive, send)

    def decide(self, call: Call) -> Wrap | None:
        """Look at the request, and say what becomes of its answer. A TroyError raised here is its answer."""
        raise NotImplementedError

    def serve(self, call: Call, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Decide about *call*, and hand it on."""
        for decide in self.decisions:
            try:
                wrap = decide(call)
            except TroyError as error:
                return refuse(call, send, error)
            if call.foreign:
                scope = scope_for_app(scope, call, plain=wrap is not None)
            if wrap is not None:
                send = wrap(send)
        return self.behind(call, scope, receive, send)

    async def _stand_alone(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            call = await foreign_call(scope, receive, self._max_body)
        except TroyError as error:
            await send_error(send, error)
        except ClientLeft:
            return
        else:
            await self.serve(call, put_call(scope, call), replay(call, receive), send)


def is_chat(scope: Scope) -> bool:
    """Whether this is the one request that layers standing alone act on."""
    return scope["type"] == "http" and scope["method"] == "POST" and local_path(scope) == CHAT_PATH


async def foreign_call(scope: Scope, receive: Receive, limit: int) -> Call:
    """Return a call for a request to somebody else's app. Raises TroyError, ClientLeft."""
    headers = raw_headers(scope)
    require_json(headers)
    body = await read_body(receive, headers, limit=limit)
    return Call(
        request_id=new_request_id(),
        at=time.time(),
        started=time.monotonic(),
        route=CHAT_PATH,
        headers=headers,
        body=body,
        payload=decode_object(body),
        foreign=True,
    )


def new_request_id() -> str:
    """Return a fresh request id."""
    return f"req_{secrets.token_hex(12)}"


def replay(call: Call, receive: Receive) -> Receive:
    """Return a `receive` that gives the call's body as it is by then, once, and after that the real messages."""
    told = False

    async def receive_replayed() -> Message:
        nonlocal told
        if told:
            return await receive()
        told = True
        return {"type": "http.request", "body": call.body, "more_body": False}

    return receive_replayed


def scope_for_app(scope: Scope, call: Call, *, plain: bool) -> Scope:
    """Return *scope* with the length of the edited, decompressed body.

    *plain*: the answer will be read, so the app is not asked to compress it.
    """
    dropped = FRAMING | {b"accept-encoding"} if plain else FRAMING
    kept = [(name, value) for name, value in scope["headers"] if name.lower() not in dropped]
    return {**scope, "headers": [*kept, (b"content-length", str(len(call.body)).encode())]}


async def refuse(call: Call, send: Send, error: TroyError) -> None:
    """Answer *call* with *error*; the edge adds the story's headers."""
    call.ledger.refused = True
    call.ledger.say(f"refused: {error.http_status} {error.http_code}")
    await send_error(told(call, send), error, quiet=call.quiet)
