"""Which trace a request belongs to."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troyproxy.wire.traceparent import TraceParent, child_id, parent_of, trace_id_of, written

TRACE = "0af7651916cd43dd8448eb211c80319c"
SPAN = "b7ad6b7169203331"


@pytest.mark.parametrize(
    "header",
    [
        f"00-{TRACE}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}-00",
        f" 00-{TRACE}-{SPAN}-01\t",
        f"cc-{TRACE}-{SPAN}-01-what-follows",
    ],
)
def test_the_trace_is_read(header: str) -> None:
    assert trace_id_of(header) == TRACE


@pytest.mark.parametrize(
    "header",
    [
        "",
        TRACE,
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE.upper()}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}-01-more",
        f"00-{TRACE}-{SPAN}",
        f"00-{TRACE}-{SPAN}-01\n",
        f"cc-{TRACE}-{SPAN}-01x",
    ],
)
def test_what_is_not_valid_names_no_trace(header: str) -> None:
    assert trace_id_of(header) is None


@given(st.text() | st.from_regex(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}.*", fullmatch=True))
def test_any_text_is_a_trace_of_32_digits_or_none(header: str) -> None:
    found = trace_id_of(header)
    assert found is None or re.fullmatch(r"[0-9a-f]{32}", found)


@pytest.mark.parametrize(("flags", "sampled"), [("00", False), ("01", True), ("02", False), ("ff", True)])
def test_the_caller_is_read_with_its_flag(flags: str, sampled: bool) -> None:
    assert parent_of(f"00-{TRACE}-{SPAN}-{flags}") == TraceParent(TRACE, SPAN, sampled)


@pytest.mark.parametrize("sampled", [True, False])
def test_what_is_written_is_read_again(sampled: bool) -> None:
    parent = TraceParent(TRACE, SPAN, sampled)
    assert parent_of(written(parent).decode()) == parent


def test_children_have_ids_of_their_own_that_can_be_told_again() -> None:
    ids = [child_id(SPAN, number) for number in range(1, 100)]
    assert (len({*ids, SPAN}), ids[4]) == (100, child_id(SPAN, 5))


def test_an_id_of_a_child_is_one_of_a_span() -> None:
    assert re.fullmatch(r"[0-9a-f]{16}", child_id(SPAN, 1))
