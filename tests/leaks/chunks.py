"""Chat chunks for the tests of this folder, and a caller that holds frames as a middleware does."""

from __future__ import annotations

from typing import Any

from troyproxy.leaks.suppress import Action, ActionKind, Fate, StreamSuppressor

Event = dict[str, Any]


def chunk(content: str | None = None, index: int = 0, finish: str | None = None, **delta: object) -> Event:
    """One chunk with one choice."""
    body = delta if content is None else {**delta, "content": content}
    return {"id": "c", "choices": [{"index": index, "delta": body, "finish_reason": finish}]}


USAGE: Event = {"id": "c", "choices": [], "usage": {"total_tokens": 5}}
CALL: list[Event] = [{"index": 0, "id": "call_1", "type": "function", "function": {"name": "get_weather"}}]


class Client:
    """Feeds events to a suppressor and keeps what would have been sent, in order."""

    def __init__(self, names: frozenset[str]) -> None:
        """*names* are the declared tools."""
        self.suppressor = StreamSuppressor(names)
        self.held: list[Event] = []
        self.sent: list[Event] = []

    def run(self, events: list[Event]) -> list[Event]:
        """Send *events* and the end of the stream; return what the client received."""
        for event in events:
            self.take(event)
        self._act(self.suppressor.flush(), self.held)
        return self.sent

    def take(self, event: Event) -> ActionKind:
        """Send one event and return what was decided."""
        action = self.suppressor.feed(event, size=len(str(event)))
        self.held.append(event)
        if action.kind is not ActionKind.HOLD:
            self._act(action, self.held)
        return action.kind

    def content(self, index: int = 0) -> str:
        """Return the text of one choice as the client sees it."""
        choices = [choice for event in self.sent for choice in event["choices"] if choice["index"] == index]
        return "".join(choice["delta"].get("content") or "" for choice in choices)

    def _act(self, action: Action, frames: list[Event]) -> None:
        outcomes = action.edited if action.kind is ActionKind.EDIT else (Fate.KEEP,) * len(frames)
        for frame, outcome in zip(frames, outcomes, strict=True):
            if outcome is Fate.KEEP:
                self.sent.append(frame)
            elif isinstance(outcome, dict):
                self.sent.append(outcome)
        self.held = []
