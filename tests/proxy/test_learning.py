"""What a refused parameter teaches, and that a probe gives its lease back in every case."""

from __future__ import annotations

import asyncio

import pytest

from tests.proxy.rig import (
    Rig,
    answer,
    delta,
    fault,
    finish,
    good,
    provider,
    refusal,
    role,
    stream,
)
from troyproxy.resilience.breaker import Admission

pytestmark = pytest.mark.anyio


# --- learned parameters ---

UNKNOWN_FIELD = refusal(400, "unknown field stream_options", param="stream_options")


async def test_a_learned_parameter_earns_one_retry_on_the_same_account(rig: Rig) -> None:
    rig.script(alpha=[UNKNOWN_FIELD, good()])
    served = await rig.ask(stream=True)
    assert (served.tried, b"stream_options" in rig.upstream.requests[1].body) == (["alpha#A", "alpha#A"], False)


async def test_a_422_that_points_at_the_parameter_teaches_too(rig: Rig) -> None:
    said = answer({"detail": [{"loc": ["body", "stream_options"], "msg": "extra inputs are not permitted"}]}, 422)
    rig.script(alpha=[said, good()])
    served = await rig.ask(stream=True)
    assert (served.text, len(served.tried)) == ("ok", 2)


async def test_what_was_learned_is_not_sent_again(rig: Rig) -> None:
    rig.script(alpha=[UNKNOWN_FIELD, good(), good()])
    await rig.ask(stream=True)
    await rig.ask(stream=True)
    assert b"stream_options" not in rig.upstream.requests[2].body


async def test_learning_touches_no_health(rig: Rig) -> None:
    rig.script(alpha=[UNKNOWN_FIELD, good()])
    await rig.ask(stream=True)
    assert rig.log.events == []


async def test_a_second_refusal_of_the_same_request_is_not_retried_again(rig: Rig) -> None:
    rig.script(alpha=[UNKNOWN_FIELD, UNKNOWN_FIELD], beta=good())
    served = await rig.ask(stream=True)
    assert served.tried == ["alpha#A", "alpha#A", "beta#A"]


async def test_the_next_account_gets_the_body_that_was_learned(rig: Rig) -> None:
    rig.use(provider("alpha", "m1", accounts="AB"))
    rig.script(alpha=[UNKNOWN_FIELD, refusal(429), good()])
    served = await rig.ask("alpha/m1", stream=True)
    assert served.tried == ["alpha#A", "alpha#A", "alpha#B"]


async def test_a_field_of_the_client_is_the_clients_to_correct(rig: Rig) -> None:
    rig.script(alpha=UNKNOWN_FIELD)
    served = await rig.ask("alpha/m1", stream=True, stream_options={"include_usage": True})
    assert (served.exchange.status, len(served.tried)) == (400, 1)


async def test_nothing_is_learned_when_no_attempt_is_left(rig: Rig) -> None:
    rig.set(max_attempts=1)
    rig.script(alpha=UNKNOWN_FIELD)
    served = await rig.ask("alpha/m1", stream=True)
    assert (served.exchange.status, len(served.tried)) == (400, 1)


async def test_adaptations_are_counted_and_listed_for_the_attempt_that_served(rig: Rig) -> None:
    rig.script(alpha=[UNKNOWN_FIELD, good()])
    served = await rig.ask(stream=True)
    assert (served.exchange.header("x-troy-adapted"), rig.observer.of("adapted")) == (
        None,
        [("alpha", "stream_options.include_usage", "set"), ("alpha", "stream_options", "learned")],
    )


# --- the probe's lease ---


async def _half_open(rig: Rig) -> None:
    rig.script(alpha=[fault()] * 3, beta=[answer()] * 3)
    for _ in range(3):
        await rig.ask()
        await asyncio.sleep(3)
    await asyncio.sleep(40)


def _admission(rig: Rig) -> Admission:
    return rig.health.admission("alpha", "m1")


@pytest.mark.parametrize(
    ("reply", "then"),
    [
        (answer(), Admission.ADMIT),
        (refusal(429), Admission.PROBE),
        (refusal(400), Admission.PROBE),
        (refusal(500), Admission.DENY),
        (stream(role(), delta("a"), finish()), Admission.DENY),
    ],
    ids=["good", "rate", "request", "failure", "no completion"],
)
async def test_a_probe_gives_its_lease_back_with_its_outcome(rig: Rig, reply: object, then: Admission) -> None:
    await _half_open(rig)
    rig.script(alpha=reply, beta=answer())  # type: ignore[arg-type]  # a Reply
    await rig.ask()
    assert _admission(rig) is then


async def test_a_probe_that_learns_keeps_its_lease_and_gives_it_back_once(rig: Rig) -> None:
    await _half_open(rig)
    rig.script(alpha=[UNKNOWN_FIELD, good()])
    await rig.ask(stream=True)
    assert _admission(rig) is Admission.ADMIT


async def test_a_bug_in_the_upstream_adapter_gives_the_lease_back(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    await _half_open(rig)

    async def broken(_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(rig.upstream, "send", broken)
    with pytest.raises(ZeroDivisionError):
        await rig.ask()
    assert (_admission(rig), rig.idle) == (Admission.PROBE, True)


async def test_the_trace_marks_a_probe(rig: Rig) -> None:
    await _half_open(rig)
    rig.script(alpha=answer())
    served = await rig.ask()
    assert "try alpha/m1 #A (probe)" in served.call.ledger.lines
