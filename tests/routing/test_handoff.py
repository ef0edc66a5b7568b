"""Where a conversation is cut, and what stands in place of its old part."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troyproxy.catalog.combos import Combo
from troyproxy.catalog.models import Limits, Model
from troyproxy.routing.candidates import Candidate
from troyproxy.routing.handoff import SUMMARY_TOKENS, best, cuts, handed_over, hands_over, old_part, turns_of, within
from troyproxy.routing.needs import Needs, needs_of

Message = dict[str, Any]


def user(text: str = "hi") -> Message:
    return {"role": "user", "content": text}


def says(text: str = "well", role: str = "assistant") -> Message:
    return {"role": role, "content": text}


def calls(*ids: str) -> Message:
    made = [{"id": name, "type": "function", "function": {"name": "f", "arguments": "{}"}} for name in ids]
    return {"role": "assistant", "content": None, "tool_calls": made}


def result(name: str) -> Message:
    return {"role": "tool", "tool_call_id": name, "content": "done"}


def places(*messages: object, turns: int = 6) -> list[int]:
    return [cut.at for cut in cuts({"messages": list(messages)}, turns)]


def holding(window: int | None, output: int | None = None) -> Candidate:
    return Candidate("a/m", None, "m", Model("m", limits=Limits(window, output)))


def combo(**config: object) -> Combo:
    return Combo(id="c", name="c", strategy="context-relay", config=config)


def test_only_a_relay_with_a_model_to_sum_up_hands_over() -> None:
    others = [combo(), combo(handoff_model=1), replace(combo(handoff_model="a/m"), strategy="priority")]
    assert [hands_over(each) for each in (combo(handoff_model="a/m"), *others)] == [True, False, False, False]


# --- where to cut ---


def test_a_cut_stands_before_each_user_message_that_has_something_before_it() -> None:
    assert places(user(), says(), user(), says(), user()) == [2, 4]


def test_only_the_last_turns_are_places() -> None:
    assert places(user(), says(), user(), says(), user(), turns=1) == [4]


def test_system_messages_alone_are_no_old_part() -> None:
    assert places(says(role="system"), says(role="developer"), user()) == []


def test_a_call_is_not_parted_from_its_result() -> None:
    assert places(user(), calls("x"), user("by the way"), result("x"), user()) == [4]


def test_a_call_is_not_parted_from_any_of_its_results() -> None:
    assert places(user(), calls("x", "y"), result("x"), user(), result("y"), user()) == [5]


def test_ids_that_come_again_belong_to_the_latest_call() -> None:
    assert places(user(), calls("0"), result("0"), user(), calls("0"), result("0"), user()) == [3, 6]


def test_a_legacy_call_is_not_parted_from_its_result() -> None:
    call = {"role": "assistant", "function_call": {"name": "f", "arguments": "{}"}}
    assert places(user(), call, user(), {"role": "function", "name": "f", "content": "1"}, user()) == [4]


def test_a_result_without_a_known_id_belongs_to_the_latest_call() -> None:
    assert places(user(), calls("x"), user(), {"role": "tool", "content": "1"}, user()) == [4]


def test_a_result_without_any_call_bars_nothing() -> None:
    assert places(user(), result("x"), user()) == [2]


@pytest.mark.parametrize(
    "messages", [None, "text", [], [1, None], [{"role": 3}], [{"role": "assistant", "tool_calls": [None, {"id": 1}]}]]
)
def test_what_is_no_conversation_has_no_places(messages: object) -> None:
    assert cuts({"messages": messages}, 6) == ()


# --- what fits ---


def test_the_estimate_counts_tools_system_messages_and_what_is_kept() -> None:
    payload = {
        "tools": [{"type": "function", "function": {"name": "f" * 400}}],
        "messages": [says("s" * 400, "system"), user("o" * 4000), user("k" * 400)],
    }
    tools = needs_of({"tools": payload["tools"]}).est_tokens
    assert [cut.tokens for cut in cuts(payload, 6)] == [tools + 100 + SUMMARY_TOKENS + 100]


def test_as_many_turns_are_kept_as_fit() -> None:
    payload = {"messages": [user("a" * 4000), user("b" * 4000), user("c" * 4000), user("d" * 40)]}
    found = best(cuts(payload, 6), holding(2500), needs_of(payload))
    assert (found and found.at) == 2


def test_the_longest_answer_needs_its_room_too() -> None:
    payload = {"messages": [user("a" * 4000), user("b" * 400)], "max_tokens": 500}
    assert best(cuts(payload, 6), holding(1300), needs_of(payload)) is None


def test_nothing_fits_a_window_that_is_smaller_than_the_last_turn() -> None:
    payload = {"messages": [user("a" * 4000), user("b" * 4000)]}
    assert best(cuts(payload, 6), holding(1500), needs_of(payload)) is None


def test_a_window_that_is_not_known_holds_anything() -> None:
    payload = {"messages": [user(), user()]}
    assert best(cuts(payload, 6), holding(None), Needs()) is not None


# --- what comes out ---


def test_the_summary_stands_between_the_system_messages_and_the_kept_turns() -> None:
    payload = {"messages": [says("s", "system"), user("old"), says(), says("late", "system"), user("new"), says()]}
    assert handed_over(payload, 4, "so far") == [
        says("s", "system"),
        says("late", "system"),
        says("so far", "system"),
        user("new"),
        says(),
    ]


def test_the_summary_is_a_system_message_where_there_was_none() -> None:
    assert handed_over({"messages": [user("old"), user("new")]}, 1, "so far")[0] == says("so far", "system")


def test_beside_developer_messages_the_summary_is_one_too() -> None:
    payload = {"messages": [says("s", "developer"), user("old"), user("new")]}
    assert handed_over(payload, 2, "so far")[1] == says("so far", "developer")


def test_the_old_part_is_what_a_summary_stands_for() -> None:
    payload = {"messages": [says("s", "system"), user("old"), says(), user("new")]}
    assert old_part(payload, 3) == [user("old"), says()]


@pytest.mark.parametrize("text", ["x" * 5000, "模" * 5000, "\ud800" * 5000])
def test_a_long_summary_is_cut_to_its_room(text: str) -> None:
    assert 0 < needs_of({"messages": [says(within(text))]}).est_tokens <= SUMMARY_TOKENS


# --- configuration ---


@pytest.mark.parametrize(
    ("config", "turns"), [({}, 6), ({"keep_turns": 2}, 2), ({"keep_turns": 0}, 6), ({"keep_turns": True}, 6)]
)
def test_the_kept_turns_are_six_unless_configured(config: Mapping[str, object], turns: int) -> None:
    assert turns_of(combo(**config)) == turns


# --- any conversation ---

texts = st.text(max_size=30)
ids = st.sampled_from(["a", "b", "c"])
messages = st.lists(
    st.one_of(
        texts.map(user),
        texts.map(says),
        texts.map(lambda text: says(text, "system")),
        st.lists(ids, min_size=1, max_size=3, unique=True).map(lambda names: calls(*names)),
        ids.map(result),
    ),
    max_size=25,
)


def _pairs(conversation: list[Message]) -> list[tuple[int, int]]:
    """Each result with the latest call of its id, if there is one, by their places."""
    found = []
    for at, message in enumerate(conversation):
        if message["role"] == "tool":
            made = [
                place
                for place, before in enumerate(conversation[:at])
                if message["tool_call_id"] in [call["id"] for call in before.get("tool_calls", ())]
            ]
            found += [(made[-1], at)] if made else []
    return found


@given(messages, st.integers(1, 30))
def test_no_cut_parts_a_call_from_its_result(conversation: list[Message], turns: int) -> None:
    pairs = _pairs(conversation)
    for cut in cuts({"messages": conversation}, turns):
        assert not any(call < cut.at <= answer for call, answer in pairs)


@given(messages, st.integers(1, 30))
def test_what_is_kept_begins_at_a_user_message(conversation: list[Message], turns: int) -> None:
    assert all(conversation[cut.at]["role"] == "user" for cut in cuts({"messages": conversation}, turns))


@given(messages, st.integers(1, 30))
def test_no_more_turns_are_kept_than_allowed(conversation: list[Message], turns: int) -> None:
    found = cuts({"messages": conversation}, turns)
    assert len(found) <= turns
    assert [cut.at for cut in found] == sorted(cut.at for cut in found)


@given(messages, texts)
def test_every_system_message_and_every_kept_message_stays_in_order(conversation: list[Message], text: str) -> None:
    for cut in cuts({"messages": conversation}, 30):
        made = handed_over({"messages": conversation}, cut.at, text)
        system = [message for message in conversation[: cut.at] if message["role"] == "system"]
        assert made[: len(system)] == system
        assert made[len(system) + 1 :] == conversation[cut.at :]


@given(messages, st.text(max_size=5000))
def test_the_request_is_never_larger_than_the_estimate(conversation: list[Message], text: str) -> None:
    payload: dict[str, object] = {"messages": conversation, "tools": [{"type": "function"}]}
    for cut in cuts(payload, 30):
        made = {**payload, "messages": handed_over(payload, cut.at, text)}
        assert needs_of(made).est_tokens <= cut.tokens


@given(messages, st.integers(0, 2000))
def test_what_is_chosen_fits_the_window(conversation: list[Message], window: int) -> None:
    payload: dict[str, object] = {"messages": conversation}
    found = best(cuts(payload, 6), holding(window), needs_of(payload))
    assert found is None or found.tokens <= window
