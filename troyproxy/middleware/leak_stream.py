"""Takes leaked tool calls out of one event stream: frames in, frames out. What is a leak, `leaks.filter` decides."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from troyproxy.leaks.filter import LeakFilter
from troyproxy.leaks.policy import Leak, Policy
from troyproxy.leaks.waiting import Out
from troyproxy.wire import json
from troyproxy.wire.deltas import plain_text
from troyproxy.wire.sse import Frame, encode_data, with_data


class LeakStream:
    """The state of one streamed answer; *tell* hears of each leak once."""

    def __init__(self, policy: Policy, tell: Callable[[Leak], None]) -> None:
        self._filter: LeakFilter[Frame] = LeakFilter(policy, tell)

    def edit(self, frames: list[Frame], *, last: bool) -> list[Frame]:
        """Return what goes out for *frames*; with *last* nothing stays behind."""
        out: list[Frame] = []
        for frame in frames:
            plain = plain_text(frame.data) if frame.data is not None else None
            if plain is None:
                out += self._take(frame)
            elif self._filter.skim(*plain):
                out.append(frame)
            else:
                found = self._filter.feed_text(*plain, frame, len(frame.raw), partial(_event, frame.data))
                out += map(_frame, found)
        if last:
            out += self._flush(done=False)
        return out

    def _take(self, frame: Frame) -> list[Frame]:
        if frame.is_done:
            return [*self._flush(done=True), frame]
        if frame.data is None:
            return [frame]  # comments may overtake what is held: they keep the connection alive and say nothing
        event = _decoded(frame.data)
        if event is None:
            return [*self._flush(done=False), frame]
        return [_frame(out) for out in self._filter.feed(event, frame, len(frame.raw))]

    def _flush(self, *, done: bool) -> list[Frame]:
        return [_frame(out) for out in self._filter.flush(done=done)]


def _frame(out: Out[Frame]) -> Frame:
    if out.event is None and out.item is not None:
        return out.item
    data = json.encode(out.event)
    return Frame(raw=encode_data(data), data=data) if out.item is None else with_data(out.item, data)


def _event(data: bytes | None) -> dict[str, object]:
    """Return the event of *data*, which was seen to be one."""
    event = json.decode(data or b"{}")
    return event if isinstance(event, dict) else {}


def _decoded(data: bytes) -> object | None:
    try:
        return json.decode(data)
    except json.MalformedJSON:
        return None
