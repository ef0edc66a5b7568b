from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.proxy.rig import DONE, delta, event, finish, role, usage
from troyproxy.accounting.usage import Usage
from troyproxy.proxy.tally import MAX_CHOICES, Tally, choices_of, forwardable, is_ping
from troyproxy.wire import chat
from troyproxy.wire.sse import Frame, FrameDecoder

REPORT: st.SearchStrategy[object] = st.none() | st.just({"prompt_tokens": 3, "completion_tokens": 2}) | st.just({})
DELTA: st.SearchStrategy[object] = st.sampled_from(
    [
        *({}, {"content": "x"}, {"content": 'of "usage"'}, {"tool_calls": [{}]}, {"reasoning": "y"}, None),
        *({"role": "assistant", "content": ""}, {"content": None}, {"content": [{"text": "x"}]}, {"images": [{}]}),
    ]
)
CHOICE = st.fixed_dictionaries(
    {},
    optional={
        "index": st.integers(-1, 2) | st.just("0"),
        "delta": DELTA,
        "finish_reason": st.sampled_from([None, "", "stop", 1]),
        "usage": REPORT,
        "message": st.sampled_from([None, {}, {"content": "m"}]),
        "text": st.sampled_from([None, "", "t"]),
    },
)
EVENT = st.fixed_dictionaries(
    {},
    optional={
        "choices": st.lists(CHOICE | st.none(), max_size=2) | st.none(),
        "error": st.sampled_from([None, "", "no", {}, {"message": "no"}]),
        "usage": REPORT | st.just("x"),
        "x_groq": st.none() | st.just({"id": "g"}) | st.fixed_dictionaries({"usage": REPORT}),
    },
)
TEXTS = EVENT.map(json.dumps) | st.sampled_from(["{}", "{oops", "[DONE]", "junk", '{"choices":[{"logprobs":NaN}]}'])
RAW = st.builds(
    lambda head, text, end: f"{head}data: {text}{end}".encode(),
    st.sampled_from(["", "", "", "event: ping\n", "event: x\n"]),
    TEXTS,
    st.sampled_from(["\n\n", "\n\n", "\r\n\r\n", ""]),
)


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


@given(st.lists(RAW, max_size=6), st.sampled_from([1, 2]), st.integers(1, 3))
def test_what_is_passed_on_at_a_glance_is_what_a_closer_look_passes(raws: list[bytes], choices: int, size: int) -> None:
    quick, close = Tally(choices=choices), Tally(choices=choices)
    for tally in (quick, close):
        tally.see(_frames(delta("a"))[0], whole=True)
    frames = [_frames(raw)[0] for raw in raws]
    for at in range(0, len(frames), size):
        passed = quick.pass_on(frames[at : at + size])
        for frame in frames[at : at + size]:
            close.see(frame, whole=False)
            assert not passed or forwardable(frame)
            if not passed:
                quick.see(frame, whole=False)
        if close.error is not None:  # it ends the stream
            break
    assert _state(quick) == _state(close)


@given(st.lists(RAW, max_size=4), st.sampled_from([1, 2]))
def test_a_beginning_that_is_read_at_a_glance_is_what_a_closer_look_sees(raws: list[bytes], choices: int) -> None:
    quick, close = Tally(choices=choices), Tally(choices=choices)
    for raw in raws:
        (frame,) = _frames(raw)
        event = close.see(frame, whole=True)
        if quick.opens(frame):
            assert isinstance(event, dict)
            assert chat.failed_call(event) is None
        else:
            quick.see(frame, whole=True)
        assert (_state(quick), quick._seen) == (_state(close), close._seen)
        if close.error is not None or close.malformed:  # then it never opens
            return


@pytest.mark.parametrize(
    ("raw", "output"),
    [(role(), False), (delta(""), False), (delta("a"), True), (event({"choices": [{"delta": {}}]}), False)],
)
def test_a_role_and_a_text_open_a_stream(raw: bytes, output: bool) -> None:
    tally = Tally()
    assert (tally.opens(_frames(raw)[0]), tally.output, tally.events) == (True, output, 1)


def _state(tally: Tally) -> tuple[object, ...]:
    told = (tally.usage, tally.error, tally.done, tally.events, tally.dropped, tally.malformed)
    return (*told, tally.finished, tally.output)


def test_before_there_was_output_nothing_is_passed_on_at_a_glance() -> None:
    tally = Tally()
    assert (tally.pass_on(_frames(delta("a"))), tally.events) == (False, 0)


def test_deltas_of_a_known_choice_are_passed_on_at_a_glance_even_with_a_null_usage() -> None:
    tally = _tally(delta("a"), whole=True)
    unused = event({"choices": [{"index": 0, "delta": {"content": "b"}, "finish_reason": None}], "usage": None})
    assert (tally.pass_on(_frames(delta("b"), unused)), tally.events) == (True, 3)


def test_one_frame_that_must_be_read_leaves_all_of_a_read_to_a_closer_look() -> None:
    tally = _tally(delta("a"), whole=True)
    assert (tally.pass_on(_frames(delta("b"), finish())), tally.events) == (False, 1)
