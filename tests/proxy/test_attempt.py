"""One attempt: what is sent, what an answer is taken for, and that nothing behind it is mistaken."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping

import pytest

from tests.fakes import Reply
from tests.proxy.rig import COMPLETION, Rig, answer, delta, fault, good, model, provider, refusal, reset, stream
from troyproxy.accounting.usage import Usage
from troyproxy.catalog.keys import Key
from troyproxy.catalog.providers import Timeouts
from troyproxy.ports import UpstreamFailed
from troyproxy.resilience.faults import Fault
from troyproxy.wire.glance import LARGE

pytestmark = pytest.mark.anyio


async def test_the_request_carries_the_accounts_credential_and_nothing_of_the_client(rig: Rig) -> None:
    rig.script(alpha=answer())
    await rig.ask(headers={"authorization": "Bearer gw-key", "cookie": "a=b", "x-api-key": "gw-key"})
    request = rig.upstream.requests[0]
    assert dict(request.headers)[b"authorization"] == b"Bearer sk-up-alpha-A-1234567890abcd"
    assert b"gw-key" not in b"".join(value for _, value in request.headers) + request.body


@pytest.mark.parametrize("name", ["http-referer", "x-title", "openai-beta", "accept"])
async def test_a_header_that_holds_the_clients_key_stays_here(rig: Rig, name: str) -> None:
    rig.script(alpha=answer())
    secret = "sk-troy-" + "0" * 48
    headers = {"authorization": f"Bearer {secret}", name: f"https://page/?key={secret}", "anthropic-version": "1"}
    await rig.ask(headers=headers, key=Key(id="k", name="k", digest=b""))
    sent = dict(rig.upstream.requests[0].headers)
    assert (secret.encode() in b"".join(sent.values()), sent[b"anthropic-version"]) == (False, b"1")


async def test_without_a_key_every_vendor_header_passes(rig: Rig) -> None:
    rig.script(alpha=answer())
    await rig.ask(headers={"authorization": "Bearer x", "x-title": "six"})
    assert dict(rig.upstream.requests[0].headers)[b"x-title"] == b"six"


async def test_the_body_differs_in_the_model_only(rig: Rig) -> None:
    rig.script(alpha=answer())
    served = await rig.ask("alpha/m1", temperature=0.5)
    assert rig.upstream.requests[0].body == served.call.body.replace(b"alpha/m1", b"m1")


async def test_the_path_follows_the_route(rig: Rig) -> None:
    rig.script(alpha=answer())
    await rig.ask(route="/v1/completions", prompt="hi")
    assert (rig.upstream.requests[0].method, rig.upstream.requests[0].path) == ("POST", "/completions")


async def test_an_answer_goes_out_byte_for_byte(rig: Rig) -> None:
    body = b'{ "choices" : [ {"message":{"content":"\\ud800","role":"assistant"},"finish_reason":"stop"} ], "x":1.0e2}'
    rig.script(alpha=answer(body))
    served = await rig.ask()
    assert (served.exchange.body, served.exchange.header("content-type")) == (body, "application/json")


async def test_the_content_type_says_json_whatever_the_upstream_says(rig: Rig) -> None:
    rig.script(alpha=Reply(200, answer().body, ((b"content-type", b"text/plain"),)))
    served = await rig.ask()
    assert served.exchange.header("content-type") == "application/json"


@pytest.mark.parametrize(
    "body",
    [b"", b"  ", b"<html>login</html>", b"{}", b'{"error":{"message":"x"}}', b'{"choices":[]}', b'{"choices":[{"mess'],
)
async def test_a_200_that_is_no_completion_goes_on(rig: Rig, body: bytes) -> None:
    rig.script(alpha=answer(body), beta=answer())
    served = await rig.ask()
    assert (served.exchange.json(), served.outcomes) == (COMPLETION, ["transient", "ok"])


@pytest.mark.parametrize("body", [b"", b"<html>login</html>", b"{}", b'{"error":{"message":"x"}}', b'{"choices":[]}'])
async def test_a_200_that_is_no_completion_is_502_when_nobody_is_left(rig: Rig, body: bytes) -> None:
    rig.script(alpha=answer(body))
    served = await rig.ask("alpha/m1")
    assert (served.exchange.status, served.error["code"]) == (502, "upstream_invalid")


@pytest.mark.parametrize("status", [0, 99, 101, 199, 600, 999])
@pytest.mark.parametrize("streaming", [False, True])
async def test_a_status_that_http_does_not_have_is_no_answer(rig: Rig, status: int, streaming: bool) -> None:
    rig.script(alpha=answer(b"{}", status))
    served = await rig.ask("alpha/m1", stream=streaming)
    assert (served.exchange.status, served.error["code"], served.outcomes) == (502, "upstream_invalid", ["transient"])


async def test_an_empty_message_with_a_finish_reason_is_an_answer(rig: Rig) -> None:
    empty = {"choices": [{"message": {"role": "assistant", "content": None}, "finish_reason": "content_filter"}]}
    rig.script(alpha=answer(empty))
    served = await rig.ask()
    assert (served.exchange.json(), served.outcomes) == (empty, ["ok"])


async def test_an_error_under_a_200_keeps_its_own_status(rig: Rig) -> None:
    rig.script(alpha=answer({"error": {"message": "slow down", "code": 429}}))
    served = await rig.ask("alpha/m1")
    assert (served.exchange.status, served.outcomes, served.exchange.header("x-troy-upstream-status")) == (
        429,
        ["rate"],
        "429",
    )


async def test_a_structured_billing_body_under_a_200_is_read(rig: Rig) -> None:
    rig.script(alpha=answer({"base_resp": {"status_code": 1008, "status_msg": "insufficient balance"}}))
    served = await rig.ask("alpha/m1")
    assert served.outcomes == ["quota"]


async def test_embeddings_are_answers_on_their_route(rig: Rig) -> None:
    vectors = {"object": "list", "data": [{"embedding": [0.1], "index": 0}]}
    rig.script(alpha=answer(vectors))
    served = await rig.ask("alpha/m1", route="/v1/embeddings", input="text")
    assert (served.exchange.json(), served.row.usage) == (vectors, Usage(2, 0, estimated=True))


async def test_an_answer_without_usage_is_estimated(rig: Rig) -> None:
    rig.script(alpha=answer({"choices": COMPLETION["choices"]}))
    served = await rig.ask()
    assert served.row.usage is not None
    assert served.row.usage.estimated


async def test_reported_usage_is_recorded(rig: Rig) -> None:
    rig.script(alpha=answer())
    assert (await rig.ask()).row.usage == Usage(3, 2)


def _large(value: Mapping[str, object]) -> bytes:
    return json.dumps({**value, "pad": "x" * LARGE}).encode()


@pytest.mark.parametrize("content", ["text", "t\u00e9xt", [{"type": "text", "text": "part"}]])
async def test_a_large_answer_goes_out_byte_for_byte_and_is_counted(rig: Rig, content: object) -> None:
    counted = {"prompt_tokens": 9, "completion_tokens": 32}
    answered = {"choices": [{"message": {"content": content}}], "usage": counted, "pad": "x" * LARGE}
    body = json.dumps(answered, ensure_ascii=False).encode()
    rig.script(alpha=answer(body))
    served = await rig.ask()
    assert (served.exchange.body == body, served.row.usage) == (True, Usage(9, 32))


@pytest.mark.parametrize(
    "body",
    [
        _large({"choices": []}),
        _large({"error": {"message": "no"}, "usage": {"prompt_tokens": 1, "completion_tokens": 1}}),
        _large({**COMPLETION, "usage": {"prompt_tokens": 1, "completion_tokens": 1}})[:-1],
        _large({**COMPLETION, "usage": {"prompt_tokens": 1, "completion_tokens": 1}}).replace(b"xxx", b"x\xffx", 1),
    ],
)
async def test_a_large_200_that_is_no_completion_goes_on(rig: Rig, body: bytes) -> None:
    rig.script(alpha=answer(body), beta=answer())
    served = await rig.ask()
    assert (served.exchange.json(), served.outcomes) == (COMPLETION, ["transient", "ok"])


async def test_usage_of_an_answer_that_failed_is_wasted(rig: Rig) -> None:
    lost = {"error": {"message": "x"}, "usage": {"prompt_tokens": 9, "completion_tokens": 1}}
    rig.script(alpha=answer(lost), beta=answer())
    assert (await rig.ask()).row.wasted == Usage(9, 1)


async def test_an_answer_over_the_limit_goes_on(rig: Rig) -> None:
    rig.set(max_body=1000)
    rig.script(alpha=answer(b'{"choices":[' + b" " * 2000), beta=answer())
    assert (await rig.ask()).outcomes == ["transient", "ok"]


async def test_a_large_error_body_reaches_the_client_whole(rig: Rig) -> None:
    body = json.dumps({"error": {"message": "x" * 200_000}}).encode()
    rig.script(alpha=answer(body, 500))
    assert (await rig.ask("alpha/m1")).exchange.body == body


async def test_an_error_body_is_cut_at_the_limit(rig: Rig) -> None:
    rig.set(max_body=1000)
    rig.script(alpha=Reply(500, [b"x" * 900, b"x" * 900]))
    assert len((await rig.ask("alpha/m1")).exchange.body) == 1000


@pytest.mark.parametrize("step", [1e6, reset()], ids=["slow", "reset"])
async def test_an_error_body_that_does_not_end_is_passed_on_as_far_as_it_came(
    rig: Rig, step: float | UpstreamFailed
) -> None:
    rig.script(alpha=Reply(503, [b"first", step]))
    served = await rig.ask("alpha/m1")
    assert (served.exchange.status, served.exchange.body, rig.idle) == (503, b"first", True)


async def test_a_slow_error_body_costs_ten_seconds_at_most(rig: Rig) -> None:
    rig.script(alpha=Reply(503, [b"x", 1e6]), beta=answer())
    began = rig.clock.monotonic()
    await rig.ask()
    assert rig.clock.monotonic() - began == pytest.approx(10)


async def test_a_body_that_breaks_off_goes_on(rig: Rig) -> None:
    rig.script(alpha=Reply(200, [b'{"choices', reset()]), beta=answer())
    assert (await rig.ask()).outcomes == ["transient", "ok"]


async def test_a_body_that_does_not_end_is_a_timeout(rig: Rig) -> None:
    rig.script(alpha=Reply(200, [b'{"choices', 1e6]))
    served = await rig.ask("alpha/m1")
    assert (served.exchange.status, served.call.ledger.attempts[0].reason) == (504, "timeout total: transient")


async def test_a_providers_own_deadline_beats_the_setting(rig: Rig) -> None:
    rig.use(provider("alpha", "m1", timeouts=Timeouts(total_s=7.0)))
    rig.script(alpha=answer(before=[1e6]))
    began = rig.clock.monotonic()
    await rig.ask("alpha/m1")
    assert rig.clock.monotonic() - began == 7.0


async def test_a_timeout_error_that_is_not_ours_never_restarts_a_stream(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig.script(alpha=good(), beta=good("never"))

    async def broken() -> None:
        raise TimeoutError

    call = rig.call(stream=True)
    rig.planner.plan(call)
    send = rig.upstream.send

    async def send_broken(request: object) -> object:
        response = await send(request)  # type: ignore[arg-type]  # passed on
        monkeypatch.setattr(response, "aclose", broken)
        return response

    monkeypatch.setattr(rig.upstream, "send", send_broken)
    with pytest.raises(TimeoutError):
        await rig.ask(call=call)
    assert rig.upstream.asked == ["alpha"]


async def test_time_spent_on_upstreams_is_no_overhead(rig: Rig) -> None:
    rig.script(alpha=refusal(500), beta=answer(before=[3.0]))
    served = await rig.ask()
    assert served.call.ledger.overhead_s == pytest.approx(0.0)
    assert served.call.ledger.first_token_s == pytest.approx(3.0)


async def test_the_commit_records_success_before_the_first_byte(rig: Rig) -> None:
    rig.script(alpha=stream(delta("a"), 50.0))
    task = asyncio.get_running_loop().create_task(rig.ask(stream=True))
    await asyncio.sleep(1)
    assert rig.health.state.breakers
    task.cancel()
    await asyncio.wait({task})


async def test_the_connect_limit_goes_with_the_request(rig: Rig) -> None:
    rig.set(connect_s=4.0)
    rig.script(alpha=answer())
    await rig.ask()
    assert rig.upstream.requests[0].connect_s == 4.0


async def test_no_usable_answer_at_all_is_unreachable(rig: Rig) -> None:
    rig.script(alpha=fault(), beta=fault(Fault.RESET, sent=True))
    served = await rig.ask()
    assert (served.exchange.status, served.error["code"]) == (502, "upstream_unreachable")


async def test_max_tokens_is_clamped_to_the_members_limit(rig: Rig) -> None:
    rig.use(provider("alpha", model("m1", output=100)))
    rig.script(alpha=answer())
    served = await rig.ask("alpha/m1", max_tokens=500)
    assert (served.exchange.header("x-troy-adapted"), b'"max_tokens": 100' in rig.upstream.requests[0].body) == (
        "max_tokens:100",
        True,
    )
