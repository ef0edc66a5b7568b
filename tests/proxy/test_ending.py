"""What a client is told when nobody served: the last upstream's words or ours, in the way that is still open."""

from __future__ import annotations

import json

import pytest

from tests.fakes import Reply
from tests.proxy.rig import ALPHA, DONE, Rig, answer, combo, delta, event, fault, finish, provider, refusal, stream
from troyproxy.resilience.faults import Fault

pytestmark = pytest.mark.anyio


async def test_the_last_answer_goes_out_verbatim(rig: Rig) -> None:
    body = b'{"type":"error", "error": {"type":"overloaded_error","message":"busy"}}\n'
    rig.script(alpha=refusal(500), beta=answer(body, 529))
    served = await rig.ask()
    assert (served.exchange.status, served.exchange.body, served.row.outcome) == (529, body, "upstream_error")


async def test_its_content_type_and_request_id_go_along_and_nothing_else(rig: Rig) -> None:
    rig.script(alpha=answer(b"<h1>no</h1>", 500, x_request_id="up-1", set_cookie="a=b", retry_after="99999"))
    served = await rig.ask("alpha/m1")
    names = {name for name, _ in served.exchange.raw_headers}
    assert served.exchange.header("x-troy-upstream-request-id") == "up-1"
    assert not {b"set-cookie", b"x-request-id"} & names


async def test_a_coding_that_could_not_be_undone_is_told(rig: Rig) -> None:
    rig.script(alpha=Reply(500, [b"\x1f\x9d"], ((b"content-encoding", b"compress"),)))
    served = await rig.ask("alpha/m1")
    assert served.exchange.header("content-encoding") == "compress"


async def test_a_secret_in_the_last_answer_is_masked(rig: Rig) -> None:
    rig.script(alpha=refusal(500, "bad key sk-up-alpha-A-1234567890abcd at https://alpha.example/v1?k=1"))
    served = await rig.ask("alpha/m1")
    assert served.error["message"] == "bad key *** at https://***"


@pytest.mark.parametrize(("status", "code"), [(401, "invalid_api_key"), (402, "x"), (403, "y")])
async def test_a_refusal_of_our_credential_is_502(rig: Rig, status: int, code: str) -> None:
    rig.script(alpha=refusal(status, "denied", code))
    served = await rig.ask("alpha/m1")
    assert (served.exchange.status, served.error["code"]) == (502, "upstream_auth")
    assert served.exchange.header("x-troy-upstream-status") == str(status)


async def test_masking_of_credential_refusals_can_be_turned_off(rig: Rig) -> None:
    rig.set(mask_auth=False)
    rig.script(alpha=refusal(401, "denied"))
    served = await rig.ask("alpha/m1")
    assert (served.exchange.status, served.error["message"]) == (401, "denied")


async def test_a_403_that_names_the_model_stays_what_it_is(rig: Rig) -> None:
    rig.script(alpha=refusal(403, "model m1 is not available", "model_not_found"))
    assert (await rig.ask("alpha/m1")).exchange.status == 403


async def test_a_429_about_money_stays_a_429(rig: Rig) -> None:
    rig.script(alpha=refusal(429, "no money", "insufficient_quota"))
    assert (await rig.ask("alpha/m1")).exchange.status == 429


async def test_a_redirect_is_502(rig: Rig) -> None:
    rig.script(alpha=answer(b"", 302, location="https://evil.example"))
    served = await rig.ask("alpha/m1")
    assert (served.exchange.status, served.error["code"], served.exchange.header("location")) == (
        502,
        "upstream_invalid",
        None,
    )


@pytest.mark.parametrize(
    ("kind", "status", "code"),
    [
        (Fault.CONNECT, 502, "upstream_unreachable"),
        (Fault.TLS, 502, "upstream_unreachable"),
        (Fault.TIMEOUT_CONNECT, 504, "timeout"),
        (Fault.PROTOCOL, 502, "upstream_invalid"),
        (Fault.SATURATED, 503, "overloaded"),
    ],
)
async def test_a_fault_is_told_in_our_envelope(rig: Rig, kind: Fault, status: int, code: str) -> None:
    rig.script(alpha=fault(kind))
    served = await rig.ask("alpha/m1")
    assert (served.exchange.status, served.error["code"]) == (status, code)


async def test_a_saturated_pool_cools_nobody(rig: Rig) -> None:
    rig.script(alpha=fault(Fault.SATURATED))
    await rig.ask("alpha/m1")
    assert rig.health.cooldown("alpha", "alpha#A", "m1") is None


async def test_a_leak_that_nobody_could_help_is_502(rig: Rig) -> None:
    rig.script(alpha=fault(Fault.LEAK))
    assert (await rig.ask("alpha/m1")).error["code"] == "leak"


# --- advice ---


async def test_retry_after_is_the_earliest_moment_somebody_is_back(rig: Rig) -> None:
    rig.script(alpha=refusal(429, retry_after="60"), beta=refusal(429, retry_after="7.2"))
    assert (await rig.ask()).exchange.header("retry-after") == "8"


async def test_a_member_that_was_skipped_for_its_cooldown_counts_for_retry_after(rig: Rig) -> None:
    rig.script(alpha=refusal(429, retry_after="20"), beta=refusal(429, retry_after="60"))
    await rig.ask("alpha/m1")
    assert (await rig.ask()).exchange.header("retry-after") == "20"


async def test_no_retry_after_where_a_new_request_would_find_somebody_at_once(rig: Rig) -> None:
    rig.script(alpha=refusal(500), beta=refusal(429, retry_after="60"))
    assert (await rig.ask()).exchange.header("retry-after") is None


async def test_the_retry_after_of_a_413_is_not_passed_on(rig: Rig) -> None:
    rig.script(alpha=refusal(413, "rate limit", "rate_limit_exceeded", retry_after="60"))
    served = await rig.ask("alpha/m1")
    assert (served.exchange.header("retry-after"), served.exchange.header("x-should-retry")) == (None, "false")


async def test_a_huge_hint_is_capped_for_clients_too(rig: Rig) -> None:
    rig.script(alpha=refusal(429, retry_after="604800"))
    assert (await rig.ask("alpha/m1")).exchange.header("retry-after") == "1800"


async def test_what_a_retry_may_cure_says_nothing_about_retrying(rig: Rig) -> None:
    rig.script(alpha=refusal(404, "model not found"), beta=refusal(500))
    assert (await rig.ask()).exchange.header("x-should-retry") is None


async def test_a_429_after_a_model_failure_is_worth_a_retry(rig: Rig) -> None:
    rig.script(alpha=refusal(500), beta=refusal(413))
    assert (await rig.ask()).exchange.header("x-should-retry") is None


async def test_a_bad_request_is_not_worth_a_retry(rig: Rig) -> None:
    rig.script(alpha=refusal(400))
    assert (await rig.ask()).exchange.header("x-should-retry") == "false"


# --- the story, and hiding it ---


async def test_the_story_is_told_in_headers(rig: Rig) -> None:
    rig.script(alpha=refusal(500), beta=refusal(503))
    served = await rig.ask()
    assert (served.exchange.header("x-troy-attempts"), served.exchange.header("x-troy-trail")) == (
        "2",
        "alpha/m1#A=transient,beta/m2#A=transient",
    )


@pytest.mark.parametrize("reply", [answer(b"{}", 500, x_request_id="up-1"), refusal(401, x_request_id="up-1")])
async def test_a_client_that_is_told_little_gets_three_headers(rig: Rig, reply: Reply) -> None:
    rig.set(expose="id")
    rig.script(alpha=reply)
    served = await rig.ask("alpha/m1")
    told = {name for name, _ in served.exchange.raw_headers if name.startswith(b"x-troy-")}
    assert told == {b"x-troy-request-id", b"x-troy-attempts"}


# --- the head is out already ---


async def test_after_an_early_head_a_final_failure_is_in_band(rig: Rig) -> None:
    rig.set(early_commit_s=1.0)
    rig.script(alpha=answer({"error": {"message": "busy"}}, 503, before=[2.0]))
    served = await rig.ask("alpha/m1", stream=True)
    assert (served.exchange.status, served.stream_error["message"], served.row.outcome) == (
        200,
        "busy",
        "upstream_error",
    )


@pytest.mark.parametrize("body", [b"<html>", b"", b'{"error":null}', b"[1]"])
async def test_an_odd_error_body_is_told_by_its_status(rig: Rig, body: bytes) -> None:
    rig.set(early_commit_s=1.0)
    rig.script(alpha=answer(body, 503, before=[2.0]))
    served = await rig.ask("alpha/m1", stream=True)
    assert served.stream_error["message"] == "the upstream answered 503"


async def test_our_own_error_is_in_band_after_an_early_head(rig: Rig) -> None:
    rig.set(early_commit_s=1.0)
    rig.script(alpha=stream(before=[2.0, *fault().before]))
    served = await rig.ask("alpha/m1", stream=True)
    assert (served.stream_error["code"], served.exchange.body.startswith(b": ")) == ("upstream_unreachable", True)


async def test_what_a_retry_cannot_cure_is_not_retryable_in_band(rig: Rig) -> None:
    rig.set(early_commit_s=1.0)
    rig.script(alpha=answer({"error": {"message": "bad"}}, 400, before=[2.0]))
    served = await rig.ask("alpha/m1", stream=True)
    assert served.stream_error["troy"]["retryable"] is False  # type: ignore[index]  # the envelope


async def test_a_failover_is_still_possible_after_an_early_head(rig: Rig) -> None:
    rig.set(early_commit_s=1.0)
    rig.script(alpha=answer(b"", 500, before=[2.0]), beta=stream(delta("a"), event({"choices": []}), finish(), DONE))
    served = await rig.ask(stream=True)
    assert (served.text, served.row.outcome) == ("a", "ok")


async def test_nobody_tried_names_the_skips_of_the_plan_as_well(rig: Rig) -> None:
    rig.use(ALPHA, provider("beta", "m2", accounts=""), combo("two", "alpha/m1", "beta/m2"))
    rig.script(alpha=refusal(429, retry_after="60"))
    call = rig.call()
    rig.planner.plan(call)
    await rig.ask("alpha/m1")
    served = await rig.ask(call=call)
    assert (served.exchange.status, json.loads(served.exchange.body)["error"]["details"]) == (
        503,
        [{"member": "beta/m2", "reason": "no-account"}, {"member": "alpha/m1", "reason": "cooldown"}],
    )


async def test_a_large_error_body_is_masked_whole(rig: Rig) -> None:
    rig.use(provider("alpha", "m1"), combo("one", "alpha/m1"))
    body = b'{"error": "' + b"x" * (300 * 1024) + b" https://alpha.test/v1?key=1" + b'"}'
    rig.script(alpha=answer(body, 400))
    served = await rig.ask("alpha/m1")
    assert (served.exchange.status, len(served.exchange.body) > 300 * 1024) == (400, True)
