"""Edits the SSE frames of an answer on their way out. Whole frames inside the gateway; framed here when alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from troyproxy.proxy.answers import Message, Send
from troyproxy.proxy.call import Call
from troyproxy.wire.sse import Frame, FrameDecoder

EditFrames = Callable[[list[Frame], bool], list[Frame]]
"""Takes the next whole frames and whether they are the last; returns what goes out instead."""


class FrameEditor:
    """A `Send` for one response. Answers that are no event stream pass untouched."""

    def __init__(self, call: Call, send: Send, edit: EditFrames) -> None:
        self._call, self._send, self._edit = call, send, edit
        self._decoder = FrameDecoder()
        self._editing = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._editing = is_event_stream(message.get("headers", ()))
            message = without_length(message) if self._editing else message
        elif message["type"] == "http.response.body" and self._editing:
            last = not message.get("more_body", False)
            edited = self._edit(self._frames(message, last=last), last)
            if not edited and not last:
                return
            self._call.frames = edited
            message = {**message, "body": b"".join(frame.raw for frame in edited)}
        await self._send(message)

    def _frames(self, message: Message, *, last: bool) -> list[Frame]:
        if self._call.framed:
            return self._call.frames
        return self._decoder.feed(message.get("body", b""), last=last)


def is_event_stream(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """Whether these response headers announce an event stream."""
    kind = next((value for name, value in headers if name.lower() == b"content-type"), b"")
    return kind.strip().lower().startswith(b"text/event-stream")


def without_length(message: Message) -> Message:
    """Return a response head without content-length: the body may change."""
    kept = [(name, value) for name, value in message.get("headers", ()) if name.lower() != b"content-length"]
    return {**message, "headers": kept}
