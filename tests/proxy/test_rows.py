from __future__ import annotations

from hashlib import sha256

import pytest

from tests.proxy.rig import Rig, answer, delta, provider, refusal, reset, stream
from troyproxy.accounting.records import AttemptRecord
from troyproxy.accounting.usage import Usage
from troyproxy.catalog.keys import Key
from troyproxy.catalog.models import Model, Price
from troyproxy.catalog.snapshot import build
from troyproxy.proxy.call import Call
from troyproxy.proxy.rows import outcome_of, row_of
from troyproxy.routing.needs import Needs

pytestmark = pytest.mark.anyio


async def test_a_served_request_keeps_who_served_it_and_for_what(rig: Rig) -> None:
    rig.use(provider("alpha", Model("m1", price=Price(input=1.0, output=2.0))))
    rig.script(alpha=answer())
    served = await rig.ask(call=rig.call("alpha/m1", key=Key("k1", "ci", b"d")))
    row = served.row
    assert (row.status, row.outcome, row.provider, row.model, row.account) == (200, "ok", "alpha", "m1", "A")
    assert (row.key_id, row.key_name, row.requested_model, row.seed) == ("k1", "ci", "alpha/m1", 7)
    assert row.cost_usd == pytest.approx(7e-6)


async def test_combo_strategy_needs_and_skips_are_kept(rig: Rig) -> None:
    rig.script(alpha=refusal(429, retry_after="60"), beta=[answer(), answer()])
    await rig.ask()
    row = (await rig.ask()).row
    assert (row.combo, row.strategy, row.skipped, row.est_tokens) == ("two", "fallback", (("alpha/m1", "cooldown"),), 1)
    assert row.needs["tools"] is False


@pytest.mark.parametrize(
    ("header", "trace"),
    [("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "0af7651916cd43dd8448eb211c80319c"), ("00-1", None)],
)
async def test_the_trace_of_the_client_is_kept(rig: Rig, header: str, trace: str | None) -> None:
    rig.script(alpha=answer())
    assert (await rig.ask(headers={"traceparent": header})).row.trace_id == trace


async def test_times_are_milliseconds(rig: Rig) -> None:
    rig.script(alpha=answer(before=[2.0]))
    served = await rig.ask()
    row = row_of(served.call, duration_s=2.5)
    assert row.duration_ms == 2500.0
    assert row.first_token_ms == pytest.approx(2000.0)


async def test_a_price_that_is_not_known_is_no_cost(rig: Rig) -> None:
    rig.script(alpha=answer())
    assert (await rig.ask()).row.cost_usd is None


async def test_nobody_who_served_is_no_cost(rig: Rig) -> None:
    rig.script(alpha=refusal(500))
    row = (await rig.ask("alpha/m1")).row
    assert (row.cost_usd, row.usage, row.first_token_ms) == (None, None, None)


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        (400, "client_error"),
        (404, "client_error"),
        (413, "client_error"),
        (429, "upstream_error"),
        (500, "upstream_error"),
    ],
)
async def test_an_upstreams_refusal_is_told_by_its_status(rig: Rig, status: int, outcome: str) -> None:
    rig.script(alpha=refusal(status))
    assert (await rig.ask("alpha/m1")).row.outcome == outcome


async def test_a_cut_stream_is_truncated(rig: Rig) -> None:
    rig.script(alpha=stream(delta("a"), reset()))
    assert (await rig.ask(stream=True)).row.outcome == "truncated"


@pytest.mark.parametrize(("status", "outcome"), [(401, "client_error"), (503, "refused")])
def test_our_own_refusal_is_told_by_its_status(status: int, outcome: str) -> None:
    call = Call("r", 0.0, 0.0, "/r")
    call.ledger.refused, call.ledger.status = True, status
    assert outcome_of(call) == outcome


def test_a_client_that_left_is_499_whatever_was_sent() -> None:
    call = Call("r", 0.0, 0.0, "/r", client_left=True)
    call.ledger.status, call.ledger.served = 200, True
    row = row_of(call, duration_s=0.0)
    assert (row.status, row.outcome) == (499, "cancelled")


@pytest.mark.parametrize(("model", "kept"), [("x" * 500, "x" * 200), (7, ""), (None, "")])
def test_the_requested_name_is_bounded_and_a_string(model: object, kept: str) -> None:
    call = Call("r", 0.0, 0.0, "/r", payload={"model": model})
    assert row_of(call, duration_s=0.0).requested_model == kept


async def test_every_need_is_kept(rig: Rig) -> None:
    rig.script(alpha=answer())
    needs = (await rig.ask()).row.needs
    assert list(needs) == list(Needs.__struct_fields__)


@pytest.mark.parametrize("told", [{"metadata": {"session_id": "s1"}}, {"session_id": "s1"}, {"prompt_cache_key": "s1"}])
def test_a_session_in_the_body_is_kept_as_a_digest(told: dict[str, object]) -> None:
    call = Call("r", 0.0, 0.0, "/r", payload={"model": "m", **told}, needs=Needs())
    kept = row_of(call, duration_s=0.0).needs["headers"]
    assert kept == {"x-troy-session": sha256(b"s1").hexdigest()[:16]}


@pytest.mark.parametrize(("names", "sent"), [({b"x-a", b"x-b"}, True), ({b"x-b"}, False), (set(), False)])
def test_whether_any_header_of_several_was_sent_is_known(names: set[bytes], sent: bool) -> None:
    call = Call("r", 0.0, 0.0, "/r", headers=((b"x-a", b"1"), (b"x-c", b"")))
    assert call.sends(frozenset(names)) is sent


def test_costs_of_a_summary_and_an_answer_are_added() -> None:
    alpha = provider("alpha", Model("m1", price=Price(input=1.0, output=2.0)))
    call = Call("r", 0.0, 0.0, "/r", snapshot=build([alpha]))
    asked = AttemptRecord("alpha", "m1", "A", "ok", 200, 0.0, 1.0, usage=Usage(1_000_000), handoff=True)
    unknown = AttemptRecord("gone", "m1", "A", "ok", 200, 0.0, 1.0, usage=Usage(1_000_000), handoff=True)
    call.ledger.attempts = [asked, unknown]
    call.ledger.serve("alpha", "m1", "A")
    call.ledger.usage = Usage(0, 1_000_000)
    assert row_of(call, duration_s=0.0).cost_usd == 3.0
