"""What is plain at one look is what the general readers find nothing wrong with."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.wire.chat_shapes import JSON, LEAVES
from troyproxy.wire import chat


def near_plain() -> st.SearchStrategy[dict[str, object]]:
    """Return bodies that are plain, or nearly."""
    message = st.fixed_dictionaries({"content": LEAVES | st.just("hello")}, optional={"tool_calls": JSON})
    choice = st.fixed_dictionaries({"message": message | JSON}, optional={"delta": JSON, "finish_reason": LEAVES})
    return st.fixed_dictionaries({"choices": st.lists(choice, max_size=2)}, optional={"error": JSON})


@given(near_plain() | JSON)
def test_nothing_is_wrong_with_a_plain_answer(value: object) -> None:
    found = chat.is_completion(value), chat.error_of(value), chat.failed_call(value)
    assert not chat.is_plain(value) or found == (True, None, None)


def test_one_choice_with_a_text_is_plain() -> None:
    assert chat.is_plain({"choices": [{"index": 0, "message": {"content": "hello"}, "finish_reason": "stop"}]})
