"""Which refusals the guard reads a call from, and in which modes."""

from __future__ import annotations

import pytest

from tests.middleware.apps import LEAK, TOOLS
from troyproxy.leaks.modes import LeakMode
from troyproxy.middleware.leak_mode import ModeChoice
from troyproxy.middleware.leak_rescue import rescuer
from troyproxy.proxy.call import Call

GROQ = {"error": {"code": "tool_use_failed", "failed_generation": '<function=get_weather>{"city": "Oslo"}</function>'}}
CODE = "Malformed function call: print(default_api.get_weather(city='Oslo'))"
GEMINI = {"choices": [None, {"finish_reason": "MALFORMED_FUNCTION_CALL", "finish_message": CODE}]}


def read(mode: LeakMode, refusal: object) -> list[tuple[str, str]] | None:
    call = Call(request_id="r", at=0, started=0, route="/", payload={"tools": TOOLS})
    found = rescuer(call, ModeChoice(call, mode))("alpha", refusal)
    return None if found is None else [(each.name, each.arguments) for each in found.calls]


@pytest.mark.parametrize("mode", [LeakMode.AUTO, LeakMode.REPAIR])
@pytest.mark.parametrize("refusal", [GROQ, GEMINI])
def test_the_call_is_read_where_the_mode_repairs(mode: LeakMode, refusal: object) -> None:
    assert read(mode, refusal) == [("get_weather", '{"city": "Oslo"}')]


def answer(*contents: str) -> dict[str, object]:
    choices = [
        {"index": at, "message": {"role": "assistant", "content": said}, "finish_reason": "stop"}
        for at, said in enumerate(contents)
    ]
    return {"choices": choices}


def test_an_answer_that_was_left_in_vain_is_repaired_after_all() -> None:
    assert read(LeakMode.AUTO, answer(LEAK)) == [("get_weather", '{"city": "Oslo"}')]
    assert read(LeakMode.AUTO, {**answer(LEAK), "id": "c"}) is not None


@pytest.mark.parametrize("contents", [(LEAK, LEAK), ("Hello",), ("So: " + LEAK,)])
def test_what_cannot_be_repaired_stays_left(contents: tuple[str, ...]) -> None:
    assert read(LeakMode.AUTO, answer(*contents)) is None


@pytest.mark.parametrize("mode", [LeakMode.SUPPRESS, LeakMode.OBSERVE, LeakMode.FAILOVER, LeakMode.OFF])
def test_no_other_mode_makes_a_call_of_it(mode: LeakMode) -> None:
    assert read(mode, GROQ) is None


@pytest.mark.parametrize(
    "refusal", [None, [], {}, {"choices": 3}, {"error": "no"}, {"choices": [{"finish_message": 3}]}]
)
def test_a_refusal_without_a_call_gives_none(refusal: object) -> None:
    assert read(LeakMode.AUTO, refusal) is None
