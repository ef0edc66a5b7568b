"""Edits the JSON body of an answer: the head waits for the body, under a bound, and tells its true length."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from troyproxy.proxy.answers import Message, Send
from troyproxy.wire import json

LIMIT: Final = 32 << 20
"""Bytes of a JSON answer that are held to be edited; a longer one passes as it is."""

EditBody = Callable[[dict[str, object]], dict[str, object] | None]
"""Takes a decoded body; returns what goes out instead, or None when nothing changes."""


class BodyEditor:
    """A `Send` for one JSON response. What does not parse, or is no object, passes as it is."""

    def __init__(self, send: Send, edit: EditBody) -> None:
        self._send, self._edit = send, edit
        self._head: Message | None = None
        self._held: list[bytes] = []
        self._size = 0

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._head = message
        elif message["type"] == "http.response.body" and self._head is not None:
            await self._take(self._head, message)
        else:
            await self._pass(message)

    async def _take(self, head: Message, message: Message) -> None:
        self._held.append(message.get("body", b""))
        self._size += len(self._held[-1])
        more = message.get("more_body", False)
        if more and self._size <= LIMIT:
            return
        body = b"".join(self._held)
        edited = None if more else self._edited(body)
        self._head = None
        await self._send(head if edited is None else _with_length(head, len(edited)))
        await self._send({**message, "body": body if edited is None else edited})

    async def _pass(self, message: Message) -> None:
        """Send what is no part of a held body; a body that comes by another way (a file's path) is not read."""
        head, self._head = self._head, None
        if head is not None:
            await self._send(head)
            if self._held:
                await self._send({"type": "http.response.body", "body": b"".join(self._held), "more_body": True})
        await self._send(message)

    def _edited(self, body: bytes) -> bytes | None:
        try:
            value = json.decode(body)
        except json.MalformedJSON:
            return None
        edited = self._edit(value) if isinstance(value, dict) else None
        return json.encode(edited) if edited is not None else None


def _with_length(head: Message, length: int) -> Message:
    kept = [(name, value) for name, value in head.get("headers", ()) if name.lower() != b"content-length"]
    return {**head, "headers": [*kept, (b"content-length", str(length).encode())]}
