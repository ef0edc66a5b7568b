"""Attempts whose tool call leaked or was refused: the walk goes on, nothing cools, a refusal may hold a call."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from tests.fakes import Reply
from tests.proxy.rig import ALPHA, BETA, Rig, Served, answer, event, good, provider, refusal, role, stream
from tests.proxy.test_journey import Refusing
from troyproxy.catalog.models import Model, Price
from troyproxy.leaks.repair import Call, Repair

pytestmark = pytest.mark.anyio

TOOLS: Final = [{"type": "function", "function": {"name": "get_weather"}}]
REFUSED: Final = {
    "error": {"message": "no", "type": "invalid_request_error", "code": "tool_use_failed", "failed_generation": "x"}
}
MALFORMED: Final = {"index": 0, "delta": {}, "finish_reason": "malformed_function_call", "finish_message": "print(x)"}
REPAIR: Final = Repair((Call("call_1", "get_weather", "{}"),), "tool_calls")


def reading(rig: Rig, seen: list[tuple[str, Any]], found: Repair | None = REPAIR, **fields: object) -> Any:  # noqa: ANN401 -- a Call
    """Return a call whose refusals are read as *found*."""
    call = rig.call(**{"model": "two", "tools": TOOLS, **fields})  # type: ignore[arg-type]  # fields of the payload

    def rescue(provider: str, body: object) -> Repair | None:
        seen.append((provider, body))
        return found

    call.rescue, call.tool_turn = rescue, True
    return call


async def asked(rig: Rig, found: Repair | None = REPAIR, **fields: object) -> tuple[Served, list[tuple[str, Any]]]:
    seen: list[tuple[str, Any]] = []
    return await rig.ask(call=reading(rig, seen, found, **fields)), seen


@pytest.mark.parametrize(
    "reply",
    [
        answer(REFUSED, 400),
        answer({**REFUSED, "choices": []}),
        stream(event(REFUSED)),
        stream(role(), event({"choices": [MALFORMED]})),
        answer({"choices": [{**MALFORMED, "message": {"role": "assistant", "content": None}}]}),
        answer({"choices": [{"message": {"content": ""}, "finish_reason": "UNEXPECTED_TOOL_CALL"}]}),
    ],
    ids=["400", "in band", "an event", "gemini streamed", "gemini whole", "unexpected"],
)
async def test_a_refused_call_goes_to_the_next_member_and_touches_nobody(rig: Rig, reply: Reply) -> None:
    streams = reply.headers[0][1].startswith(b"text/event-stream")
    rig.script(alpha=reply, beta=good() if streams else answer())
    served, seen = await asked(rig, stream=streams)
    assert (served.outcomes, served.exchange.status, seen) == (["leak", "ok"], 200, [])
    assert not rig.log.events
    assert served.call.ledger.attempts[0].leak.endswith(";failed_over")


async def test_a_finish_reason_behind_text_is_no_refusal(rig: Rig) -> None:
    rig.script(alpha=stream(event({"choices": [{**MALFORMED, "delta": {"content": "Hi"}}]})))
    served, _ = await asked(rig, stream=True)
    assert (served.outcomes, served.text) == (["ok"], "Hi")


@pytest.mark.parametrize("reply", [answer(REFUSED, 400), answer({"choices": [{**MALFORMED, "message": {}}]})])
async def test_with_nobody_left_the_call_is_read_from_the_refusal(rig: Rig, reply: Reply) -> None:
    rig.script(alpha=reply)
    served, seen = await asked(rig, model="alpha/m1")
    body = served.exchange.json()
    assert [provider for provider, _ in seen] == ["alpha"]
    assert body["choices"][0]["finish_reason"] == "tool_calls"
    assert body["choices"][0]["message"]["tool_calls"][0]["function"]["name"] == "get_weather"
    assert body["model"] == "m1"
    assert (body["usage"]["total_tokens"] > 0, served.exchange.status) == (True, 200)
    assert (served.exchange.header("x-troy-model"), served.row.outcome) == ("alpha/m1", "ok")
    assert served.call.ledger.attempts[0].leak.endswith(";repaired")


async def test_a_stream_gets_the_call_as_events_and_the_usage_it_asked_for(rig: Rig) -> None:
    rig.script(alpha=stream(event(REFUSED)))
    served, _ = await asked(rig, model="alpha/m1", stream=True, stream_options={"include_usage": True})
    events = [json.loads(data) for data in served.events[:-1]]
    assert served.events[-1] == b"[DONE]"
    assert events[-1]["usage"]["completion_tokens"] > 0
    assert events[-2]["choices"][0]["finish_reason"] == "tool_calls"


async def test_a_legacy_request_gets_a_function_call_from_a_refusal(rig: Rig) -> None:
    rig.script(alpha=answer(REFUSED, 400))
    served, _ = await asked(rig, model="alpha/m1", tools=None, functions=[{"name": "get_weather"}])
    assert served.exchange.json()["choices"][0]["message"]["function_call"]["name"] == "get_weather"


async def test_a_later_failure_of_another_kind_does_not_lose_the_refusal(rig: Rig) -> None:
    rig.script(alpha=answer(REFUSED, 400), beta=refusal(429))
    served, _ = await asked(rig)
    assert (served.outcomes, served.exchange.status) == (["ok", "rate"], 200)
    assert served.exchange.header("x-troy-model") == "alpha/m1"


async def test_a_later_member_that_refuses_the_request_itself_does_not_lose_the_refusal(rig: Rig) -> None:
    rig.script(alpha=answer(REFUSED, 400), beta=refusal(400))
    served, _ = await asked(rig)
    assert (served.outcomes, served.exchange.status) == (["ok", "request"], 200)
    assert served.exchange.header("x-troy-model") == "alpha/m1"


async def test_without_a_call_in_it_the_later_refusal_is_the_answer(rig: Rig) -> None:
    rig.script(alpha=answer(REFUSED, 400), beta=refusal(400))
    served, _ = await asked(rig, None)
    assert (served.outcomes, served.exchange.status) == (["leak", "request"], 400)


async def test_a_refusal_that_holds_no_call_goes_out_as_it_is(rig: Rig) -> None:
    rig.script(alpha=answer(REFUSED, 400))
    served, _ = await asked(rig, None, model="alpha/m1")
    assert (served.exchange.status, served.exchange.json()) == (400, REFUSED)
    assert served.call.ledger.attempts[0].leak == "tool_use_failed;observed"


async def test_a_refusal_that_is_no_json_is_shown_to_the_reader_as_nothing(rig: Rig) -> None:
    rig.script(alpha=answer(b'{"error": {"code": "tool_use_failed"', 400))
    served, _ = await asked(rig, None, model="alpha/m1")
    assert served.exchange.status == 400


async def test_an_empty_answer_that_lost_its_call_is_502_where_nothing_is_rescued(rig: Rig) -> None:
    rig.script(alpha=answer({"choices": [{**MALFORMED, "message": {}}]}))
    served, _ = await asked(rig, None, model="alpha/m1")
    assert (served.exchange.status, served.error["code"]) == (502, "leak")


async def test_an_answer_that_was_left_in_vain_is_read_again(rig: Rig) -> None:
    seen: list[tuple[str, Any]] = []
    call = reading(rig, seen)
    call.gates.append(Refusing())
    rig.script(alpha=answer(), beta=refusal(429))
    served = await rig.ask(call=call)
    assert (served.exchange.status, served.outcomes) == (200, ["ok", "rate"])
    assert [provider for provider, _ in seen] == ["alpha"]
    assert [attempt.leak for attempt in call.ledger.attempts] == ["tool_use_failed;repaired", ""]


async def test_a_long_answer_that_was_left_in_vain_is_read_again_to_its_end(rig: Rig) -> None:
    seen: list[tuple[str, Any]] = []
    call = reading(rig, seen)
    call.gates.append(Refusing())
    long = {"choices": [{"index": 0, "message": {"content": "x" * 100_000}, "finish_reason": "stop"}]}
    rig.script(alpha=answer(long), beta=refusal(429))
    served = await rig.ask(call=call)
    assert (served.exchange.status, [body for _, body in seen]) == (200, [long])


async def test_where_the_latest_refusal_holds_no_call_the_one_before_is_read(rig: Rig) -> None:
    call = rig.call(model="two", tools=TOOLS)
    call.rescue, call.tool_turn = (lambda provider, _body: REPAIR if provider == "alpha" else None), True
    rig.script(alpha=answer(REFUSED, 400), beta=answer(REFUSED, 400))
    served = await rig.ask(call=call)
    assert (served.exchange.status, served.outcomes) == (200, ["ok", "leak"])
    assert served.exchange.header("x-troy-model") == "alpha/m1"


async def test_a_rejected_answer_is_wasted_and_its_cost_counts(rig: Rig) -> None:
    priced = provider("alpha", Model("m1", price=Price(input=1.0, output=1.0)))
    rig.use(priced, BETA, *[part for part in rig.snapshot.combos.values() if part.name == "two"])
    rig.script(alpha=answer(), beta=answer())
    served = await rig.ask(call=rig.call(gates=[Refusing()]))
    assert served.outcomes == ["leak", "ok"]
    assert served.row.wasted is not None
    assert served.row.cost_usd is not None
    assert served.row.cost_usd > 0


async def test_a_rejected_stream_that_reported_nothing_is_estimated(rig: Rig) -> None:
    rig.script(alpha=good(), beta=good())
    served = await rig.ask(call=rig.call(gates=[Refusing()], stream=True))
    wasted = served.call.ledger.attempts[0].usage
    assert wasted is not None
    assert wasted.estimated


async def test_finished_tool_turns_make_the_leak_rate(rig: Rig) -> None:
    rig.use(ALPHA)
    rig.script(alpha=[answer(REFUSED, 400), answer(), refusal(500)])
    for _ in range(3):
        await asked(rig, None, model="alpha/m1")
    assert rig.leak_rates.leaks("alpha", "m1") == (1, 2)


async def test_turns_without_tools_are_not_counted(rig: Rig) -> None:
    rig.script(alpha=answer(REFUSED, 400))
    await rig.ask("alpha/m1")
    assert rig.leak_rates.leaks("alpha", "m1") == (0, 0)
