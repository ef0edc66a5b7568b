"""However the bytes of an answer are cut, it is the same answer; whatever they are, they are read or refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz_http import WORDS, check, pieces_of, run
from troyproxy.upstream.pooled.parser import ResponseParser

BODY = bytes(range(256)) * 3
HEADS = {
    "length": b"HTTP/1.1 200 OK\r\nx-a: 1\r\ncontent-length: %d\r\n\r\n" % len(BODY) + BODY,
    "chunked": b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n%x;e=1\r\n%b\r\n0\r\nt: 1\r\n\r\n"
    % (len(BODY), BODY),
    "close": b"HTTP/1.0 200 OK\r\n\r\n" + BODY,
    "informational": b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 E\r\nlink: x\r\n\r\n"
    b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(BODY) + BODY,
}


@pytest.mark.parametrize("answer", HEADS.values(), ids=HEADS)
def test_a_cut_anywhere_changes_nothing(answer: bytes) -> None:
    whole = run([answer])
    assert (whole.body, whole.complete) == (BODY, True)
    assert [run([answer[:at], answer[at:]]) for at in range(1, 120)] == [whole] * 119


@pytest.mark.parametrize("answer", HEADS.values(), ids=HEADS)
@given(places=st.binary(max_size=12))
def test_any_cuts_change_nothing(answer: bytes, places: bytes) -> None:
    assert run(pieces_of(answer, places)) == run([answer])


@pytest.mark.parametrize("answer", HEADS.values(), ids=HEADS)
def test_byte_by_byte_changes_nothing(answer: bytes) -> None:
    assert run([bytes([byte]) for byte in answer]) == run([answer])


@given(st.binary(min_size=9, max_size=60))
def test_bytes_of_any_sort_are_read_or_refused(data: bytes) -> None:
    assert check(data) is not None


@given(
    st.sampled_from(list(HEADS.values())), st.integers(0, 700), st.one_of(st.sampled_from(WORDS), st.binary(max_size=4))
)
def test_a_damaged_answer_is_read_or_refused_whatever_the_cuts(answer: bytes, at: int, damage: bytes) -> None:
    broken = answer[:at] + damage + answer[at + len(damage) :]
    one, two = run([broken]), run(pieces_of(broken, b"\x10\x40\xa0"))
    assert (one.status, one.headers, one.complete) == (two.status, two.headers, two.complete)


READS = (
    *(b"5\r\nhello\r\n", b"c\r\nhello, hello\r\n", b"10\r\nhello, hello, he\r\n", b"1\r\n\r\r\n", b"2\r\n\r\n\r\n"),
    *(b"C\r\nhello, hello\r\n", b"05\r\nhello\r\n", b"5;a=b\r\nhello\r\n", b"+5\r\nhello\r\n", b" 5\r\nhello\r\n"),
    *(b"5\r\nhello", b"\r\n", b"5", b"5\r\n", b"\r\nhello\r\n", b"hello\r\n", b"5\r\nhellox\r\n", b"5\r\nhello\n\n"),
    *(b";a", b"0\r\n\r\n", b"0\r\n", b"t: 5\r\n", b"\r", b"\n", b"5\r\nhello\r\n5\r\nhello\r\n", b"5\r\nhello\r\n5"),
)
CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"


@given(st.lists(st.sampled_from(READS), max_size=8), st.sampled_from([CHUNKED, CHUNKED + READS[0], CHUNKED[:-1]]))
def test_a_chunk_that_is_cut_by_hand_is_one_to_the_machine(reads: list[bytes], head: bytes) -> None:
    assert run([head, *reads], short=True) == run([head, *reads])


def test_chunks_that_come_alone_pass_by_the_machine() -> None:
    parser = ResponseParser()
    parser.feed(CHUNKED + READS[0])
    parser.take()
    assert [parser.only_chunk(read) for read in READS[:5]] == [read.partition(b"\r\n")[2][:-2] for read in READS[:5]]


@pytest.mark.parametrize("before", [b"", b"5\r\nhel", b"5\r\nhello\r\n5", b"5\r\nhello\r\n1\r\n", b"5\r\nhello"])
def test_nothing_is_cut_by_hand_while_something_is_open(before: bytes) -> None:
    parser = ResponseParser()
    parser.feed(CHUNKED[:-1] if not before else CHUNKED + before)
    parser.take()
    assert parser.only_chunk(READS[0]) == b""


def test_nothing_is_cut_by_hand_while_something_is_held() -> None:
    parser = ResponseParser()
    parser.feed(CHUNKED + READS[0])
    assert parser.only_chunk(READS[0]) == b""
