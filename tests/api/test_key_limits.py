"""Limits and budgets over HTTP: the whole gateway, a scripted upstream, time that only the test moves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import NoReturn

import pytest

from tests.api import house as houses
from tests.api.house import House, build
from tests.asgi import Exchange
from tests.fakes import FakeClock, FakeUpstream, Reply, settle
from tests.proxy.rig import answer, good, refusal
from troyproxy.api.wiring import Wiring
from troyproxy.catalog.keys import Key
from troyproxy.errors import StoreUnavailable
from troyproxy.proxy.authenticator import digest_of
from troyproxy.proxy.limited_keys import LOOK_S
from troyproxy.proxy.spending import EVERY_S

pytestmark = pytest.mark.anyio
SECRET = "limited-key-0123456789"
EVENING = datetime(2027, 1, 15, 23, tzinfo=UTC).timestamp()
HOUR_S = 3600.0
RATES = {"requests_per_minute": 2.0, "tokens_per_minute": 600.0}
CENT = {"budget_usd_per_day": 0.01}
PRICED = "gpt-x: {price: {input: 1000, output: 2000}, "
"""An answer of 3 and 2 tokens costs 0.007 USD."""
CHAT = "/v1/chat/completions"


@asynccontextmanager
async def opened(
    folder: Path, limits: Mapping[str, float], *replies: Reply, models: tuple[str, ...] = (), **options: object
) -> AsyncIterator[House]:
    """Run a gateway with one limited key; `alpha` answers with *replies*."""
    key = Key("key-1", "limited", digest_of(SECRET.encode()), limits=limits, models=models)
    wiring = Wiring(upstream=FakeUpstream(alpha=replies), keys=(key,))
    text = houses.FILE.replace("gpt-x: {", PRICED)
    house = build(folder, FakeClock(EVENING, manual=True), wiring=wiring, text=text, **options)
    async with house.gateway:
        yield house


async def ask(house: House, model: str = "alpha/gpt-x", **fields: object) -> Exchange:
    body = {"model": model, "messages": [{"role": "user", "content": "hello you"}], **fields}
    return await house.post(CHAT, body, authorization=f"Bearer {SECRET}")


def rates(exchange: Exchange) -> dict[str, str]:
    found = {name.decode(): value.decode() for name, value in exchange.raw_headers}
    assert len(found) == len(exchange.raw_headers)
    return {name.removeprefix("x-ratelimit-"): value for name, value in found.items() if "ratelimit" in name}


async def gauges(house: House) -> list[str]:
    text = (await house.ask("GET", "/metrics")).body.decode()
    return [line for line in text.split("\n") if line.startswith("troyproxy_budget_remaining_ratio{")]


async def test_a_limit_is_429_with_a_wait_and_lifts_by_itself(tmp_path: Path) -> None:
    async with opened(tmp_path, RATES, *[answer()] * 3) as house:
        answers = [await ask(house) for _ in range(3)]
        assert [each.status for each in answers] == [200, 200, 429]
        error = answers[-1].json()["error"]
        assert (error["code"], error["type"]) == ("rate_limited", "rate_limit_error")
        assert answers[-1].header("retry-after") == "30"
        house.clock.move(30)
        assert (await ask(house)).status == 200


async def test_an_answer_tells_where_the_key_stands(tmp_path: Path) -> None:
    async with opened(tmp_path, RATES, answer()) as house:
        told = rates(await ask(house))
    assert told == {
        "limit-requests": "2",
        "remaining-requests": "1",
        "reset-requests": "30s",
        "limit-tokens": "600",
        "remaining-tokens": "597",
        "reset-tokens": "300ms",
    }


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"{", 400),
        ({"model": "alpha/gpt-x"}, 400),
        ({"model": "local/tiny", "messages": [{"role": "user", "content": "x"}]}, 403),
        ({"model": "alpha/gpt-x", "messages": [{"role": "user", "content": "x" * 40_000}]}, 503),
    ],
)
async def test_what_is_refused_before_admission_has_the_headers_and_is_not_charged(
    tmp_path: Path, body: object, status: int
) -> None:
    async with opened(tmp_path, RATES, models=("alpha/*",)) as house:
        exchange = await house.post(CHAT, body, authorization=f"Bearer {SECRET}")
    assert (exchange.status, rates(exchange)["remaining-requests"]) == (status, "2")


async def test_a_stream_has_the_headers(tmp_path: Path) -> None:
    async with opened(tmp_path, RATES, good()) as house:
        exchange = await ask(house, stream=True)
    assert (exchange.status, rates(exchange)["remaining-requests"]) == (200, "1")


async def test_an_upstreams_refusal_has_ours_and_not_its_own_and_counts_as_a_request(tmp_path: Path) -> None:
    reply = refusal(400, "no", None, None, x_ratelimit_limit_requests="9", x_ratelimit_remaining_requests="8")
    async with opened(tmp_path, RATES, reply) as house:
        exchange = await ask(house)
    assert (exchange.status, rates(exchange)["limit-requests"], rates(exchange)["remaining-requests"]) == (
        400,
        "2",
        "1",
    )


async def test_a_key_without_limits_has_none_of_them_nor_the_upstreams(tmp_path: Path) -> None:
    reply = answer(x_ratelimit_limit_requests="9", x_ratelimit_remaining_requests="8")
    async with opened(tmp_path, {}, reply) as house:
        assert rates(await ask(house)) == {}


async def test_a_key_with_a_budget_only_has_none_of_them(tmp_path: Path) -> None:
    async with opened(tmp_path, CENT, answer()) as house:
        assert rates(await ask(house)) == {}


async def test_they_are_not_shown_where_little_is(tmp_path: Path) -> None:
    async with opened(tmp_path, RATES, *[answer()] * 2, expose="id") as house:
        answers = [await ask(house) for _ in range(3)]
    assert [rates(each) for each in answers] == [{}] * 3
    assert answers[-1].header("retry-after") == "30"


@pytest.mark.parametrize(("path", "status"), [("", 200), ("/alpha/gpt-x", 200), ("/nobody/knows", 404)])
async def test_the_list_of_models_tells_where_the_key_stands_and_costs_nothing(
    tmp_path: Path, path: str, status: int
) -> None:
    async with opened(tmp_path, RATES) as house:
        for _ in range(3):
            exchange = await house.ask("GET", f"/v1/models{path}", authorization=f"Bearer {SECRET}")
    assert (exchange.status, rates(exchange)) == (
        status,
        {
            "limit-requests": "2",
            "remaining-requests": "2",
            "reset-requests": "0s",
            "limit-tokens": "600",
            "remaining-tokens": "600",
            "reset-tokens": "0s",
        },
    )


async def test_the_list_of_models_tells_nothing_where_little_is_shown(tmp_path: Path) -> None:
    async with opened(tmp_path, RATES, expose="id") as house:
        assert rates(await house.ask("GET", "/v1/models", authorization=f"Bearer {SECRET}")) == {}


async def test_a_key_that_loses_its_budget_loses_its_gauge_without_being_used(tmp_path: Path) -> None:
    async with opened(tmp_path, {}, answer()) as house:
        made = (await house.post("/api/keys", {"name": "poor", "limits": CENT})).json()
        body = {"model": "alpha/gpt-x", "messages": [{"role": "user", "content": "hello"}]}
        await house.post(CHAT, body, authorization=f"Bearer {made['key']}")
        assert len(await gauges(house)) == 1
        await house.ask("PATCH", "/api/keys/poor", {"limits": {}})
        async with asyncio.timeout(30):
            while await gauges(house):
                await house.clock.advance(LOOK_S)
                await asyncio.sleep(0.002)
        assert await gauges(house) == []


async def test_a_cent_is_refused_after_it_is_spent_and_works_again_after_midnight_utc(tmp_path: Path) -> None:
    async with opened(tmp_path, CENT, *[answer()] * 3) as house:
        assert [(await ask(house)).status for _ in range(3)] == [200, 200, 402]
        await house.clock.advance(HOUR_S - 1)
        refused = await ask(house)
        assert (refused.status, refused.header("x-should-retry")) == (402, "false")
        assert refused.json()["error"] == {
            "message": "This key's budget of 0.01 USD per day is spent; it starts anew at 2027-01-16T00:00:00Z.",
            "type": "insufficient_quota",
            "param": None,
            "code": "budget_exceeded",
        }
        await house.clock.advance(1)
        assert (await ask(house)).status == 200


async def test_what_was_spent_is_known_after_a_restart(tmp_path: Path) -> None:
    async with opened(tmp_path, CENT, *[answer()] * 2) as house:
        assert [(await ask(house)).status for _ in range(2)] == [200, 200]
    async with opened(tmp_path, CENT) as house:
        assert (await ask(house)).status == 402


async def test_refusals_and_budgets_are_measured(tmp_path: Path) -> None:
    async with opened(tmp_path, {**CENT, "requests_per_minute": 1.0}, answer()) as house:
        await ask(house)
        await ask(house)
        text = (await house.ask("GET", "/metrics")).body.decode()
        page = await house.get("/api/status")
    assert 'troyproxy_rate_limited_total{key="limited",limit="requests"} 1.0' in text
    assert 'troyproxy_budget_remaining_ratio{key="limited",window="day"} 0.3' in text
    assert page["key_limits"] == {"shared": None}


async def test_a_database_that_cannot_be_read_refuses_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(_: str) -> NoReturn:
        raise StoreUnavailable("gone")

    async with opened(tmp_path, CENT, *[answer()] * 2) as house:
        monkeypatch.setattr(house.store.sums, "spent_since", broken)
        await settle()
        await house.clock.advance(EVERY_S)
        assert "what keys have spent cannot be read" in caplog.text
        assert [(await ask(house)).status for _ in range(3)] == [200, 200, 402]
