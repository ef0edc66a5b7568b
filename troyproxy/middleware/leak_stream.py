"""Takes leaked tool calls out of one event stream: frames in, frames out. What is a leak, `leaks.filter` decides."""

from __future__ import annotations

from collections.abc import Callable

from troyproxy.leaks.filter import LeakFilter
from troyproxy.leaks.policy import Leak, Policy
from troyproxy.leaks.waiting import Out
from troyproxy.wire import json
from troyproxy.wire.deltas import is_bare_text, plain_text
from troyproxy.wire.sse import Frame, encode_data, with_data


class LeakStream:
    """The state of one streamed answer; *tell* hears of each leak once."""

    __slots__ = ("_filter", "_skim")

    def __init__(self, policy: Policy, tell: Callable[[Leak], None]) -> None:
        self._filter: LeakFilter[Frame] = LeakFilter(policy, tell)
        self._skim = self._filter.skim

    def edit(self, frames: list[Frame], *, last: bool) -> list[Frame]:
        """Return what goes out for *frames*, they themselves if all do; with *last* nothing stays behind."""
        out: list[Frame] | None = None
        skim, at = self._skim, -1
        for frame in frames:
            at += 1
            plain = None if frame.data is None else plain_text(frame.data)
            if plain is not None:
                index, text = plain
                if skim(index, text):  # as nearly every event of an answer
                    if out is not None:
                        out.append(frame)
                    continue
                edited = self._text(frame, index, text)
            else:
                edited = self._take(frame)
            if edited is not None:
                out = frames[:at] if out is None else out
                out += edited
            elif out is not None:
                out.append(frame)
        if last and (left := self._flush(done=False)):
            return [*(frames if out is None else out), *left]
        return frames if out is None else out

    def _text(self, frame: Frame, index: int, text: str) -> list[Frame] | None:
        """Take an event that brings nothing but *text* in one choice; None: it goes out as it is."""
        if self._filter.leaked and text and self._filter.swallows(index) and is_bare_text(frame.data or b""):
            self._filter.swallow(index, text)
            return []
        found = self._filter.feed_text(index, text, frame, len(frame.raw), _event)
        return None if found is None else [_frame(out) for out in found]

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


def _event(frame: Frame) -> dict[str, object]:
    """Return the event of *frame*, which was seen to be one."""
    event = json.decode(frame.data or b"")
    return event if isinstance(event, dict) else {}


def _decoded(data: bytes) -> object | None:
    try:
        return json.decode(data)
    except json.MalformedJSON:
        return None
