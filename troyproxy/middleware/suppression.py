"""Takes leaked tool calls out of one answer on its way to the client, streamed or whole."""

from __future__ import annotations

from collections.abc import Callable

from troyproxy.leaks.suppress import ActionKind, Fate, Leak, Outcome, StreamSuppressor, find_leaks, suppress_body
from troyproxy.middleware.bodies import BodyEditor
from troyproxy.middleware.frames import FrameEditor
from troyproxy.proxy.answers import Message, Send
from troyproxy.proxy.call import Call
from troyproxy.wire import json
from troyproxy.wire.sse import Frame, with_data

OnLeak = Callable[[Call, Leak], None]


def suppressing_stream(call: Call, send: Send, names: frozenset[str], on_leak: OnLeak | None) -> Send:
    """Return a `Send` for a streamed answer."""
    stream = _Stream(call, names, on_leak)
    return FrameEditor(call, _naming(call, send), stream.edit)


def suppressing_body(call: Call, send: Send, names: frozenset[str], on_leak: OnLeak | None) -> Send:
    """Return a `Send` for a whole answer."""

    def edit(body: dict[str, object]) -> dict[str, object] | None:
        for leak in find_leaks(body, names):
            _tell(call, leak, on_leak)
        return suppress_body(body, names)

    return BodyEditor(_naming(call, send), edit)


def _naming(call: Call, send: Send) -> Send:
    """Return a `Send` that names a leak in the head, where it is known by then."""

    async def send_named(message: Message) -> None:
        if message["type"] == "http.response.start":
            found = call.ledger.leak or next((f"{leak.format};{leak.action}" for leak in _held(call)), None)
            if found:
                message = {**message, "headers": [*message["headers"], (b"x-troy-leak", found.encode("ascii"))]}
        await send(message)

    return send_named


def _held(call: Call) -> list[Leak]:
    """The leaks that the gates saw before the commit point."""
    return [leak for gate in call.gates for leak in getattr(gate, "leaks", ())]


def _tell(call: Call, leak: Leak, on_leak: OnLeak | None) -> None:
    call.ledger.leak = f"{leak.format};{leak.action}"
    call.ledger.say(f"leak {leak.format} in choice {leak.choice}: {leak.action}")
    if on_leak is not None:
        on_leak(call, leak)


class _Stream:
    """The state of one streamed answer: the frames held back while their text is undecided."""

    def __init__(self, call: Call, names: frozenset[str], on_leak: OnLeak | None) -> None:
        self._call, self._on_leak = call, on_leak
        self._suppressor = StreamSuppressor(names)
        self._held: list[Frame] = []
        self._told = 0
        count = call.payload.get("n")
        self._choices = count if isinstance(count, int) else 1

    def edit(self, frames: list[Frame], last: bool) -> list[Frame]:  # noqa: FBT001 -- the editor's protocol
        out: list[Frame] = []
        for frame in frames:
            out += self._take(frame)
        if last:
            out += self._flush()
        return out

    def _take(self, frame: Frame) -> list[Frame]:
        if frame.is_done:
            return [*self._flush(), frame]
        event = None if frame.data is None or self._suppressor.settled(self._choices) else _decoded(frame.data)
        if event is None:
            return self._behind(frame)
        action = self._suppressor.feed(event, size=len(frame.raw))
        self._held.append(frame)
        return [] if action.kind is ActionKind.HOLD else self._release(action.edited)

    def _behind(self, frame: Frame) -> list[Frame]:
        """Comments may overtake what is held: they keep the connection alive and say nothing."""
        return [frame] if frame.data is None or not self._held else [*self._flush(), frame]

    def _flush(self) -> list[Frame]:
        return self._release(self._suppressor.flush().edited)

    def _release(self, outcomes: tuple[Outcome, ...]) -> list[Frame]:
        for leak in self._suppressor.leaks[self._told :]:
            _tell(self._call, leak, self._on_leak)
        self._told = len(self._suppressor.leaks)
        held, self._held = self._held, []
        if not outcomes:
            return held
        pairs = zip(held, outcomes, strict=True)
        return [kept for frame, outcome in pairs if (kept := _outcome(frame, outcome)) is not None]


def _outcome(frame: Frame, outcome: Outcome) -> Frame | None:
    if outcome is Fate.KEEP:
        return frame
    return with_data(frame, json.encode(outcome)) if isinstance(outcome, dict) else None


def _decoded(data: bytes) -> object | None:
    try:
        return json.decode(data)
    except json.MalformedJSON:
        return None
