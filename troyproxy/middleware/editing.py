"""Edits one answer on its way out: event streams frame by frame, JSON whole, everything else untouched.

Which of them it is, the answer's own head tells, not the request: apps stream unasked, and answer streams with JSON
errors. A compressed answer cannot be read, so it passes as it is.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Final

from troyproxy.middleware.bodies import BodyEditor, EditBody
from troyproxy.middleware.frames import EditFrames, FrameEditor
from troyproxy.proxy.answers import Message, Send
from troyproxy.proxy.call import Call

PLAIN: Final = frozenset({b"", b"identity"})


class AnswerEditor:
    """A `Send` for one response."""

    __slots__ = ("_body", "_call", "_editor", "_frames", "_send", "_spares")

    def __init__(
        self,
        call: Call,
        send: Send,
        frames: EditFrames,
        body: EditBody,
        spares: Callable[[], bool] = lambda: False,
    ) -> None:
        """*spares*: whether a JSON body needs no look, as known when its head comes."""
        self._call, self._send = call, send
        self._frames, self._body, self._spares = frames, body, spares
        self._editor = send

    def __call__(self, message: Message) -> Awaitable[None]:
        if message["type"] == "http.response.start":
            self._editor = self._chosen(message.get("headers", ()))
        editor = self._editor
        return editor(message)

    def _chosen(self, headers: Iterable[tuple[bytes, bytes]]) -> Send:
        kind = b""
        for name, value in headers:
            field = name.lower()
            if field == b"content-type":
                kind = value.strip().lower()
            elif field == b"content-encoding" and value.strip().lower() not in PLAIN:
                return self._send
        if kind.startswith(b"text/event-stream"):
            return FrameEditor(self._call, self._send, self._frames)
        return BodyEditor(self._send, self._body) if b"json" in kind and not self._spares() else self._send
