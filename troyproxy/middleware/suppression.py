"""Takes leaked tool calls out of one answer on its way to the client, streamed or whole."""

from __future__ import annotations

from collections.abc import Callable

from troyproxy.leaks.gate import LeakMode
from troyproxy.leaks.suppress import Leak, find_leaks, suppress_body
from troyproxy.middleware.editing import AnswerEditor
from troyproxy.middleware.frames import EditFrames
from troyproxy.middleware.leak_mode import ModeChoice
from troyproxy.middleware.leak_stream import LeakStream
from troyproxy.middleware.serving_gate import ServingGate
from troyproxy.proxy.answers import Message, Send
from troyproxy.proxy.call import Call
from troyproxy.wire.sse import Frame

Tell = Callable[[Call, Leak], None]


class Suppression:
    """The guard over the answer to one call: a gate before the commit point, a `Send` after it."""

    def __init__(self, call: Call, names: frozenset[str], modes: ModeChoice, tell: Tell) -> None:
        """*names* are the declared tools (`leaks.arming.armed`); *tell* hears of each leak."""
        self._call, self._names, self._modes, self._hear = call, names, modes, tell
        self._gate = ServingGate(call, names, modes)
        call.gates.append(self._gate)

    def over(self, send: Send) -> Send:
        """Return the `send` for the layers inside."""
        count = self._call.payload.get("n")
        stream = LeakStream(count if isinstance(count, int) else 1, self._names, self._tell)
        return AnswerEditor(self._call, self._naming(send), self._frames(stream), self._body)

    @property
    def _on(self) -> bool:
        """Whether the answer that has begun is under guard."""
        return self._modes.of(self._call.ledger.provider) is LeakMode.SUPPRESS

    def _frames(self, stream: LeakStream) -> EditFrames:
        on: bool | None = None

        def edit(frames: list[Frame], last: bool) -> list[Frame]:  # noqa: FBT001 -- the editor's protocol
            nonlocal on
            if on is None and any(frame.data is not None for frame in frames):
                on = self._on  # comments may go out before anybody serves
            return stream.edit(frames, last=last) if on else frames

        return edit

    def _body(self, body: dict[str, object]) -> dict[str, object] | None:
        if not self._on:
            return None
        for leak in find_leaks(body, self._names):
            self._tell(leak)
        return suppress_body(body, self._names)

    def _tell(self, leak: Leak) -> None:
        ledger = self._call.ledger
        ledger.leak = _named(leak)
        ledger.say(f"leak {leak.format} in choice {leak.choice}: {leak.action}")
        self._hear(self._call, leak)

    def _naming(self, send: Send) -> Send:
        """Return a `Send` that names a leak in the head, where it is known by then."""

        async def send_named(message: Message) -> None:
            if message["type"] == "http.response.start":
                found = self._call.ledger.leak or next(map(_named, self._gate.leaks), None)
                headers = message.get("headers", ())
                if found and not any(name == b"x-troy-leak" for name, _ in headers):
                    message = {**message, "headers": [*headers, (b"x-troy-leak", found.encode("ascii"))]}
            await send(message)

        return send_named


def _named(leak: Leak) -> str:
    return f"{leak.format};{leak.action}"
