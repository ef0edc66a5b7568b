"""Edits the SSE frames of an answer on their way out. Whole frames inside the gateway; framed here when alone."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from troyproxy.proxy.answers import Message, Send
from troyproxy.proxy.call import Call
from troyproxy.wire import chat
from troyproxy.wire.sse import Frame, FrameDecoder, StreamTooLong

EditFrames = Callable[[list[Frame], bool], list[Frame]]
"""Takes the next whole frames and whether they are the last; returns what goes out instead.

Where nothing is changed it returns the very list, and the message passes as it is."""


class FrameEditor:
    """A `Send` for one event stream. An event longer than the decoder's limit ends it with an error event."""

    __slots__ = ("_call", "_decoder", "_edit", "_ended", "_send")

    def __init__(self, call: Call, send: Send, edit: EditFrames) -> None:
        self._call, self._send, self._edit = call, send, edit
        self._decoder: FrameDecoder | None = None
        """From the first piece on that came without frames."""
        self._ended = False

    def __call__(self, message: Message) -> Awaitable[None]:
        if message["type"] == "http.response.body":
            call, edit, send = self._call, self._edit, self._send  # a callable in a local name is called faster
            frames = call.frames
            if frames and call.framed:  # inside the gateway: whole frames, nearly always to pass as they are
                last = not message.get("more_body")
                edited = edit(frames, last)
                return send(message) if edited is frames else self._put(message, edited, last)
            return self._frame(message)
        return self._send(without_length(message) if message["type"] == "http.response.start" else message)

    def _frame(self, message: Message) -> Awaitable[None]:
        """Frame what comes, also an error body that the walk passes on whole: it brings no frames along."""
        if self._ended:
            return _nothing()
        last = not message.get("more_body")
        decoder = self._decoder = self._decoder or FrameDecoder()
        try:
            frames = decoder.feed(message.get("body", b""), last=last)
        except StreamTooLong as exc:
            last = self._ended = True
            return self._put(message, [*self._edit(exc.frames, last), _too_long(self._call, str(exc))], last)
        return self._put(message, self._edit(frames, last), last)

    def _put(self, message: Message, edited: list[Frame], last: bool) -> Awaitable[None]:  # noqa: FBT001 -- as above
        self._call.frames = edited
        if not (edited or last):
            return _nothing()
        return self._send({**message, "body": b"".join([frame.raw for frame in edited]), "more_body": not last})


async def _nothing() -> None:
    """Nothing goes out."""


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
