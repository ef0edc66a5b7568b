"""UsageInjector: streams always ask for usage; clients that did not ask never see it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from troyproxy.accounting.usage import Usage, fuller, read_usage
from troyproxy.middleware.editing import AnswerEditor
from troyproxy.middleware.layer import MAX_BODY, Layer, Wrap
from troyproxy.proxy.answers import Send
from troyproxy.proxy.call import Call
from troyproxy.proxy.stage import ASGIApp
from troyproxy.wire import chat, json
from troyproxy.wire.sse import Frame

USAGE: Final = b'"usage"'
OnUsage = Callable[[Usage], None]


class UsageInjector(Layer):
    """*on_usage* is called once per answer that reported usage; it must not raise and must not wait."""

    def __init__(self, app: ASGIApp, on_usage: OnUsage | None = None, *, max_body: int = MAX_BODY) -> None:
        super().__init__(app, max_body=max_body)
        self._on_usage = on_usage

    def decide(self, call: Call) -> Wrap | None:
        call.usage_wanted = True
        strip = call.stream and not call.asked_usage
        if call.foreign and strip:
            _ask(call)
        if not strip and self._on_usage is None:
            return None
        return lambda send: _over(call, send, self._on_usage, strip=strip)


def _ask(call: Call) -> None:
    """Ask somebody else's app for usage; inside the gateway each member's body is made with it.

    Options that are no object are the app's to refuse.
    """
    options = call.payload.get("stream_options")
    if options is None or isinstance(options, Mapping):
        call.edit({"stream_options": {**(options or {}), "include_usage": True}})


def _over(call: Call, send: Send, on_usage: OnUsage | None, *, strip: bool) -> Send:
    if on_usage is None:
        return AnswerEditor(call, send, _stripped, _unread)
    ear = _Ear(on_usage)

    def edit(frames: list[Frame], last: bool) -> list[Frame]:  # noqa: FBT001 -- the editor's protocol
        ear.hear(frames, last=last)
        return _stripped(frames, last) if strip else frames

    def look(body: dict[str, object]) -> None:
        ear.tell(read_usage(body))

    return AnswerEditor(call, send, edit, look)


def _unread(body: dict[str, object]) -> None:
    """Nobody asks for the usage of a whole answer."""


def _stripped(frames: list[Frame], last: bool) -> list[Frame]:  # noqa: ARG001, FBT001 -- the editor's protocol
    for frame in frames:
        if frame.raw.find(USAGE) >= 0:
            return [kept for kept in map(chat.drop_usage, frames) if kept is not None]
    return frames


class _Ear:
    """Listens for the usage of one answer and tells it once, at the end."""

    def __init__(self, on_usage: OnUsage) -> None:
        self._on_usage = on_usage
        self._usage: Usage | None = None
        self._told = False

    def hear(self, frames: list[Frame], *, last: bool) -> None:
        for frame in frames:
            if frame.data is not None and USAGE in frame.data:
                self._usage = fuller(self._usage, _usage_in(frame.data))
        if last or any(frame.is_done for frame in frames):
            self.tell(self._usage)

    def tell(self, usage: Usage | None) -> None:
        if usage is not None and not self._told:
            self._told = True
            self._on_usage(usage)


def _usage_in(data: bytes) -> Usage | None:
    try:
        return read_usage(json.decode(data))
    except json.MalformedJSON:
        return None
