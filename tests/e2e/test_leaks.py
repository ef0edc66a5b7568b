"""Tool calls written as text, through a real gateway: modes, failover, the official SDK, and what an operator sees."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest
from openai import OpenAI

from tests.e2e.cases.house import NO_BUDGET, calls, circuit, combo, locks, provider, streamed, text_of
from tests.e2e.client import Response
from tests.e2e.gateway import Gateway, chat, run_gateway
from tests.e2e.shapes import DONE, completion, delta, role, usage_event
from tests.e2e.test_sdk import ASK, TOOL
from tests.e2e.until import until
from tests.e2e.upstreams import Reply, Upstreams, error, stream, whole

LEAK: Final = '<tool_call>{"name": "get_weather", "arguments": {"city": "Paris"}}</tool_call>'
PROSE: Final = "Let me look.\n" + LEAK
CUT: Final = '<tool_call>{"name": "get_weather", "arguments": {"city": "Par'


def leaking(text: str = LEAK) -> Reply:
    """Return a stream whose content is *text*, four characters at a time."""
    parts = [text[at : at + 4] for at in range(0, len(text), 4)]
    return stream(role(), *map(delta, parts), delta(finish="stop"), usage_event(), DONE)


@pytest.fixture(scope="module")
def gateway(folder: Path, upstreams: Upstreams) -> Iterator[Gateway]:
    names = ("alpha", "beta")
    providers = {name: provider(upstreams, name) for name in names}
    modes: dict[str, object] = {
        "next": None,
        "next-whole": None,
        "lost": None,
        "vain": None,
        "all": None,
        "fixer": "repair",
        "strict": {"mode": "failover", "on_exhausted": "error"},
    }
    combos = {
        name: combo(f"alpha/{name}", f"beta/{name}", config={} if mode is None else {"leak": mode})
        for name, mode in modes.items()
    }
    with run_gateway(folder, {"providers": providers, "combos": combos}, **NO_BUDGET) as running:
        yield running


def asked(gateway: Gateway, model: str, mode: str | None = None) -> Response:
    headers = {} if mode is None else {"x_troy_leak_mode": mode}
    with closing(gateway.stream(chat(model, tools=[TOOL]), **headers)) as answer:
        return answer.whole()


def test_the_sdks_streaming_helper_sees_a_repaired_call_as_a_real_one_and_the_next_turn_works(
    client: OpenAI, upstreams: Upstreams
) -> None:
    upstreams.script("alpha", leaking(), stream(role(), delta("It is sunny."), delta(finish="stop"), DONE), model="sdk")
    with client.chat.completions.stream(model="alpha/sdk", messages=[ASK], tools=[TOOL]) as events:
        kinds = [each.type for each in events]
        choice = events.get_final_completion().choices[0]
    assert "tool_calls.function.arguments.done" in kinds
    assert "content.done" not in kinds
    (call,) = choice.message.tool_calls or []
    assert (choice.finish_reason, choice.message.content or "") == ("tool_calls", "")
    assert (call.function.name, json.loads(call.function.arguments)) == ("get_weather", {"city": "Paris"})
    history: list[Any] = [
        ASK,
        choice.message.to_dict(),
        {"role": "tool", "tool_call_id": call.id, "content": '{"sky": "sunny"}'},
    ]
    with client.chat.completions.stream(model="alpha/sdk", messages=history, tools=[TOOL]) as events:
        answer = events.get_final_completion().choices[0].message.content
    assert answer == "It is sunny."
    sent = upstreams.requests("alpha", model="sdk")[-1].json["messages"]
    assert sent[1]["tool_calls"][0]["id"] == sent[2]["tool_call_id"] == call.id


def test_the_sdk_reads_a_repaired_call_of_a_whole_answer(client: OpenAI, upstreams: Upstreams) -> None:
    upstreams.script("alpha", whole(completion(LEAK)), model="sdk-whole")
    choice = client.chat.completions.create(model="alpha/sdk-whole", messages=[ASK], tools=[TOOL]).choices[0]
    (call,) = choice.message.tool_calls or []
    assert choice.finish_reason == "tool_calls"
    assert call.to_dict()["function"] == {"name": "get_weather", "arguments": '{"city": "Paris"}'}


def test_a_leak_before_the_first_word_goes_to_the_next_member_and_cools_nobody(
    gateway: Gateway, upstreams: Upstreams
) -> None:
    upstreams.script("alpha", leaking(), model="next")
    answer = asked(gateway, "next")
    assert (answer.status, answer.headers["x-troy-attempts"]) == (200, "2")
    assert answer.headers["x-troy-leak"] == "F03;failed_over"
    assert text_of(answer.body) == "next by beta"
    assert calls(upstreams, "alpha/next", "beta/next") == [1, 1]
    assert (locks(gateway, "alpha", "next"), circuit(gateway, "alpha", "next")) == ([], "closed")
    row = gateway.row(answer.headers["x-troy-request-id"])
    assert [(each["outcome"], each["leak"]) for each in row["attempts"]] == [("leak", "F03;failed_over"), ("ok", "")]
    assert json.loads(row["wasted"])["output"] > 0
    assert row["leaks"] == 1
    assert gateway.metric("tool_leaks_total", provider="alpha", action="failed_over", format="F03") >= 1
    assert gateway.metric("failovers_total", combo="next", **{"class": "leak"}) == 1


def test_a_whole_answer_goes_to_the_next_member_too_even_after_prose(gateway: Gateway, upstreams: Upstreams) -> None:
    upstreams.script("alpha", whole(completion(PROSE)), model="next-whole")
    answer = gateway.post(chat("next-whole", tools=[TOOL]))
    assert (answer.headers["x-troy-attempts"], answer.headers["x-troy-leak"]) == ("2", "F03;failed_over")
    assert answer.json()["choices"][0]["message"]["content"] == "next-whole by beta"
    wasted = gateway.row(answer.headers["x-troy-request-id"])["wasted"]
    assert json.loads(wasted)["input"] == 7


def test_a_whole_answer_that_was_left_in_vain_is_repaired_after_all(gateway: Gateway, upstreams: Upstreams) -> None:
    upstreams.script("alpha", whole(completion(LEAK)), model="vain")
    upstreams.script("beta", error(429, "slow down"), model="vain")
    answer = gateway.post(chat("vain", tools=[TOOL]))
    assert (answer.status, answer.headers["x-troy-attempts"]) == (200, "2")
    assert answer.json()["choices"][0]["finish_reason"] == "tool_calls"
    assert answer.headers["x-troy-leak"] == "F03;repaired"


def test_where_every_member_leaks_the_last_one_is_repaired(gateway: Gateway, upstreams: Upstreams) -> None:
    for name in ("alpha", "beta"):
        upstreams.script(name, leaking(), model="all")
    answer = asked(gateway, "all")
    assert (answer.headers["x-troy-attempts"], answer.headers["x-troy-leak"]) == ("2", "F03;repaired")
    assert b'"tool_calls"' in answer.body
    assert text_of(answer.body) == ""


def test_a_leak_after_prose_is_cut_off_where_it_begins(gateway: Gateway, upstreams: Upstreams) -> None:
    upstreams.script("alpha", leaking(PROSE), model="prose")
    answer = asked(gateway, "alpha/prose")
    assert (text_of(answer.body), b"tool_call" in answer.body) == ("Let me look.\n", False)
    assert b'"finish_reason":"stop"' in answer.body


def test_mode_repair_fails_over_what_it_cannot_repair(gateway: Gateway, upstreams: Upstreams) -> None:
    upstreams.script("alpha", leaking(CUT), model="fixer")
    answer = asked(gateway, "fixer")
    assert (answer.headers["x-troy-leak"], text_of(answer.body)) == ("F03;failed_over", "fixer by beta")


def test_mode_repair_asks_nobody_else_where_it_can_repair(gateway: Gateway, upstreams: Upstreams) -> None:
    upstreams.script("alpha", leaking(), model="fixer")
    answer = asked(gateway, "fixer")
    assert (answer.headers["x-troy-leak"], answer.headers["x-troy-attempts"]) == ("F03;repaired", "1")


def test_where_nobody_does_better_an_error_can_be_wished_for(gateway: Gateway, upstreams: Upstreams) -> None:
    for name in ("alpha", "beta"):
        upstreams.script(name, whole(completion(LEAK)), model="strict")
    answer = gateway.post(chat("strict", tools=[TOOL]))
    assert (answer.status, answer.json()["error"]["code"]) == (502, "leak")
    assert "get_weather" not in answer.body.decode()


def test_a_stream_is_suppressed_where_a_whole_answer_would_be_an_error(gateway: Gateway, upstreams: Upstreams) -> None:
    for name in ("alpha", "beta"):
        upstreams.script(name, leaking(), model="strict")
    answer = asked(gateway, "strict")
    assert (answer.status, text_of(answer.body), answer.headers["x-troy-leak"]) == (200, "", "F03;suppressed")


@pytest.mark.parametrize(
    ("mode", "shown", "leak"),
    [("observe", LEAK, None), ("off", LEAK, None), ("suppress", "", "F03;suppressed"), ("repair", "", "F03;repaired")],
)
def test_a_request_chooses_its_mode(
    gateway: Gateway, upstreams: Upstreams, mode: str, shown: str, leak: str | None
) -> None:
    upstreams.script("alpha", leaking(), model=f"mode-{mode}")
    answer = asked(gateway, f"alpha/mode-{mode}", mode)
    assert (text_of(answer.body), answer.headers.get("x-troy-leak")) == (shown, leak)


def test_what_is_observed_is_counted_and_the_bytes_stay(gateway: Gateway, upstreams: Upstreams) -> None:
    upstreams.script("alpha", leaking(), model="seen")
    before = gateway.metric("tool_leaks_total", provider="alpha", action="observed")
    plain, watched = asked(gateway, "alpha/seen", "off"), asked(gateway, "alpha/seen", "observe")
    assert plain.body == watched.body
    assert gateway.metric("tool_leaks_total", provider="alpha", action="observed") == before + 1
    assert gateway.row(watched.headers["x-troy-request-id"])["attempts"][0]["leak"] == "F03;observed"


def test_the_statistics_count_leaks_by_provider_and_model(gateway: Gateway, upstreams: Upstreams) -> None:
    upstreams.script("alpha", leaking(), model="counted")
    asked(gateway, "alpha/counted", "suppress")
    wanted = {"provider": "alpha", "model": "counted", "format": "F03", "action": "suppressed", "attempts": 1}
    until(lambda: wanted in gateway.admin("GET", "/api/stats").json()["leaks"])
    assert wanted in gateway.admin("GET", "/api/stats").json()["leaks"]


def test_no_text_of_a_call_is_in_the_log(gateway: Gateway, upstreams: Upstreams) -> None:
    upstreams.script("alpha", leaking(LEAK.replace("Paris", "Atlantis")), model="log")
    answer = asked(gateway, "alpha/log")
    until(lambda: answer.headers["x-troy-request-id"] in gateway.output())
    assert "Atlantis" not in gateway.output()


def test_an_answer_of_gemini_that_lost_its_call_is_no_answer(gateway: Gateway, upstreams: Upstreams) -> None:
    lost = delta(finish="function_call_filter: MALFORMED_FUNCTION_CALL")
    upstreams.script("alpha", stream(role(), lost, DONE), model="lost")
    answer = asked(gateway, "lost")
    assert answer.headers["x-troy-leak"] == "malformed_function_call;failed_over"
    assert text_of(answer.body) == "lost by beta"
    assert circuit(gateway, "alpha", "lost") == "closed"


def test_a_request_without_tools_is_not_watched(gateway: Gateway, upstreams: Upstreams) -> None:
    upstreams.script("alpha", leaking(), model="plain")
    answer = streamed(gateway, "alpha/plain")
    assert (text_of(answer.body), "x-troy-leak" in answer.headers) == (LEAK, False)
