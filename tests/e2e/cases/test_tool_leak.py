"""Field cases TL-01 to TL-13: a tool call that was written as text is never shown, and where it can be, it is made."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from tests.e2e.cases.house import (
    NO_BUDGET,
    calls,
    circuit,
    combo,
    ended,
    events_of,
    finishes_of,
    locks,
    provider,
    streamed,
    text_of,
)
from tests.e2e.client import Response
from tests.e2e.gateway import Gateway, chat, run_gateway
from tests.e2e.shapes import DONE, completion, delta, dumps, event, usage_event
from tests.e2e.upstreams import HEALTHY, Reply, Upstreams, stream, whole

WEATHER: Final = {"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object"}}}
SEARCH: Final = {"type": "function", "function": {"name": "search_docs", "parameters": {"type": "object"}}}
LEAK: Final = '<function=get_weather>{"city":"Oslo"}</function>'
MADE: Final = [("get_weather", {"city": "Oslo"})]
STOP: Final = delta(finish="stop")
REFUSAL: Final = dumps(
    {
        "error": {
            "message": "tool call could not be parsed",
            "type": "invalid_request_error",
            "code": "tool_use_failed",
            "failed_generation": LEAK,
        }
    }
)
IN_STREAM: Final = b"event: error\n" + event({"error": {**json.loads(REFUSAL)["error"], "status_code": 400}})
BARS: Final = "\uff5c"
DIALECTS: Final = {
    "llama": '<|python_tag|>{"name":"get_weather","parameters":{"city":"Oslo"}}',
    "qwen": "<tool_call>\n<function=get_weather>\n<parameter=city>\nOslo\n</parameter>\n</function>\n</tool_call>",
    "glm": "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Oslo</arg_value>\n</tool_call>",
    "minimax": '<minimax:tool_call>\n<invoke name="get_weather">\n<parameter name="city">Oslo</parameter>\n</invoke>\n'
    "</minimax:tool_call>",
    "mistral": '[TOOL_CALLS] [{"name":"get_weather","arguments":{"city":"Oslo"}}]',
    "mistral-11": '[TOOL_CALLS]get_weather[ARGS]{"city":"Oslo"}',
    "deepseek": (
        "<|tool▁calls▁begin|><|tool▁call▁begin|>function<|tool▁sep|>get_weather\n```json\n"
        '{"city":"Oslo"}\n```<|tool▁call▁end|><|tool▁calls▁end|>'
    ).replace("|", BARS),
    "dsml": (
        '<|DSML|tool_calls>\n<|DSML|invoke name="get_weather">\n<|DSML|parameter name="city" string="true">'
        "Oslo</|DSML|parameter>\n</|DSML|invoke>\n</|DSML|tool_calls>"
    ).replace("|", BARS),
    "kimi": "<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>"
    '{"city":"Oslo"}<|tool_call_end|><|tool_calls_section_end|>',
    "harmony": '<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{"city":"Oslo"}<|call|>',
    "anthropic": '<function_calls>\n<invoke name="get_weather">\n<parameter name="city">Oslo</parameter>\n</invoke>\n'
    "</function_calls>",
    "minicpm": '<function name="get_weather"><param name="city">Oslo</param></function>',
    "paren": '<function(get_weather){"city":"Oslo"}</function>',
}
DSML: Final = DIALECTS["dsml"]
LOOKALIKES: Final = {
    "double bars": DSML.replace(BARS, BARS * 2),
    "ascii bars": DSML.replace(BARS, "|"),
    "upper case": DSML.upper().replace("GET_WEATHER", "get_weather").replace("CITY", "city").replace("OSLO", "Oslo"),
    "norm bars": DSML.replace(BARS, "‖"),
}


@pytest.fixture(scope="module")
def gateway(folder: Path, upstreams: Upstreams) -> Iterator[Gateway]:
    providers = {name: provider(upstreams, name) for name in ("alpha", "beta")}
    combos = {"tl13": combo("alpha/tl13", "beta/tl13"), "tl13-in": combo("alpha/tl13-in", "beta/tl13-in")}
    with run_gateway(folder, {"providers": providers, "combos": combos}, **NO_BUDGET) as running:
        yield running


def asked(gateway: Gateway, model: str, **more: object) -> Response:
    """Return a streamed answer to a request that offers the tool."""
    return streamed(gateway, model, **{"tools": [WEATHER], **more})


def leaky(parts: Sequence[str]) -> tuple[bytes, ...]:
    """Return the reads of a stream whose content comes in *parts*."""
    usage = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
    return (*map(delta, parts), STOP, usage_event(usage), DONE)


def made(body: bytes) -> list[tuple[str, Any]]:
    """Return the calls that a client makes of a stream: name and decoded arguments."""
    found: dict[int, list[str]] = {}
    for each in events_of(body):
        for choice in each.get("choices") or ():
            for call in choice["delta"].get("tool_calls") or ():
                one = found.setdefault(call["index"], ["", ""])
                one[0] += call["function"].get("name") or ""
                one[1] += call["function"].get("arguments") or ""
    return [(name, json.loads(arguments)) for name, arguments in found.values()]


def test_tl_01_a_call_in_fragments_is_never_seen_and_is_made(gateway: Gateway, upstreams: Upstreams) -> None:
    marker = "<function=get_weather>"
    for cut in range(1, len(marker)):
        upstreams.script("alpha", stream(*leaky([LEAK[:cut], LEAK[cut:]])), model="tl01")
        body = asked(gateway, "alpha/tl01").body
        assert (text_of(body), made(body), finishes_of(body)) == ("", MADE, ["tool_calls"]), cut
        assert ended(body)


def test_tl_01_the_usage_arrives_behind_the_call(gateway: Gateway, upstreams: Upstreams) -> None:
    parts = ["<", "func", "tion", "=get_", 'weather>{"city":', '"Oslo"}</fun', "ction>"]
    upstreams.script("alpha", stream(*leaky(parts)), model="tl01-usage")
    answer = asked(gateway, "alpha/tl01-usage", stream_options={"include_usage": True})
    assert events_of(answer.body)[-1]["usage"]["total_tokens"] == 5
    assert answer.headers["x-troy-leak"] == "F01;repaired"


THINKING: Final = '<think>I could use <tool_call>{"name":"get_weather","arguments":{}}</tool_call> here.</think>\n'
OUTSIDE: Final = '<tool_call>{"name":"get_weather","arguments":{"city":"Oslo"}}</tool_call>'


@pytest.mark.parametrize("thoughts", [THINKING, THINKING.removeprefix("<think>")], ids=["opened", "never opened"])
def test_tl_03_only_the_call_outside_of_the_thinking_is_made(
    gateway: Gateway, upstreams: Upstreams, thoughts: str
) -> None:
    for cut in (thoughts.index("</think>") + 3, len(thoughts)):
        whole_text = thoughts + OUTSIDE
        upstreams.script("alpha", stream(*leaky([whole_text[:cut], whole_text[cut:]])), model="tl03")
        body = asked(gateway, "alpha/tl03").body
        assert (text_of(body).strip(), made(body)) == (thoughts.strip(), MADE)


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_tl_04_special_tokens_leave_the_reasoning_and_its_text_stays(
    gateway: Gateway, upstreams: Upstreams, field: str
) -> None:
    call = "<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>"
    end = "<|tool_call_end|><|tool_calls_section_end|>"
    texts = ("I need the weather. " + call[:30], call[30:] + '{"city":"Oslo"}', end)
    said = [event({"choices": [{"index": 0, "delta": {field: text}}]}) for text in texts]
    upstreams.script("alpha", stream(*said, STOP, DONE), model=f"tl04-{field}")
    body = asked(gateway, f"alpha/tl04-{field}").body
    deltas = [choice["delta"] for each in events_of(body) for choice in each["choices"]]
    thought = "".join(each.get(field) or "" for each in deltas)
    assert thought.startswith("I need the weather. ")
    assert "<|" not in thought
    assert text_of(body) == ""
    assert gateway.metric("tool_leaks_total", provider="alpha", action="suppressed", format="F21") >= 1


@pytest.mark.parametrize(
    ("more", "shown"),
    [
        ({"tools": []}, LEAK),
        ({"tools": [SEARCH]}, LEAK),
        ({"tools": [WEATHER], "tool_choice": "none"}, LEAK),
    ],
    ids=["no tools", "another tool", "no choice"],
)
def test_tl_06_a_call_that_was_not_offered_is_text(
    gateway: Gateway, upstreams: Upstreams, more: dict[str, object], shown: str
) -> None:
    upstreams.script("alpha", stream(*leaky([LEAK])), model="tl06")
    answer = streamed(gateway, "alpha/tl06", **more)
    assert (text_of(answer.body), made(answer.body), finishes_of(answer.body)) == (shown, [], ["stop"])
    assert "x-troy-leak" not in answer.headers


def test_tl_07_what_follows_a_leak_is_dropped_and_the_next_request_is_untouched(
    gateway: Gateway, upstreams: Upstreams
) -> None:
    after = stream(*leaky([LEAK + "\nHere is the forecast: sunny."]))
    upstreams.script("alpha", after, stream(delta("Hello"), STOP, DONE), model="tl07")
    first, second = asked(gateway, "alpha/tl07", stream_options={"include_usage": True}), asked(gateway, "alpha/tl07")
    assert (text_of(first.body), ended(first.body)) == ("", True)
    assert (text_of(second.body), finishes_of(second.body)) == ("Hello", ["stop"])


@pytest.mark.parametrize("text", [*DIALECTS.values(), *LOOKALIKES.values()], ids=[*DIALECTS, *LOOKALIKES])
def test_tl_08_every_dialect_has_the_same_end_streamed_and_whole(
    gateway: Gateway, upstreams: Upstreams, text: str
) -> None:
    upstreams.script("alpha", stream(*leaky(list(text))), whole(completion(text)), model="tl08")
    body = asked(gateway, "alpha/tl08").body
    assert (text_of(body), ended(body)) == ("", True)
    choice = gateway.post(chat("alpha/tl08", tools=[WEATHER])).json()["choices"][0]
    whole_calls = [call["function"] for call in choice["message"].get("tool_calls") or ()]
    assert not choice["message"]["content"]
    assert [(call["name"], json.loads(call["arguments"])) for call in whole_calls] == made(body)
    assert made(body) == MADE or text in LOOKALIKES.values()


def test_tl_10_an_argument_that_holds_the_closing_tag_is_whole_or_nothing(
    gateway: Gateway, upstreams: Upstreams
) -> None:
    inner = 'see: <tool_call>{"name":"x"}</tool_call> end'
    text = f"<tool_call>\n<function=get_weather>\n<parameter=city>\n{inner}\n</parameter>\n</function>\n</tool_call>"
    upstreams.script("alpha", stream(*leaky([text])), model="tl10")
    body = asked(gateway, "alpha/tl10").body
    assert text_of(body) == ""
    assert made(body) in ([], [("get_weather", {"city": inner})])


def test_tl_11_a_prefix_that_grows_into_nothing_is_released_in_order(gateway: Gateway, upstreams: Upstreams) -> None:
    upstreams.script("alpha", stream(*leaky(["use it if a <", " b, else <func"])), model="tl11")
    answer = asked(gateway, "alpha/tl11", stream_options={"include_usage": True})
    events = events_of(answer.body)
    finish = next(at for at, each in enumerate(events) if each["choices"] and each["choices"][0]["finish_reason"])
    assert text_of(answer.body) == "use it if a < b, else <func"
    assert all(not each["choices"] or not each["choices"][0]["delta"].get("content") for each in events[finish:])
    assert ended(answer.body)


@pytest.mark.parametrize(
    ("name", "reply"), [("tl13", whole(REFUSAL, 400)), ("tl13-in", stream(IN_STREAM))], ids=["400", "in the stream"]
)
def test_tl_13_an_upstream_that_refuses_its_own_leak_is_left_and_not_cooled(
    gateway: Gateway, upstreams: Upstreams, name: str, reply: Reply
) -> None:
    upstreams.script("alpha", reply, model=name)
    upstreams.script("beta", HEALTHY, model=name)
    answer = asked(gateway, name)
    assert (answer.status, answer.headers["x-troy-attempts"]) == (200, "2")
    assert answer.headers["x-troy-model"] == f"beta/{name}"
    assert answer.headers["x-troy-leak"] == "tool_use_failed;failed_over"
    assert (locks(gateway, "alpha", name), circuit(gateway, "alpha", name)) == ([], "closed")
    assert calls(upstreams, f"alpha/{name}", f"beta/{name}") == [1, 1]


@pytest.mark.parametrize("streams", [True, False])
def test_tl_13_with_nobody_left_the_call_is_read_from_the_refusal(
    gateway: Gateway, upstreams: Upstreams, streams: bool
) -> None:
    upstreams.script("alpha", whole(REFUSAL, 400), model="tl13-last")
    if streams:
        answer = asked(gateway, "alpha/tl13-last")
        assert (made(answer.body), finishes_of(answer.body), ended(answer.body)) == (MADE, ["tool_calls"], True)
    else:
        answer = gateway.post(chat("alpha/tl13-last", tools=[WEATHER]))
        assert answer.json()["choices"][0]["message"]["tool_calls"][0]["function"]["name"] == "get_weather"
    assert (answer.status, answer.headers["x-troy-leak"]) == (200, "tool_use_failed;repaired")


def test_tl_13_where_nothing_is_repaired_the_client_gets_the_400_as_it_is(
    gateway: Gateway, upstreams: Upstreams
) -> None:
    upstreams.script("alpha", whole(REFUSAL, 400), model="tl13-as-is")
    answer = gateway.post(chat("alpha/tl13-as-is", tools=[WEATHER]), x_troy_leak_mode="suppress")
    assert (answer.status, answer.json()) == (400, json.loads(REFUSAL))
    assert circuit(gateway, "alpha", "tl13-as-is") == "closed"
