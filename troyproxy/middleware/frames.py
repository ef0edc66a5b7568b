"""Edits the SSE frames of an answer on their way out. Whole frames inside the gateway; framed here when alone."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Final

from troyproxy.proxy.answers import Message, Peer, Send
from troyproxy.proxy.call import Call
from troyproxy.proxy.lane import EditFrames, Lane, Laned, lane_of
from troyproxy.wire import chat
from troyproxy.wire.sse import Frame, FrameDecoder, StreamTooLong

_LENGTH: Final = len(b"content-length")


class FrameEditor(Laned):
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

    def lane(self, peer: Peer) -> Lane | None:
        """Return the lane from here: this edit, and what comes behind it."""
        lane = lane_of(self._send, peer)
        return None if lane is None else Lane((self._edit, *lane.edits), lane.put)

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
    headers = message.get("headers", ())
    for name, _ in headers:
        if len(name) == _LENGTH and name.lower() == b"content-length":
            return {**message, "headers": [pair for pair in headers if pair[0].lower() != b"content-length"]}
    return message


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
