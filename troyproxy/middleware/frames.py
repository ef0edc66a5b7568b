"""Edits the SSE frames of an answer on their way out. Whole frames inside the gateway; framed here when alone."""

from __future__ import annotations

from collections.abc import Callable

from troyproxy.proxy.answers import Message, Send
from troyproxy.proxy.call import Call
from troyproxy.wire import chat
from troyproxy.wire.sse import Frame, FrameDecoder, StreamTooLong

EditFrames = Callable[[list[Frame], bool], list[Frame]]
"""Takes the next whole frames and whether they are the last; returns what goes out instead."""


class FrameEditor:
    """A `Send` for one event stream. An event longer than the decoder's limit ends it with an error event."""

    def __init__(self, call: Call, send: Send, edit: EditFrames) -> None:
        self._call, self._send, self._edit = call, send, edit
        self._decoder = FrameDecoder()
        self._ended = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            await self._send(without_length(message))
        elif message["type"] != "http.response.body":
            await self._send(message)
        elif not self._ended:
            await self._forward(message)

    async def _forward(self, message: Message) -> None:
        last = not message.get("more_body", False)
        try:
            edited = self._edit(self._framed(message.get("body", b""), last=last), last)
        except StreamTooLong as exc:
            last = self._ended = True
            edited = [*self._edit(exc.frames, True), _too_long(self._call, str(exc))]
        self._call.frames = edited
        if edited or last:
            body = edited[0].raw if len(edited) == 1 else b"".join(frame.raw for frame in edited)
            await self._send({**message, "body": body, "more_body": not last})

    def _framed(self, body: bytes, *, last: bool) -> list[Frame]:
        """Return the frames of *body*; an error body that the walk passes on whole brings none along."""
        if self._call.framed and (self._call.frames or not body):
            return self._call.frames
        return self._decoder.feed(body, last=last)


def without_length(message: Message) -> Message:
    """Return a response head without content-length: the body may change."""
    kept = [(name, value) for name, value in message.get("headers", ()) if name.lower() != b"content-length"]
    return {**message, "headers": kept}


def _too_long(call: Call, message: str) -> Frame:
    event = chat.error_event(
        message=message,
        type="server_error",
        code="stream_too_large",
        request_id=call.request_id,
        attempts=1,
        retryable=False,
    )
    return Frame(raw=event, data=event.removeprefix(b"data: ").strip())
