"""Edits one answer on its way out: event streams frame by frame, JSON whole, everything else untouched.

Which of them it is, the answer's own head tells, not the request: apps stream unasked, and answer streams with JSON
errors. A compressed answer cannot be read, so it passes as it is.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Final

from troyproxy.middleware.bodies import BodyEditor, EditBody
from troyproxy.middleware.frames import FrameEditor
from troyproxy.proxy.answers import Message, Peer, Send
from troyproxy.proxy.call import Call
from troyproxy.proxy.lane import EditFrames, Lane, Laned, lane_of

PLAIN: Final = frozenset({b"", b"identity"})
_TYPE: Final = len(b"content-type")
_CODING: Final = len(b"content-encoding")


class HeadEditor(Laned):
    """A `Send` that edits the head, and nothing behind it."""

    __slots__ = ("_edit", "_send")

    def __init__(self, send: Send, edit: Callable[[Message], Message]) -> None:
        self._send, self._edit = send, edit

    def __call__(self, message: Message) -> Awaitable[None]:
        return self._send(self._edit(message) if message["type"] == "http.response.start" else message)

    def lane(self, peer: Peer) -> Lane | None:
        """Return the lane behind this."""
        return lane_of(self._send, peer)


class AnswerEditor(Laned):
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

    def lane(self, peer: Peer) -> Lane | None:
        """Return the lane of what was chosen by the head."""
        return lane_of(self._editor, peer)

    def _chosen(self, headers: Iterable[tuple[bytes, bytes]]) -> Send:
        kind = b""
        for name, value in headers:
            size = len(name)  # a look at it tells most names apart
            if size == _TYPE and name.lower() == b"content-type":
                kind = value.strip().lower()
            elif size == _CODING and name.lower() == b"content-encoding" and value.strip().lower() not in PLAIN:
                return self._send
        if kind.startswith(b"text/event-stream"):
            return FrameEditor(self._call, self._send, self._frames)
        return BodyEditor(self._send, self._body) if b"json" in kind and not self._spares() else self._send
