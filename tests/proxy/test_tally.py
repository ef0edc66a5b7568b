from __future__ import annotations

import pytest

from tests.proxy.rig import DONE, delta, event, finish, role, usage
from troyproxy.accounting.usage import Usage
from troyproxy.proxy.tally import MAX_CHOICES, Tally, choices_of, forwardable, is_ping
from troyproxy.wire.sse import Frame, FrameDecoder


def _frames(*parts: bytes) -> list[Frame]:
    return FrameDecoder().feed(b"".join(parts), last=True)


def _tally(*parts: bytes, whole: bool = False, choices: int = 1) -> Tally:
    tally = Tally(choices=choices)
    for frame in _frames(*parts):
        tally.see(frame, whole=whole)
    return tally


def test_plain_deltas_are_counted_and_not_decoded() -> None:
    tally = Tally()
    seen = [tally.see(frame, whole=False) for frame in _frames(delta("a"), delta("b"))]
    assert (seen, tally.events, tally.output) == ([None, None], 2, False)


def test_before_the_commit_everything_is_decoded() -> None:
    assert _tally(delta("a"), whole=True).output


@pytest.mark.parametrize("part", [finish(), usage(), event({"error": {"message": "x"}})])
def test_what_may_end_the_stream_is_decoded(part: bytes) -> None:
    (frame,) = _frames(part)
    assert Tally().see(frame, whole=False) is not None


def test_several_choices_are_decoded_so_that_all_are_known() -> None:
    tally = _tally(delta("a"), delta("b", 1), finish(), choices=2)
    assert not tally.finished


def test_a_stream_is_finished_when_each_choice_it_showed_is() -> None:
    assert _tally(delta("a"), delta("b", 1), finish(), finish(1), choices=2).finished


def test_a_stream_without_a_finish_reason_is_not_finished() -> None:
    assert not _tally(role(), delta("a"), whole=True).finished


def test_the_end_mark_is_seen_and_is_no_event() -> None:
    tally = _tally(DONE)
    assert (tally.done, tally.events) == (True, 0)


def test_bogus_lines_are_counted() -> None:
    assert _tally(b"data: : keepalive\n\n", b"data: [1]\n\n").dropped == 2


def test_usage_is_the_fullest_report() -> None:
    assert _tally(usage(10, 1), usage(10, 2)).usage == Usage(10, 2)


def test_malformed_json_is_noted_unless_the_stream_was_cut_in_it() -> None:
    assert (_tally(b"data: {oops\n\n", whole=True).malformed, _tally(b"data: {oops", whole=True).malformed) == (
        True,
        False,
    )


def test_a_cut_event_counts_for_nothing_and_a_whole_one_counts() -> None:
    assert (_tally(b"data: {oops").events, _tally(delta("a")[:-2]).events) == (0, 1)


@pytest.mark.parametrize(
    ("raw", "ping", "forward"),
    [
        (b": hm\n\n", True, True),
        (b'event: ping\ndata: {"type":"ping"}\n\n', True, False),
        (b"data: {}\n\n", True, False),
        (b"data:\n\n", True, False),
        (b"data: junk\n\n", False, False),
        (b"data: [DONE]\n\n", False, True),
        (b"retry: 3000\nid: 7\n\n", True, False),
        (b": hm\nid: 7\n\n", True, False),
        (b": hm\r: ho\r\r", True, True),
        (b"event: ping\n\n", True, False),
        (b'data:  {"a":1}\n\n', False, True),
    ],
)
def test_what_keeps_a_connection_alive_and_what_may_be_forwarded(raw: bytes, ping: bool, forward: bool) -> None:
    (frame,) = _frames(raw)
    assert (is_ping(frame), forwardable(frame)) == (ping, forward)


@pytest.mark.parametrize(
    ("count", "choices"),
    [
        (2, 2),
        (3.0, 3),
        (1, 1),
        (0, 1),
        (-4, 1),
        (True, 1),
        ("2", 1),
        (None, 1),
        (MAX_CHOICES + 1, 1),
        (float("nan"), 1),
    ],
)
def test_how_many_choices_a_request_asks_for(count: object, choices: int) -> None:
    assert choices_of({"n": count}) == choices
