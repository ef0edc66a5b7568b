"""Chat chunks for the tests of this folder, and a caller that holds frames as a middleware does."""

from __future__ import annotations

from typing import Any, Final

from troyproxy.leaks.asked import Asked
from troyproxy.leaks.filter import LeakFilter
from troyproxy.leaks.modes import LeakMode
from troyproxy.leaks.options import Options
from troyproxy.leaks.policy import Leak, Policy
from troyproxy.leaks.waiting import Out

Event = dict[str, Any]


def chunk(content: str | None = None, index: int = 0, finish: str | None = None, **delta: object) -> Event:
    """One chunk with one choice."""
    body = delta if content is None else {**delta, "content": content}
    return {"id": "c", "choices": [{"index": index, "delta": body, "finish_reason": finish}]}


USAGE: Event = {"id": "c", "choices": [], "usage": {"total_tokens": 5}}
CALL: list[Event] = [{"index": 0, "id": "call_1", "type": "function", "function": {"name": "get_weather"}}]


LEAK: Final = '<function=get_weather>{"city":"Oslo"}</function>'
WEATHER: Final = Asked(names=frozenset({"get_weather"}), schemas={"get_weather": {"type": "object"}})


class Client:
    """Feeds events to a filter and keeps what would have been sent, in order."""

    def __init__(
        self, mode: LeakMode = LeakMode.SUPPRESS, asked: Asked = WEATHER, options: Options | None = None
    ) -> None:
        """*asked* is what the request told."""
        self.told: list[Leak] = []
        policy = Policy(mode, asked, options or Options(), "req_1")
        self.filter: LeakFilter[Event] = LeakFilter(policy, self.told.append)
        self.sent: list[Event] = []

    def run(self, events: list[Event], *, done: bool = True) -> list[Event]:
        """Send *events* and the end of the stream; return what the client received."""
        for event in events:
            self.take(event)
        self._send(self.filter.flush(done=done))
        return self.sent

    def take(self, event: Event, size: int = 100) -> int:
        """Send one event, plain text by the shorter way, and return how many went out for it."""
        bare = not event.keys() - {"id", "choices"} if isinstance(event, dict) else False
        plain = plain_text(event)
        if plain is None:
            return self._send(self.filter.feed(event, event, size))
        if self.filter.skim(*plain):
            return self._send([Out(event)])
        if self.filter.swallows(plain[0]) and bare:
            self.filter.swallow(*plain)
            return 0
        found = self.filter.feed_text(*plain, event, size, lambda _: event)
        return self._send([Out(event)] if found is None else found)

    def content(self, index: int = 0) -> str:
        """Return the text of one choice as the client sees it."""
        return "".join(said(event, index).get("content") or "" for event in self.sent)

    def calls(self, index: int = 0) -> list[tuple[str, str]]:
        """Return the calls of one choice as the client adds them up."""
        found: dict[int, list[str]] = {}
        for event in self.sent:
            for call in said(event, index).get("tool_calls") or ():
                one = found.setdefault(call["index"], ["", ""])
                one[0] += call["function"].get("name") or ""
                one[1] += call["function"].get("arguments") or ""
        return [(name, arguments) for name, arguments in found.values()]

    def finish(self, index: int = 0) -> list[str]:
        """Return the finish reasons of one choice."""
        choices = (choice for event in self.sent for choice in event.get("choices") or ())
        return [each["finish_reason"] for each in choices if each["index"] == index and each.get("finish_reason")]

    def _send(self, outs: list[Out[Event]]) -> int:
        for out in outs:
            event = out.item if out.event is None else out.event
            assert event is not None
            self.sent.append(event)
        return len(outs)


def plain_text(event: Event) -> tuple[int, str] | None:
    """Return index and text of an event that brings nothing else."""
    choices = event.get("choices") if isinstance(event, dict) else None
    if not isinstance(choices, list) or len(choices) != 1 or not isinstance(choices[0].get("delta"), dict):
        return None
    plain = list(choices[0]["delta"]) == ["content"] and choices[0].get("finish_reason") is None
    return (choices[0]["index"], choices[0]["delta"]["content"]) if plain else None


def said(event: Event, index: int) -> dict[str, Any]:
    """Return the delta of one choice of an event."""
    for choice in event.get("choices") or ():
        if choice["index"] == index:
            delta: dict[str, Any] = choice["delta"]
            return delta
    return {}
