"""The trace prints one whole block per request, without secrets."""

from __future__ import annotations

import io

import pytest

from troyproxy.telemetry.trace import MAX_LINES, TraceObserver


class Writes(io.StringIO):
    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def write(self, text: str) -> int:
        self.count += 1
        return super().write(text)


def test_a_request_is_one_block() -> None:
    stream = io.StringIO()
    TraceObserver(stream).trace("req-1", ["combo1 → combo (priority)", "skip beta/m2: cooldown"])
    assert stream.getvalue() == "── req-1\n  combo1 → combo (priority)\n  skip beta/m2: cooldown\n"


def test_a_block_is_one_write() -> None:
    stream = Writes()
    TraceObserver(stream).trace("req-1", ["a", "b"])
    assert stream.count == 1


def test_no_stream_means_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    TraceObserver().trace("req-1", ["a"])
    assert capsys.readouterr().err == "── req-1\n  a\n"


def test_a_line_cannot_forge_a_block_nor_show_a_key() -> None:
    stream = io.StringIO()
    TraceObserver(stream).trace("req-1", ["a\n── req-2", "said: bad key sk-0123456789abcdef"])
    assert stream.getvalue() == "── req-1\n  a\\n── req-2\n  said: bad key ***\n"


def test_a_mask_of_the_caller_is_used() -> None:
    stream = io.StringIO()
    TraceObserver(stream, mask=lambda text: text.replace("hunter2", "***")).trace("req-1", ["is hunter2 right?"])
    assert "hunter2" not in stream.getvalue()


def test_a_long_story_is_cut() -> None:
    stream = io.StringIO()
    TraceObserver(stream).trace("req-1", ["a"] * (MAX_LINES + 7))
    assert stream.getvalue().endswith("  a\n  +7 more\n")


def test_a_narrow_stream_gets_escapes() -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")
    TraceObserver(stream).trace("req-1", [])
    assert raw.getvalue() == b"\\u2500\\u2500 req-1\n"


def test_a_closed_stream_hurts_nobody() -> None:
    stream = io.StringIO()
    stream.close()
    TraceObserver(stream).trace("req-1", ["a"])
    assert stream.closed
