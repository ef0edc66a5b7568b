"""Frames in, frames out: what is clean passes untouched, and the short ways drop just what the long ones do."""

from __future__ import annotations

import json
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.leaks.chunks import LEAK, WEATHER
from tests.middleware.apps import DONE, STOP, delta
from troyproxy.leaks.modes import LeakMode
from troyproxy.leaks.policy import Leak, Policy
from troyproxy.middleware import leak_stream
from troyproxy.middleware.leak_stream import LeakStream
from troyproxy.wire.sse import Frame, FrameDecoder

TEXTS: Final = st.lists(
    st.sampled_from(["Hello ", "<b>", "</b", "> and so\n", "<", LEAK, *LEAK[:24:3], LEAK[:12], LEAK[12:], " more"]),
    max_size=8,
)
BESIDE: Final = st.sampled_from([{}, {}, {}, {"usage": None}, {"timings": 3}, {"nonce": None}, {"error": None}])


def frames_of(*raw: bytes) -> list[Frame]:
    return FrameDecoder().feed(b"".join(raw), last=True)


def said(text: str, beside: object) -> bytes:
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": None}
    return b"data: " + json.dumps({"id": "c", "choices": [choice], **dict(beside)}).encode() + b"\n\n"  # type: ignore[call-overload]


def edited(frames: list[Frame], mode: LeakMode, size: int) -> tuple[bytes, list[Leak]]:
    told: list[Leak] = []
    stream = LeakStream(Policy(mode, WEATHER), told.append)
    parts = [frames[at : at + size] for at in range(0, len(frames), size)]
    out = [frame for part in parts for frame in stream.edit(part, last=False)]
    return b"".join(frame.raw for frame in [*out, *stream.edit([], last=True)]), told


def test_frames_that_all_pass_are_the_very_list() -> None:
    stream = LeakStream(Policy(LeakMode.AUTO, WEATHER), lambda _: None)
    stream.edit(frames_of(delta("Hello there. ")), last=False)
    frames = frames_of(delta("All "), delta("is <i>well</i> "))
    assert stream.edit(frames, last=False) is frames


def test_clean_text_follows_what_went_out_ahead_of_it() -> None:
    stream = LeakStream(Policy(LeakMode.AUTO, WEATHER), lambda _: None)
    stream.edit(frames_of(delta("Hello there. ")), last=False)
    frames = frames_of(b": hm\n\n", delta("All "), delta("is well. "))
    assert stream.edit(frames, last=False) == frames


def test_the_end_adds_what_was_held() -> None:
    stream = LeakStream(Policy(LeakMode.AUTO, WEATHER), lambda _: None)
    begun, held = frames_of(delta("Hello there. "), delta("<tool"))
    assert [stream.edit([begun, held], last=False), stream.edit([], last=True)] == [[begun], [held]]


@given(st.lists(st.tuples(TEXTS.map("".join), BESIDE), max_size=8), st.sampled_from(LeakMode), st.integers(1, 3))
def test_the_short_ways_drop_what_the_long_ones_drop(
    parts: list[tuple[str, object]], mode: LeakMode, size: int
) -> None:
    frames = frames_of(*(said(text, beside) for text, beside in parts), STOP, DONE)
    short = edited(frames, mode, size)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(leak_stream, "plain_text", lambda _: None)
        long = edited(frames, mode, size)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(leak_stream, "is_bare_text", lambda _: False)
        middle = edited(frames, mode, size)
    assert short == middle == long
