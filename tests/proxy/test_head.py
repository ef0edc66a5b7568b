from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.proxy.rig import DONE, delta, event, finish, role
from troyproxy.leaks.gate import GateVerdict
from troyproxy.proxy.head import MAX_STRAY, HeadState, StreamHead
from troyproxy.proxy.tally import Tally
from troyproxy.wire.sse import FrameDecoder

HELD, COMMIT, END, ERROR, REJECTED = HeadState


class Gate:
    """Answers from a list; remembers what it was asked."""

    def __init__(self, *verdicts: GateVerdict) -> None:
        self._verdicts = list(verdicts)
        self.fed = 0
        self.resets = 0

    def reset(self) -> None:
        self.resets += 1

    def feed(self, event: object, can_reject: bool, /) -> GateVerdict:
        del event, can_reject
        self.fed += 1
        return self._verdicts.pop(0)

    def judge(self, body: object, can_reject: bool, /) -> GateVerdict:
        del body, can_reject
        return GateVerdict.PASS


def _head(*gates: Gate, max_events: int = 64, max_bytes: int = 1 << 18) -> StreamHead:
    return StreamHead(Tally(), gates, max_events=max_events, max_bytes=max_bytes, can_reject=True)


def _take(head: StreamHead, *parts: bytes) -> list[HeadState]:
    return [head.take(frame) for frame in FrameDecoder().feed(b"".join(parts), last=True)]


@pytest.mark.parametrize(
    ("parts", "states"),
    [
        ([role(), delta("a")], [HELD, COMMIT]),
        ([role(), finish()], [HELD, COMMIT]),
        ([role(), DONE], [HELD, END]),
        ([DONE], [END]),
        ([b": hm\n\n", b"data: junk\n\n", b"data: {}\n\n", b"data:\n\n"], [HELD] * 4),
        ([event({"error": {"message": "x"}})], [ERROR]),
        ([b"data: {oops\n\n"], [ERROR]),
        ([role(), b"data: {oops"], [HELD, HELD]),
        ([event({"error": None, "choices": []})], [HELD]),
    ],
)
def test_a_head_waits_for_output(parts: Sequence[bytes], states: list[HeadState]) -> None:
    assert _take(_head(), *parts) == states


def test_only_events_are_held() -> None:
    head = _head()
    _take(head, b": hm\n\n", role(), b"data: junk\n\n", delta("a"))
    assert b"".join(frame.raw for frame in head.frames) == role() + delta("a")


def test_the_bound_of_events_commits() -> None:
    assert _take(_head(max_events=2), role(), role()) == [HELD, COMMIT]


def test_the_bound_of_bytes_commits() -> None:
    assert _take(_head(max_bytes=len(role()) + 1), role(), role()) == [HELD, COMMIT]


def test_a_waiting_gate_holds_output_and_outlasts_the_bounds() -> None:
    gate = Gate(GateVerdict.PENDING, GateVerdict.PENDING, GateVerdict.PASS)
    assert _take(_head(gate, max_events=1), delta("a"), delta("b"), delta("c")) == [HELD, HELD, COMMIT]


def test_a_comment_between_does_not_make_up_a_gates_mind() -> None:
    gate = Gate(GateVerdict.PENDING, GateVerdict.PASS)
    assert _take(_head(gate), delta("a"), b": hm\n\n", b"data: junk\n\n", delta("b")) == [HELD, HELD, HELD, COMMIT]


def test_every_gate_is_fed_and_one_rejection_is_enough() -> None:
    first, second = Gate(GateVerdict.REJECT), Gate(GateVerdict.PENDING)
    assert (_take(_head(first, second), delta("a")), second.fed) == ([REJECTED], 1)


def test_gates_begin_anew_with_each_attempt() -> None:
    gate = Gate()
    _head(gate)
    _head(gate)
    assert gate.resets == 2


def test_what_is_no_event_is_kept_within_a_bound() -> None:
    head = _head()
    _take(head, b"<html>\n\n", b": comment\n\n", b"x" * MAX_STRAY + b"\n\n", b"more\n\n")
    assert head.stray.startswith(b"<html>\n\nxxx")
    assert len(head.stray) <= 2 * MAX_STRAY
