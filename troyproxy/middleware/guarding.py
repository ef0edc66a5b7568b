"""The guard over the answer to one call: a gate before the commit point, an editor of the answer after it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from troyproxy.errors import LeakedToolCall
from troyproxy.leaks.gate import GateVerdict, LeakGate
from troyproxy.leaks.policy import Leak, Policy
from troyproxy.leaks.whole import guarded
from troyproxy.middleware.editing import AnswerEditor, HeadEditor
from troyproxy.middleware.leak_mode import ModeChoice
from troyproxy.middleware.leak_rescue import rescuer
from troyproxy.middleware.leak_stream import LeakStream
from troyproxy.middleware.serving_gate import ServingGate
from troyproxy.proxy.answers import Message, Send
from troyproxy.proxy.call import Call
from troyproxy.proxy.lane import EditFrames
from troyproxy.wire.sse import Frame

Tell = Callable[[Call, Leak], None]


class Guarding:
    """Watches one answer, streamed or whole."""

    def __init__(self, call: Call, modes: ModeChoice, tell: Tell) -> None:
        """*tell* hears of each leak."""
        self._call, self._modes = call, modes
        self._tell = partial(_heard, call, tell)  # no method of ours: the gate would hold us, and we hold the gate
        self._refusal: LeakedToolCall | None = None
        """What the client gets instead of the answer; inside the gateway the walk sees to it."""
        self._gate = ServingGate(call, modes, self._tell)
        call.gates.append(self._gate)
        call.tool_turn = modes.offers
        call.rescue = rescuer(call, modes)

    def over(self, send: Send) -> Send:
        """Return the `send` for the layers inside."""
        named = HeadEditor(send, self._named)
        return AnswerEditor(self._call, named, self._frames(), self._body, lambda: self._gate.plain)

    @property
    def _policy(self) -> Policy | None:
        """What holds for the answer that has begun."""
        return self._modes.policy(self._call.ledger.provider)

    def _frames(self) -> EditFrames:
        stream: LeakStream | None = None
        begun = False

        def edit(frames: list[Frame], last: bool) -> list[Frame]:  # noqa: FBT001 -- the editor's protocol
            nonlocal stream, begun
            if stream is not None:
                return stream.edit(frames, last=last)
            if begun or all(frame.data is None for frame in frames):
                return frames
            begun, policy = True, self._policy  # comments may go out before anybody serves
            if policy is None:
                return frames
            stream = LeakStream(policy, self._tell)
            return stream.edit(frames, last=last)

        return edit

    def _body(self, body: dict[str, object]) -> dict[str, object] | None:
        policy = self._policy
        edited = guarded(body, policy, self._tell) if policy is not None else None
        if edited is None or policy is None or not self._call.foreign:
            return edited
        if LeakGate(policy).judge(body, can_reject=False) is not GateVerdict.REJECT:
            return edited
        self._refusal = LeakedToolCall("the model wrote its tool call as text")
        return self._refusal.envelope()

    def _named(self, head: Message) -> Message:
        """Name a leak in the *head*, where it is known by then and no walk has named it."""
        call = self._call
        if self._refusal is not None:
            head = {**head, "status": self._refusal.http_status}
        if not call.ledger.leak or call.quiet:
            return head
        headers = head.get("headers", ())
        if any(name == b"x-troy-leak" for name, _ in headers):
            return head
        return {**head, "headers": [*headers, (b"x-troy-leak", call.ledger.leak.encode("ascii"))]}


def _heard(call: Call, tell: Tell, leak: Leak) -> None:
    call.ledger.note_leak(leak.format, str(leak.action), choice=leak.choice)
    tell(call, leak)
