"""``troyproxy quota``: the board of the gateway, or of its database; unknown is said as such."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.cli.conftest import Shell
from tests.cli.gateways import TOKEN, FakeGateway, fake_gateway

CEILING: dict[str, Any] = {
    "plan": "free",
    "models": "*",
    "shared": False,
    "per": "organization",
    "requests_per_day": 1000,
    "tokens_per_minute": 12000,
    "confidence": "low",
    "verified_on": "2026-01-31",
    "age_days": 303,
    "stale": True,
    "source_url": "https://vendor.example",
}
USAGE = {"lower_bound": True, "requests": 12, "rate_limited": 2, "embeddings": 3, "requests_with_tokens": 9}
SIGNAL: dict[str, Any] = {"bucket": "requests", "remaining_ratio": 0.5, "at": 1.0, "age_s": 7.2, "current": True}
LOCK: dict[str, Any] = {"account": "a", "model": "*", "class": "rate", "until": 1_800_000_000.0, "soft": False}
BOARD: dict[str, Any] = {
    "worker": {"name": "main", "pid": 1},
    "now": 1_799_999_999.0,
    "day": "2027-01-15",
    "day_ends_at": 1_800_057_600.0,
    "usage_known": True,
    "providers": [
        {
            "provider": "groq",
            "state": "partly",
            "ceilings": [CEILING],
            "usage": {**USAGE, "tokens": 900},
            "accounts": [
                {
                    "account": "a",
                    "usage": {**USAGE, "tokens": 900},
                    "signals": [
                        {**SIGNAL, "limit": 60, "remaining": 30},
                        {**SIGNAL, "bucket": "tokens", "current": False},
                    ],
                    "quotas": [{"bucket": "usd/day", "limit": 5.0, "remaining_ratio": 0.25}],
                    "cooldowns": [LOCK],
                },
                {"account": "b", "usage": USAGE},
                {"account": "c"},
            ],
            "circuits": [{"model": "m1", "state": "half_open"}],
        },
        {"provider": "empty", "state": "no-account", "ceilings": [], "accounts": []},
        {"provider": "cohere", "state": "not-configured", "ceilings": [CEILING], "accounts": []},
    ],
}


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeGateway]:
    monkeypatch.setenv("TROY_ADMIN_TOKEN", TOKEN)
    with fake_gateway() as running:
        running.says("/api/admin/ai/quota", BOARD)
        monkeypatch.setenv("TROY_PORT", str(running.port))
        yield running


def names(found: Any) -> list[str]:  # noqa: ANN401 -- JSON
    return [each["provider"] for each in found["providers"]]


def test_what_is_configured_is_listed_and_the_rest_on_request(shell: Shell, fake: FakeGateway) -> None:
    assert names(shell("quota").json()) == ["groq", "empty"]
    assert names(shell("quota", "--all").json()) == ["groq", "empty", "cohere"]


def test_a_person_sees_lower_bounds_ages_and_what_is_unknown(
    shell: Shell, fake: FakeGateway, terminal: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    out = shell("quota").out
    for said in (
        "at least 12 requests (3 embeddings), at least 900 tokens, 2 refused with 429",
        "at least 12 requests (3 embeddings), tokens unknown",
        "no traffic",
        "requests: 30 of 60 left, 7 s ago; tokens: 50% left, 7 s ago, over; own usd/day: 25% of 5 left",
        "rate * until 2027-01-15T08:00:00Z, circuit half_open m1 now",
        "1,000/day, 12,000 tokens/min",
        "2026-01-31 (stale)",
        "no-account",
        "SAID BY THE UPSTREAM",
    ):
        assert said in out
    assert out.count("unknown") == 3


def test_usage_that_cannot_be_read_is_unknown_and_not_none(
    shell: Shell, fake: FakeGateway, terminal: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    bare = {"provider": "groq", "state": "unknown", "ceilings": [], "accounts": [{"account": "a"}]}
    fake.says("/api/admin/ai/quota", {**BOARD, "usage_known": False, "providers": [bare]})
    out = shell("quota").out
    assert "no traffic" not in out
    assert out.count("unknown") == 3


def test_without_a_gateway_it_is_made_from_the_database(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    shell("providers", "test", "demo")
    monkeypatch.setenv("TROY_PORT", "9")
    done = shell("quota")
    [demo] = done.json()["providers"]
    assert (demo["provider"], demo["usage"]["requests"], demo["state"]) == ("demo", 1, "ok")
    assert "From the database" in done.err


def test_without_a_token_to_ask_with_it_is_made_from_the_database(shell: Shell) -> None:
    done = shell("quota", "--all")
    assert (done.status, "no admin token" in done.err, "From the database" in done.err) == (0, True, True)


def test_an_address_that_was_given_must_answer(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TROY_ADMIN_TOKEN", TOKEN)
    assert shell("quota", "--url", "http://127.0.0.1:9").status == 1
