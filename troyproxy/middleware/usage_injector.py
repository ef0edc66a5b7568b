"""UsageInjector: streams always ask for usage; clients that did not ask never see it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from troyproxy.accounting.usage import Usage, fuller, read_usage
from troyproxy.middleware.bodies import BodyEditor
from troyproxy.middleware.frames import FrameEditor
from troyproxy.middleware.layer import MAX_BODY, ASGIApp, Layer
from troyproxy.proxy.answers import Send
from troyproxy.proxy.call import Call
from troyproxy.wire import chat, json
from troyproxy.wire.sse import Frame

OnUsage = Callable[[Usage], None]


class UsageInjector(Layer):
    """*on_usage* is called once per answer that reported usage; it must not raise and must not wait."""

    def __init__(self, app: ASGIApp, on_usage: OnUsage | None = None, *, max_body: int = MAX_BODY) -> None:
        super().__init__(app, max_body=max_body)
        self._on_usage = on_usage

    def decide(self, call: Call) -> None:
        call.usage_wanted = True
        if call.foreign and call.stream and not call.asked_usage:
            options = call.payload.get("stream_options")
            given = dict(options) if isinstance(options, Mapping) else {}
            call.edit({"stream_options": {**given, "include_usage": True}})

    def wrap(self, call: Call, send: Send) -> Send:
        if call.stream:
            return self._over_stream(call, send)
        return self._over_body(send) if self._on_usage is not None else send

    def _over_stream(self, call: Call, send: Send) -> Send:
        if call.asked_usage and self._on_usage is None:
            return send
        usage: Usage | None = None

        def edit(frames: list[Frame], last: bool) -> list[Frame]:  # noqa: FBT001 -- the editor's protocol
            nonlocal usage
            if self._on_usage is not None:
                usage = _fullest(usage, frames)
                if last and usage is not None:
                    self._on_usage(usage)
            return frames if call.asked_usage else [kept for kept in map(chat.drop_usage, frames) if kept is not None]

        return FrameEditor(call, send, edit)

    def _over_body(self, send: Send) -> Send:
        def look(body: dict[str, object]) -> None:
            usage = read_usage(body)
            if usage is not None and self._on_usage is not None:
                self._on_usage(usage)

        return BodyEditor(send, look)


def _fullest(usage: Usage | None, frames: list[Frame]) -> Usage | None:
    for frame in frames:
        if frame.data is not None and b'"usage"' in frame.data:
            try:
                usage = fuller(usage, read_usage(json.decode(frame.data)))
            except json.MalformedJSON:
                continue
    return usage
