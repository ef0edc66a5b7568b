"""``GET /api/admin/ai/quota``: ceilings, usage and signals of a whole gateway. Unknown stays unknown."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from tests.api.house import House
from tests.api.test_requests import written
from tests.fakes import FakeClock
from tests.telemetry.rows import attempt, row
from troyproxy.api.admin.quota import MOST, Pace
from troyproxy.catalog.providers import Account
from troyproxy.errors import RateLimited, StoreUnavailable

pytestmark = pytest.mark.anyio
PATH = "/api/admin/ai/quota"


async def of(house: House, provider: str) -> dict[str, Any]:
    listed = (await house.get(PATH))["providers"]
    return dict(next(each for each in listed if each["provider"] == provider))


async def test_where_nothing_is_known_nothing_is_said(house: House) -> None:
    found = await of(house, "alpha")
    accounts = [{"account": "team-a"}, {"account": "team-b"}]
    assert found == {"provider": "alpha", "state": "unknown", "ceilings": [], "accounts": accounts}


async def test_a_provider_that_is_only_documented_is_there_for_reference(house: House) -> None:
    found = await of(house, "groq")
    assert (found["state"], found["accounts"]) == ("not-configured", [])
    assert {"plan", "confidence", "verified_on", "source_url", "age_days", "stale"} <= found["ceilings"][0].keys()


async def test_usage_counts_attempts_of_the_utc_day_by_account(house: House) -> None:
    now = house.clock.now()
    refused = attempt(account="team-a", status=429, outcome="rate", started_at=now)
    await written(house, row(request_id="a", at=now, attempts=(refused, attempt(account="team-b", started_at=now))))
    found = await of(house, "alpha")
    assert (found["usage"]["requests"], found["usage"]["rate_limited"]) == (1, 1)
    assert [each["usage"]["requests"] for each in found["accounts"]] == [0, 1]
    assert "tokens" not in found["usage"]


async def test_calls_of_the_day_before_do_not_count(house: House) -> None:
    await written(house, row(request_id="a", at=0.0, attempts=(attempt(account="team-a", started_at=0.0),)))
    assert "usage" not in await of(house, "alpha")


async def test_an_embedding_counts_towards_the_same_provider(house: House) -> None:
    await house.post(
        "/v1/embeddings", {"model": "demo/embed", "input": "x"}, authorization="Bearer client-key-0123456789"
    )
    await written(house)
    found = await of(house, "demo")
    assert (found["usage"]["requests"], found["usage"]["embeddings"], found["state"]) == (1, 1, "ok")


async def test_a_circuit_and_a_cooldown_are_live_signals(house: House) -> None:
    for _ in range(3):
        await house.chat("demo/fail-500")
    await house.chat("demo/fail-429")
    found = await of(house, "demo")
    assert (found["state"], found["circuits"][0]["state"]) == ("partly", "open")
    [cooldown] = [lock for lock in found["accounts"][0]["cooldowns"] if lock["model"] == "fail-429"]
    assert (cooldown["class"], cooldown["until"] > house.clock.now()) == ("rate", True)


async def test_the_day_is_that_of_utc_and_the_worker_is_named(house: House) -> None:
    body = await house.get(PATH)
    assert body["day"] == datetime.fromtimestamp(house.clock.now(), UTC).date().isoformat()
    assert (body["worker"]["name"], body["usage_known"]) == ("main", True)


async def test_without_the_database_everything_but_usage_is_told(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    async def down(day: str) -> object:
        raise StoreUnavailable(day)

    monkeypatch.setattr(house.store.sums, "used_on", down)
    body = await house.get(PATH)
    assert (body["usage_known"], len(body["providers"]) > 12) == (False, True)


async def test_it_may_not_be_cached(house: House) -> None:
    assert (await house.ask("GET", PATH)).header("cache-control") == "no-store"


async def test_it_has_a_rate_limit_of_its_own(house: House) -> None:
    for _ in range(MOST):
        await house.get(PATH)
    answer = await house.ask("GET", PATH)
    assert (answer.status, answer.json()["error"]["code"]) == (429, "rate_limited")
    assert (await house.ask("GET", "/api/status")).status == 200


def test_a_pace_is_free_again_when_its_window_has_moved(clock: FakeClock) -> None:
    pace = Pace(clock, most=2, window_s=10.0)
    pace.step()
    clock.move(4.0)
    pace.step()
    with pytest.raises(RateLimited) as refused:
        pace.step()
    assert refused.value.headers["retry-after"] == "6"
    clock.move(6.0)
    pace.step()


async def test_no_secret_is_on_the_board(house: House) -> None:
    body = (await house.ask("GET", PATH)).body
    assert [secret for secret in (b"alpha-secret", b"alpha-other", b"client-key") if secret in body] == []


async def test_what_an_upstream_said_is_shown_with_its_age(house: House) -> None:
    headers = ((b"x-ratelimit-limit-requests", b"60"), (b"x-ratelimit-remaining-requests", b"45"))
    house.services.quota._quotas.hear(Account("alpha#team-a", "alpha", "team-a"), headers, house.clock.now() - 7)
    found = await of(house, "alpha")
    [signal] = found["accounts"][0]["signals"]
    assert (signal["limit"], signal["remaining"], signal["age_s"], signal["current"]) == (60, 45, 7.0, True)
    assert (found["state"], "signals" in found["accounts"][1]) == ("ok", False)
