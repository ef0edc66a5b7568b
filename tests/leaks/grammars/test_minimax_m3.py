from __future__ import annotations

import pytest

from tests.leaks.reads import arguments, is_no_call, is_unfinished, read
from troyproxy.leaks.grammars.minimax_m3 import MAX_DEPTH

N = "]<]minimax[>["
CALL = f'{N}<tool_call>{N}<invoke name="f">{{}}{N}</invoke>{N}</tool_call>'


def nested(*inside: str) -> str:
    """One call with the namespace token in front of every tag."""
    return CALL.format("".join(piece.replace("<", f"{N}<") for piece in inside))


def test_objects_and_lists_nest() -> None:
    text = nested("<a><b>1</b><c><item>x</item><item><d>y</d></item></c></a>", "<e>", "plain & text", "</e>")
    assert arguments(text) == {"a": {"b": "1", "c": ["x", {"d": "y"}]}, "e": "plain & text"}


def test_leaves_are_untyped_and_keep_their_markup() -> None:
    text = CALL.format(f"{N}<a>\nif a < b: </a> ok\n{N}</a>")
    assert arguments(text) == {"a": "if a < b: </a> ok"}
    assert not read(text).calls[0].typed


def test_blanks_may_stand_around_every_tag() -> None:
    assert arguments(CALL.format(f"\n{N} <a>\n{N} <b>1{N} </b>\n{N} </a>\n")) == {"a": {"b": "1"}}


def test_an_empty_element_is_empty_text() -> None:
    assert arguments(nested("<a></a>")) == {"a": ""}


def test_the_first_of_doubled_keys_wins() -> None:
    assert arguments(nested("<a><b>1</b><b>2</b></a><a>3</a>")) == {"a": {"b": "1"}}


@pytest.mark.parametrize("inside", ["<a>1</b>", "</a>", "<a><b>1</b>x</a>", "text", "<a>" * (MAX_DEPTH + 1), "<a b>"])
def test_markup_that_does_not_nest_is_no_call(inside: str) -> None:
    assert is_no_call(nested(inside))


def test_another_element_is_no_call() -> None:
    assert is_no_call(f"{N}<other>")


def test_every_beginning_is_unfinished() -> None:
    text = nested("<a><b>1</b></a>")
    for cut in range(1, text.index("</invoke>") + len("</invoke>")):
        assert is_unfinished(text[:cut]), text[:cut]
