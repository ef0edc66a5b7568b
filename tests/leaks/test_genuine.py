"""Real calls that lack what clients need."""

from __future__ import annotations

from typing import Any

import pytest

from tests.leaks.chunks import CALL, WEATHER, Client, chunk
from troyproxy.leaks.call_ids import call_id
from troyproxy.leaks.genuine import GenuineCalls
from troyproxy.leaks.modes import LeakMode
from troyproxy.leaks.options import Options
from troyproxy.leaks.policy import Policy
from troyproxy.leaks.whole import guarded


def bare(name: str, **more: object) -> dict[str, Any]:
    return {"function": {"name": name, "arguments": "{}"}, **more}


def made(name: str, index: int, choice: int = 0) -> dict[str, Any]:
    return {**bare(name), "index": index, "id": call_id("c", choice, index), "type": "function"}


def test_index_and_id_are_filled_in_by_order() -> None:
    calls = GenuineCalls(0)
    assert calls.sound([bare("a", id=""), bare("b")], "c") == [made("a", 0) | {"id": call_id("c", 0, 0)}, made("b", 1)]
    assert calls.sound([bare("d")], "c") == [made("d", 2)]


def test_the_rest_of_a_call_without_an_index_belongs_to_the_latest() -> None:
    calls = GenuineCalls(0)
    calls.sound([bare("a")], "c")
    rest = {"function": {"arguments": "}"}}
    assert calls.sound([rest], "c") == [{**rest, "index": 0}]


@pytest.mark.parametrize("calls", [CALL, [{"index": 0, "function": {"arguments": "{"}}], None, "x", [None], []])
def test_sound_and_odd_calls_stay_as_they_are(calls: object) -> None:
    genuine = GenuineCalls(0)
    assert genuine.sound(calls, "c") is None
    assert genuine.reason("stop") == "stop"


@pytest.mark.parametrize(("finish", "told"), [("stop", "tool_calls"), ("length", "length"), (None, None)])
def test_the_end_of_calls_that_were_made_whole_is_told(finish: str | None, told: str | None) -> None:
    genuine = GenuineCalls(0)
    genuine.sound([bare("a")], "c")
    assert genuine.reason(finish) == told


def test_a_stream_of_gemini_adds_up_for_a_client() -> None:
    client = Client(LeakMode.AUTO)
    client.run([chunk(role="assistant", tool_calls=[bare("get_weather", id="")], finish="stop")])
    (call,) = client.sent[0]["choices"][0]["delta"]["tool_calls"]
    assert (call["index"], call["id"], client.finish()) == (0, call_id("c", 0, 0), ["tool_calls"])


def test_a_whole_answer_of_gemini_gets_ids_and_no_index() -> None:
    message = {"role": "assistant", "content": None, "tool_calls": [bare("get_weather")]}
    body: dict[str, Any] = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
    answer: Any = guarded(body, Policy(LeakMode.AUTO, WEATHER, Options(), "req_1"), print)
    (call,) = answer["choices"][0]["message"]["tool_calls"]
    assert (call["id"], "index" in call) == (call_id("req_1", 0, 0), False)
    assert answer["choices"][0]["finish_reason"] == "tool_calls"


def test_sound_calls_go_out_byte_for_byte() -> None:
    events = [chunk(tool_calls=CALL), chunk(finish="stop")]
    assert Client(LeakMode.AUTO).run(list(events)) == events


def test_an_id_that_is_filled_in_is_none_that_the_conversation_has() -> None:
    first = call_id("c", 0, 0)
    calls = GenuineCalls(0, {first}).sound([bare("a")], "c")
    assert calls is not None
    assert calls[0] == {**made("a", 0), "id": call_id("c", 0, 0, {first})}
