"""Frames come out the same wherever the stream was cut, in linear time and within a bound."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troyproxy.wire.sse import (
    DONE,
    Frame,
    FrameDecoder,
    StreamTooLong,
    encode_comment,
    encode_data,
    with_data,
)

CHINESE = (
    'data: {"choices":[{"index":0,"delta":{"content":"北京🙂"},"finish_reason":null}]}\n\n'
    'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\r\n\r\n'
    ": ping\r\revent: x\ndata:a\rdata: b\n\r\nid: 7\n\n\r\n\n\r\r\ndata: [DONE]\n\n"
).encode()
TEXT = st.lists(
    st.sampled_from(
        [
            b"\r",
            b"\n",
            b"\r\n",
            b"\n\n",
            b"data:",
            b"data: ",
            b"data: {",
            b"data",
            b"event: e",
            b":",
            b" ",
            b"x",
            b"\xe5",
        ]
    )
).map(b"".join)


def decode(stream: bytes) -> list[Frame]:
    return FrameDecoder().feed(stream, last=True)


def reference(stream: bytes) -> list[bytes]:
    """Data of every event by a literal reading of the grammar; blocks without a data field give nothing."""
    found: list[bytes] = []
    data: list[bytes] = []
    for line in re.split(rb"\r\n|\n|\r", stream + b"\n\n"):
        name, _, value = line.partition(b":")
        if not line and data:
            found.append(b"\n".join(data))
            data = []
        elif name == b"data":
            data.append(value.removeprefix(b" "))
    return found


@pytest.mark.parametrize("cut", range(1, len(CHINESE)))
def test_a_cut_anywhere_changes_nothing(cut: int) -> None:
    decoder = FrameDecoder()
    assert decoder.feed(CHINESE[:cut]) + decoder.feed(CHINESE[cut:], last=True) == decode(CHINESE)


def test_a_read_of_whole_events_keeps_their_bytes() -> None:
    one, two = b'data: {"a":1}\n\n', b'data: {"b":2}\n\n'
    (frame,) = FrameDecoder().feed(one)
    assert frame.raw is one
    assert FrameDecoder().feed(one + two) == [Frame(one, one[6:-2]), Frame(two, two[6:-2])]


@pytest.mark.parametrize(
    "tail", [b"data: {", b"\n", b": hm\n\n", b"data: {\ndata: }\n\n", b"data: {}\r\n\r\n", b"data: [DONE]\n\n"]
)
def test_a_read_that_is_more_than_plain_events_is_cut_by_the_grammar(tail: bytes) -> None:
    stream = b'data: {"a":1}\n\n' + tail
    assert decode(stream) == decode(b": x\n\n" + stream)[1:]


def test_one_byte_per_read_changes_nothing() -> None:
    decoder = FrameDecoder()
    frames = [frame for at in range(len(CHINESE)) for frame in decoder.feed(CHINESE[at : at + 1])]
    assert frames + decoder.feed(b"", last=True) == decode(CHINESE)


@given(st.lists(TEXT))
def test_any_cuts_of_any_stream_give_the_same_frames(chunks: list[bytes]) -> None:
    decoder = FrameDecoder()
    frames = [frame for chunk in chunks for frame in decoder.feed(chunk)]
    assert frames + decoder.feed(b"", last=True) == decode(b"".join(chunks))


@given(TEXT)
def test_the_data_is_what_the_grammar_says(stream: bytes) -> None:
    assert [frame.data for frame in decode(stream) if frame.data is not None] == reference(stream)


@given(TEXT)
def test_nothing_is_lost_and_only_a_missing_end_is_added(stream: bytes) -> None:
    frames = decode(stream)
    raw = b"".join(frame.raw for frame in frames)
    assert raw == stream if all(frame.complete for frame in frames) else raw.startswith(stream)


@given(TEXT)
def test_every_frame_stands_alone(stream: bytes) -> None:
    for frame in decode(stream):
        assert [again.data for again in decode(frame.raw + DONE)] == [frame.data, b"[DONE]"]


def test_the_line_separators_of_unicode_end_no_line() -> None:
    data = 'data: {"a":"x\u2028y\x85z\u2029\x0b\x0c"}'.encode()
    assert [frame.data for frame in decode(data + b"\n\n")] == [data.removeprefix(b"data: ")]


@pytest.mark.parametrize(
    ("raw", "data"),
    [
        (b"data:x\n\n", b"x"),
        (b"data: x\n\n", b"x"),
        (b"data:  x\n\n", b" x"),
        (b"data\n\n", b""),
        (b"data:\n\n", b""),
        (b"data: a\ndata: b\n\n", b"a\nb"),
        (b"database: x\n\n", None),
        (b": ping\n\n", None),
        (b"retry: 3000\nid: 7\n\n", None),
        (b"\n", None),
    ],
)
def test_a_field_is_read_as_the_grammar_says(raw: bytes, data: bytes | None) -> None:
    assert decode(raw) == [Frame(raw, data)]


def test_the_event_name_is_read() -> None:
    assert decode(b"event: ping\ndata: {}\n\n")[0].event == b"ping"


def test_a_frame_without_data_is_a_comment() -> None:
    assert [frame.is_comment for frame in decode(b": a\n\ndata:\n\n")] == [True, False]


def test_done_is_seen_with_and_without_space() -> None:
    assert [frame.is_done for frame in decode(b"data:[DONE]\n\ndata: [DONE] \n\n: [DONE]\n\n")] == [True, True, False]


def test_events_that_end_in_lone_crs_do_not_wait_for_the_next_read() -> None:
    assert FrameDecoder().feed(b"data: x\r\r") == [Frame(b"data: x\r\r", b"x")]


def test_a_cr_that_may_be_half_a_crlf_waits_for_the_next_byte() -> None:
    decoder = FrameDecoder()
    assert decoder.feed(b"data: x\r\n\r") == []
    assert decoder.feed(b"\n") == [Frame(b"data: x\r\n\r\n", b"x")]


def test_a_byte_order_mark_is_taken_off_wherever_it_is_cut() -> None:
    decoder = FrameDecoder()
    assert [decoder.feed(b"\xef"), decoder.feed(b"\xbb")] == [[], []]
    assert decoder.feed(b"\xbfdata: x\n\n") == [Frame(b"data: x\n\n", b"x")]


def test_half_a_byte_order_mark_is_not_one() -> None:
    assert decode(b"\xef\xbb") == [Frame(b"\xef\xbb\n\n", None, complete=False)]


@pytest.mark.parametrize(
    ("stream", "raw"),
    [
        (b"data: x", b"data: x\n\n"),
        (b"data: x\n", b"data: x\n\n"),
        (b"data: x\r", b"data: x\r\r"),
        (b"data: x\r\n", b"data: x\r\n\n"),
    ],
)
def test_an_unterminated_last_event_is_returned_terminated_and_marked(stream: bytes, raw: bytes) -> None:
    assert decode(stream) == [Frame(raw, b"x", complete=False)]


def test_a_cr_at_the_end_of_input_ends_the_event() -> None:
    assert decode(b"data: x\n\r") == [Frame(b"data: x\n\r", b"x")]


def test_an_empty_stream_has_no_frames() -> None:
    assert decode(b"") == []


def test_an_unfinished_event_over_the_limit_is_refused() -> None:
    decoder = FrameDecoder(limit=16)
    decoder.feed(b"data: " + b"x" * 10)
    with pytest.raises(StreamTooLong, match="16 bytes"):
        decoder.feed(b"x")


def test_frames_before_the_one_that_is_too_long_are_not_lost() -> None:
    with pytest.raises(StreamTooLong) as caught:
        FrameDecoder(limit=16).feed(b"data: x\n\ndata: " + b"y" * 20 + b"\n\ndata: z\n\n")
    assert caught.value.frames == [Frame(b"data: x\n\n", b"x")]


def test_memory_is_given_back_after_a_too_long_event() -> None:
    decoder = FrameDecoder(limit=16)
    with pytest.raises(StreamTooLong):
        decoder.feed(b"data: " + b"y" * 20)
    assert not decoder._buffer


def test_the_search_goes_on_where_it_stopped() -> None:
    decoder = FrameDecoder()
    for _ in range(100):
        decoder.feed(b"x" * 1000)
    assert decoder._searched == 100_000 - 2


def test_data_becomes_one_event() -> None:
    assert encode_data(b'{"a":1}') == b'data: {"a":1}\n\n'


def test_done_is_encoded_data() -> None:
    assert encode_data(b"[DONE]") == DONE


@given(st.binary())
def test_any_data_survives_but_for_its_line_ends(data: bytes) -> None:
    assert decode(encode_data(data)) == [Frame(encode_data(data), re.sub(rb"\r\n|\r", b"\n", data))]


@given(st.text())
def test_any_comment_is_one_comment(text: str) -> None:
    assert decode(encode_comment(text)) == [Frame(encode_comment(text), None)]


def test_a_lone_surrogate_in_a_comment_is_replaced() -> None:
    assert encode_comment("a\ud83d") == b": a?\n\n"


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"data: x\n\n", b"data: y\n\n"),
        (b"data:x\r\n\r\n", b"data:y\r\n\r\n"),
        (b"data\n\n", b"data: y\n\n"),
        (b"event: e\ndata: x\nid: 7\ndata: z\n\n", b"event: e\ndata: y\nid: 7\n\n"),
        (b": c\n\n", b": c\ndata: y\n\n"),
        (b"\n", b"data: y\n\n"),
        (b"data: x", b"data: y\n\n"),
    ],
)
def test_other_data_leaves_the_rest_of_the_frame(raw: bytes, expected: bytes) -> None:
    (frame,) = decode(raw)
    assert with_data(frame, b"y").raw == expected


def test_a_leading_space_in_new_data_is_kept_in_a_tight_frame() -> None:
    (frame,) = decode(b"data:x\n\n")
    assert decode(with_data(frame, b" y").raw)[0].data == b" y"


@given(TEXT, st.binary())
def test_a_changed_frame_reads_back_as_itself(stream: bytes, data: bytes) -> None:
    for frame in decode(stream):
        changed = with_data(frame, data)
        (again,) = decode(changed.raw)
        assert (again.raw, again.data, again.event) == (changed.raw, changed.data, frame.event)
