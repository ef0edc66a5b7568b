"""Whole completions: cut, repaired, scrubbed, or left alone."""

from __future__ import annotations

from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.leaks.chunks import CALL, LEAK, WEATHER, Event
from troyproxy.leaks import gate as gating
from troyproxy.leaks.asked import Asked
from troyproxy.leaks.gate import LeakGate
from troyproxy.leaks.modes import LeakAction, LeakMode
from troyproxy.leaks.options import Options, Scope
from troyproxy.leaks.policy import Leak, Policy
from troyproxy.leaks.whole import guarded

FUNCTION: Final = {"name": "get_weather", "arguments": '{"city": "Oslo"}'}


def body(content: object, finish: str = "stop", **message: object) -> Event:
    choice = {"index": 0, "message": {"role": "assistant", "content": content, **message}, "finish_reason": finish}
    return {"id": "c", "choices": [choice], "usage": {"total_tokens": 5}}


def run(
    answer: Event, mode: LeakMode = LeakMode.SUPPRESS, asked: Asked = WEATHER, options: Options | None = None
) -> tuple[Event | None, list[Leak]]:
    told: list[Leak] = []
    return guarded(answer, Policy(mode, asked, options or Options(), "req_1"), told.append), told


def test_a_leaked_body_keeps_everything_but_its_content() -> None:
    assert run(body(LEAK)) == (body(""), [Leak(0, "F01", LeakAction.SUPPRESSED)])


@pytest.mark.parametrize("content", ["Hello", None, "<", "", "<tool_call>"])
@pytest.mark.parametrize("mode", [LeakMode.SUPPRESS, LeakMode.AUTO])
def test_a_clean_body_is_not_touched(content: str | None, mode: LeakMode) -> None:
    assert run(body(content), mode) == (None, [])


def test_prose_before_a_leak_stays() -> None:
    assert run(body("So:\n" + LEAK), LeakMode.AUTO)[0] == body("So:\n")


@pytest.mark.parametrize("mode", [LeakMode.AUTO, LeakMode.REPAIR])
def test_a_leak_becomes_a_call(mode: LeakMode) -> None:
    answer, told = run(body(LEAK), mode)
    assert answer is not None
    choice: Any = answer["choices"][0]
    (call,) = choice["message"]["tool_calls"]
    assert (choice["finish_reason"], choice["message"]["content"]) == ("tool_calls", None)
    assert (call["type"], call["function"], call["id"][:5]) == ("function", FUNCTION, "call_")
    assert told == [Leak(0, "F01", LeakAction.REPAIRED)]


def test_prose_stays_beside_the_call_where_repair_is_wanted_anywhere() -> None:
    answer, _ = run(body("So:\n" + LEAK), LeakMode.REPAIR, options=Options(repair_scope=Scope.ANYWHERE))
    message: Any = answer["choices"][0]["message"]  # type: ignore[index]  # as was made above
    assert (message["content"], message["tool_calls"][0]["function"]) == ("So:\n", FUNCTION)


def test_a_legacy_request_gets_a_function_call() -> None:
    legacy = Asked(names=WEATHER.names, schemas=WEATHER.schemas, legacy=True)
    answer, _ = run(body(LEAK), LeakMode.REPAIR, legacy)
    choice: Any = answer["choices"][0]  # type: ignore[index]  # as was made above
    assert (choice["message"]["function_call"], choice["finish_reason"]) == (FUNCTION, "function_call")


def test_a_body_without_a_finish_reason_is_judged_too() -> None:
    assert run({"choices": [{"message": {"content": LEAK}}]})[0] == {"choices": [{"message": {"content": ""}}]}


def test_an_announced_call_that_was_suppressed_is_not_waited_for() -> None:
    assert run(body(LEAK, "tool_calls"))[0] == body("", "stop")


def test_residue_is_emptied_and_the_calls_stay() -> None:
    answer = body("<tool_call>", "tool_calls", tool_calls=CALL)
    assert run(answer, LeakMode.REPAIR)[0] == body("", "tool_calls", tool_calls=CALL)


@pytest.mark.parametrize("mode", [LeakMode.OFF, LeakMode.OBSERVE])
def test_modes_that_change_nothing_change_nothing(mode: LeakMode) -> None:
    answer, told = run(body(LEAK, reasoning="<|tool_call_end|>"), mode)
    expected = [Leak(0, "F01", LeakAction.OBSERVED), Leak(0, "F17", LeakAction.OBSERVED)]
    assert (answer, told) == (None, expected if mode is LeakMode.OBSERVE else [])


@pytest.mark.parametrize("field", ["reasoning", "reasoning_content"])
def test_special_tokens_leave_the_reasoning(field: str) -> None:
    answer, told = run(body("Hi", **{field: "so <|tool_call_end|>on"}))
    assert answer == body("Hi", **{field: "so on"})
    assert told == [Leak(0, "F17", LeakAction.SUPPRESSED)]


def test_clean_reasoning_is_not_touched() -> None:
    assert run(body("Hi", reasoning="if a <|b")) == (None, [])


def test_only_special_tokens_are_taken_out_where_no_call_is_allowed() -> None:
    scrubbed = Asked(names=WEATHER.names, only_special=True)
    special = "<|python_tag|>" + '{"name": "get_weather", "parameters": {}}'
    assert run(body(special), LeakMode.REPAIR, scrubbed)[1] == [Leak(0, "F06", LeakAction.SUPPRESSED)]
    assert run(body(LEAK), LeakMode.REPAIR, scrubbed) == (None, [])


def test_a_call_longer_than_the_bound_is_suppressed() -> None:
    long = '<function=get_weather>{"city": "' + "x" * 200 + '"}</function>'
    answer, told = run(body(long), LeakMode.REPAIR, options=Options(call_chars=100))
    assert (answer, told) == (body(""), [Leak(0, "F01", LeakAction.SUPPRESSED)])


@given(
    st.sampled_from(["Hello", "(Hi)", "", None, LEAK, "So:\n" + LEAK, "<tool_call>", [{"type": "text", "text": LEAK}]]),
    st.fixed_dictionaries(
        {},
        optional={
            "tool_calls": st.sampled_from([None, [], CALL, [{"function": {"name": "get_weather"}}], "x"]),
            "function_call": st.sampled_from([None, FUNCTION]),
            "reasoning": st.sampled_from([None, "", "hm", "<|tool_call_end|>hm"]),
        },
    ),
    st.sampled_from(LeakMode),
)
def test_what_the_gate_found_plain_is_not_changed(content: object, message: dict[str, Any], mode: LeakMode) -> None:
    policy, told = Policy(mode, WEATHER, Options(), "req_1"), list[Leak]()
    gate, answer = LeakGate(policy), body(content, **message)
    gate.judge(answer, can_reject=False)
    if gate.plain:
        assert (guarded(answer, policy, told.append), told) == (None, [])
    else:
        assert (
            not policy.edits
            or content not in ("Hello", "(Hi)", "", None)
            or any(message.values())
            or mode is LeakMode.OFF
        )


def test_more_choices_than_are_watched_are_not_plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gating, "MAX_CHOICES", 1)
    answer, gate = body("Hello (all)"), LeakGate(Policy(LeakMode.AUTO, WEATHER))
    answer["choices"] = [*answer["choices"], {**answer["choices"][0], "index": 1}]
    gate.judge(answer, can_reject=False)
    assert not gate.plain
