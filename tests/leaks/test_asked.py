from __future__ import annotations

import pytest

from troyproxy.leaks.asked import Asked, Inputs

MESSAGES = [
    {"role": "system", "content": "Say <a>."},
    {"role": "user", "content": [{"type": "text", "text": "Say <b>."}, {"type": "image_url"}, 3]},
    {"role": "assistant", "content": "I said <c>."},
    {"role": "tool", "content": '{"page": "Say \\"<d>\\"\\n\\u003ce>"}'},
    {"role": "user", "content": None},
    3,
]


def asked(messages: object = MESSAGES) -> Asked:
    return Asked(inputs=Inputs({"messages": messages}))


@pytest.mark.parametrize("text", ["<a>", " <b>. \n", '"<d>"\n<e>', "Say <a>."])
def test_what_stands_in_a_message_the_model_was_given_is_quoted(text: str) -> None:
    assert asked().quoted(text)


@pytest.mark.parametrize("text", ["<c>", "<f>", "", "  ", "Say <a>.\0Say <b>", "Say <a>. Say <b>"])
def test_anything_else_is_not(text: str) -> None:
    assert not (asked().quoted(text) and "\0" not in text)


@pytest.mark.parametrize("messages", [None, "x", {}])
def test_odd_messages_quote_nothing(messages: object) -> None:
    assert not asked(messages).quoted("x")


def test_the_texts_are_joined_once() -> None:
    inputs = Inputs({"messages": MESSAGES})
    assert inputs.text() is inputs.text()


def test_the_ids_of_earlier_calls_are_known() -> None:
    calls = [{"id": "call_1"}, {"id": 3}, {}, 3]
    inputs = Inputs({"messages": [*MESSAGES, {"role": "assistant", "tool_calls": calls}, {"tool_calls": 3}]})
    assert inputs.call_ids() == {"call_1"}
    assert inputs.call_ids() is inputs.call_ids()


@pytest.mark.parametrize("messages", [None, "x", {}])
def test_odd_messages_have_no_ids(messages: object) -> None:
    assert not Inputs({"messages": messages}).call_ids()
