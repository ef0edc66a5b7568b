"""What the parser takes, and what it refuses: httptools lets some of it through."""

from __future__ import annotations

import httptools
import pytest

from troyproxy.upstream.pooled.parser import (
    MAX_EXCESS,
    MAX_HEAD,
    MAX_HEADERS,
    MAX_LINE,
    Cut,
    ResponseParser,
)
from troyproxy.upstream.pooled.prelude import MAX_INFORMATIONAL, MAX_INFORMATIONAL_BYTES, Malformed

OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"transfer-encoding: chunked\r\n\r\n"


def read(*pieces: bytes, bodiless: bool = False) -> ResponseParser:
    parser = ResponseParser(bodiless=bodiless)
    for piece in pieces:
        parser.feed(piece)
    return parser


@pytest.mark.parametrize(
    ("answer", "body", "reusable"),
    [
        (OK + b"content-length: 5\r\n\r\nhello", b"hello", True),
        (OK + b"content-length: 0\r\n\r\n", b"", True),
        (OK + b"connection: close\r\ncontent-length: 5\r\n\r\nhello", b"hello", False),
        (OK + b"connection: x, Close\r\ncontent-length: 5\r\n\r\nhello", b"hello", False),
        (b"HTTP/1.0 200 OK\r\ncontent-length: 5\r\n\r\nhello", b"hello", False),
        (b"HTTP/1.0 200 OK\r\nconnection: keep-alive\r\ncontent-length: 5\r\n\r\nhello", b"hello", True),
        (CHUNKED + b"5\r\nhello\r\n1\r\n!\r\n0\r\n\r\n", b"hello!", True),
        (CHUNKED + b"5;a=b\r\nhello\r\n0\r\nx: y\r\n\r\n", b"hello", True),
        (b"HTTP/1.0 200 OK\r\nconnection: keep-alive\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n", b"", False),
        (b"HTTP/1.1 204 No Content\r\n\r\n", b"", True),
        (b"HTTP/1.1 304 Not Modified\r\ncontent-length: 5\r\n\r\n", b"", True),
        (b"HTTP/1.1 200\r\ncontent-length: 0\r\n\r\n", b"", True),
        (b"HTTP/1.1 100 Continue\r\n\r\n" + OK + b"content-length: 2\r\n\r\nok", b"ok", True),
        (b"HTTP/1.1 104 Upload\r\ncontent-length: 9\r\n\r\n" + OK + b"content-length: 2\r\n\r\nok", b"ok", True),
        (OK + b"content-length: 2\r\n\r\nokHTTP/1.1 200 OK\r\n\r\n", b"ok", False),
        (OK + b"content-length: 2\r\n\r\nok?", b"ok", False),
        (CHUNKED + b"2\r\nok\r\n0\r\n\r\nrest", b"ok", False),
        (b"HTTP/1.1 204 No Content\r\ncontent-length: 3\r\n\r\nabc", b"", False),
    ],
)
def test_an_answer_ends_where_its_head_says(answer: bytes, body: bytes, reusable: bool) -> None:
    parser = read(answer)
    assert (parser.take(), parser.complete, parser.reusable) == (body, True, reusable)


def test_bytes_behind_a_body_that_is_counted_are_not_of_it() -> None:
    parser = read(OK + b"content-length: 5\r\n\r\nhe", b"llo?")
    assert (parser.take(), parser.complete, parser.reusable) == (b"hello", True, False)


def test_bytes_that_come_later_still_end_the_connection() -> None:
    parser = read(OK + b"content-length: 2\r\n\r\nok", b"?")
    assert (parser.take(), parser.reusable) == (b"ok", False)


def test_the_answer_to_a_head_request_has_no_body() -> None:
    parser = read(OK + b"content-length: 5\r\n\r\n", bodiless=True)
    assert (parser.take(), parser.complete, parser.reusable) == (b"", True, True)


def test_a_body_behind_the_answer_to_a_head_request_ends_the_connection() -> None:
    parser = read(OK + b"content-length: 5\r\n\r\nhello", bodiless=True)
    assert (parser.take(), parser.complete, parser.reusable) == (b"", True, False)


def test_the_head_is_raw_pairs_in_lower_case() -> None:
    parser = read(b"HTTP/1.1 503 Busy\r\nX-A: 1 \t\r\nx-a:2\r\nX-B:\r\ncontent-length: 0\r\n\r\n")
    assert (parser.status, parser.headers) == (
        503,
        ((b"x-a", b"1"), (b"x-a", b"2"), (b"x-b", b""), (b"content-length", b"0")),
    )


@pytest.mark.parametrize("coding", [b"gzip", b"identity"])
def test_a_content_coding_is_noticed(coding: bytes) -> None:
    assert read(OK + b"Content-Encoding: " + coding + b"\r\ncontent-length: 0\r\n\r\n").coded


def test_a_body_without_length_ends_with_its_connection() -> None:
    parser = read(OK + b"\r\nhel", b"lo")
    before = parser.complete
    parser.end()
    assert (before, parser.take(), parser.complete, parser.reusable) == (False, b"hello", True, False)


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"HTTP/1.1 2",
        OK,
        OK + b"content-length: 5\r\n\r\nhell",
        CHUNKED + b"5\r\nhello\r\n",
        CHUNKED + b"5\r\nhello\r\n0\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n",
    ],
)
def test_what_is_cut_is_never_complete(answer: bytes) -> None:
    parser = read(answer) if answer else ResponseParser()
    with pytest.raises(Cut):
        parser.end()
    assert not parser.complete


@pytest.mark.parametrize(
    "answer",
    [
        *(b"SSH-2.0-OpenSSH\r\n", b"\r\n" + OK, b"\n" + OK, b"HTTP/2.0 200 OK\r\n", b"HTTP/0.9 200 OK\r\n", b"H2"),
        *(b"RTSP/1.1 200 OK\r\n", b"ICY 200 OK\r\n", b"HTTP/1.1  200 OK\r\n\r\n", b"HTTP/1.1 2000 OK\r\n\r\n"),
        *(
            b"HTTP/1.1 099 X\r\n\r\n",
            b"HTTP/1.1 20 X\r\n\r\n",
            b"HTTP/1.1 200 O\0K\r\n\r\n",
            b"HTTP/1.1 200 O\rK\r\n\r\n",
        ),
        *(
            b"HTTP/1.1 200 OK\nx: y\n\n",
            b"HTTP/1.1 101 Switching\r\nupgrade: x\r\n\r\n",
            b"HTTP/1.1 103 E\r\n x\r\n\r\n",
        ),
        *(OK + b"a: b\r\n c\r\n\r\n", OK + b"a : b\r\n\r\n", OK + b": b\r\n\r\n", OK + b"no colon\r\n\r\n"),
        *(OK + b"a: b\0c\r\n\r\n", OK + b"a: b\rc\r\n\r\n", OK + b"a: b\nc: d\r\n\r\n", OK + b"a\0: b\r\n\r\n"),
        *(OK + b"content-length: %b\r\n\r\nx" % value for value in (b"+1", b"-1", b"0x1", b"1 1", b"1, 1", b"", b"1;")),
        *(OK + b"content-length: 9" + b"9" * 30 + b"\r\n\r\n", OK + b"content-length: 1\r\nContent-Length: 1\r\n\r\nx"),
        *(
            OK + b"content-length: 1\r\ncontent-length: 2\r\n\r\nx",
            CHUNKED[:-2] + b"content-length: 5\r\n\r\n0\r\n\r\n",
        ),
        OK + b"content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        *(
            OK + b"transfer-encoding: %b\r\n\r\n0\r\n\r\n" % coding
            for coding in (
                b"gzip, chunked",
                b"chunked, gzip",
                b"identity",
                b"xchunked",
                b"chunked;q=1",
                b"",
                b"chunked,",
            )
        ),
        CHUNKED[:-2] + b"transfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        CHUNKED[:-2] + b"transfer-encoding: gzip\r\n\r\n0\r\n\r\n",
        *(
            CHUNKED + chunks
            for chunks in (
                *(b"3\nabc\r\n", b"3\r\nabc\n0\r\n", b"3 \r\nabc\r\n", b"0x3\r\nabc\r\n", b"-3\r\nabc\r\n", b"\r\nabc"),
                *(b"3\r\nabcd\r\n", b"f" * 17 + b"\r\n", b"3;\0\r\nabc\r\n", b"3;x\ny\r\nabc\r\n", b"g\r\n"),
                *(b"0\r\ncontent-length: 5\r\n\r\n", b"0\r\nno colon\r\n\r\n"),
            )
        ),
    ],
)
def test_what_is_no_strict_http_is_refused(answer: bytes) -> None:
    with pytest.raises(Malformed):
        read(answer)


@pytest.mark.parametrize(
    "pieces",
    [
        (OK, *(b"x-%d: y\r\n" % number for number in range(MAX_HEADERS + 2))),
        (OK, b"x: ", b"y" * (MAX_LINE + 1), b"\r\na: b\r\n\r\n"),
        (OK, b"x: ", *(b"y" * 10_000 for _ in range(MAX_HEAD // 10_000 + 1))),
        (OK, *(b"x-%d: " % number + b"y" * 30_000 + b"\r\n" for number in range(3)), b"\r\n"),
        (b"HTTP/1.1 100 Continue\r\n\r\n" * (MAX_INFORMATIONAL + 1),),
        (b"HTTP/1.1 103 E\r\nx: ", b"y" * MAX_INFORMATIONAL_BYTES),
        (b"HTTP/1.1 103 E\r\nx: " + b"y" * MAX_INFORMATIONAL_BYTES + b"\r\n\r\n",),
        (CHUNKED, b"5;", *(b"x" * 1000 for _ in range(MAX_EXCESS // 1000 + 1))),
        (CHUNKED, b"5\r\nhello\r\n0\r\n", *(b"t: " + b"x" * 1000 + b"\r\n" for _ in range(MAX_EXCESS // 1000 + 1))),
        (CHUNKED, *(b"1;" + b"x" * 100 + b"\r\na\r\n" for _ in range(MAX_EXCESS // 90))),
        (CHUNKED, *(b"0" * 1000 for _ in range(MAX_EXCESS // 1000 + 1))),
    ],
    ids=lambda pieces: pieces[0][:12].decode() + str(len(pieces)),
)
def test_what_is_without_measure_is_refused(pieces: tuple[bytes, ...]) -> None:
    with pytest.raises(Malformed):
        read(*pieces)


def test_chunks_of_one_byte_are_no_excess() -> None:
    parser = read(CHUNKED, *(b"1\r\na\r\n" for _ in range(MAX_EXCESS)), b"0\r\n\r\n")
    assert (len(parser.take()), parser.complete) == (MAX_EXCESS, True)


def test_long_policies_are_taken() -> None:
    parser = read(OK + b"csp: " + b"x" * 20_000 + b"\r\ncontent-length: 0\r\n\r\n")
    assert parser.complete


def test_what_came_before_a_fault_stays() -> None:
    parser = read(CHUNKED + b"5\r\nhello\r\n")
    with pytest.raises(Malformed):
        parser.feed(b"zz\r\n")
    assert parser.take() == b"hello"


def test_a_refusal_names_a_rule_and_nothing_of_the_peer() -> None:
    with pytest.raises(Malformed) as caught:
        read(OK + b"s3cret\0: s3cret\r\n\r\n")
    assert "s3cret" not in str(caught.value)


def test_the_whole_body_is_known_until_a_part_is_taken() -> None:
    parser = read(CHUNKED + b"1\r\na\r\n1\r\nb\r\n")
    early = parser.whole()
    parser.feed(b"0\r\n\r\n")
    assert (early, parser.whole(), parser.take(), parser.whole()) == (None, b"ab", b"ab", None)


def test_an_empty_body_is_whole_too() -> None:
    assert read(b"HTTP/1.1 204 N\r\n\r\n").whole() == b""


def test_a_parser_that_is_done_with_is_no_circle() -> None:
    parser = read(CHUNKED + b"5\r\nhello\r\n")
    parser.stop()
    assert (parser._machine, parser.held, parser.body) == (None, 0, [])


def test_httptools_is_strict_where_this_relies_on_it() -> None:
    """Its own leniency would be ours."""
    for answer in (OK + b"a: b\r\n c\r\n\r\n", OK + b"content-length: 1\r\ncontent-length: 1\r\n\r\nx"):
        with pytest.raises(httptools.HttpParserError):
            httptools.HttpResponseParser(object()).feed_data(answer)
