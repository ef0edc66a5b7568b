"""What is measured, with real processes: it survives a kill, instances share it, upstreams' headers are heard."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.gateway import Gateway, chat, run_gateway
from tests.e2e.until import until
from tests.e2e.upstreams import HEALTHY, Upstreams, error
from tests.services import Redis, redis

COMBOS = ("kept", "shared", "heard", "refused")
"""Each a provider with two accounts; the first of `kept` and `shared` has a quota of its own."""
QUOTA = 3


@pytest.fixture(scope="module")
def server() -> Iterator[Redis]:
    with redis() as running:
        yield running


@pytest.fixture(scope="module")
def gateway(folder: Path, upstreams: Upstreams, server: Redis) -> Iterator[Gateway]:
    with instance(folder, upstreams, server) as running:
        yield running


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory, upstreams: Upstreams, server: Redis) -> Iterator[Gateway]:
    with instance(tmp_path_factory.mktemp("other"), upstreams, server) as running:
        yield running


def instance(folder: Path, upstreams: Upstreams, server: Redis) -> Any:  # noqa: ANN401 - as `run_gateway`
    limited = {"requests": QUOTA, "per": "month"}
    providers = {
        name: {
            "base_url": upstreams.base_url(name),
            "accounts": [
                {"name": "A", "api_key": "sk-up-A", **({"quota": limited} if name in {"kept", "shared"} else {})},
                {"name": "B", "api_key": "sk-up-B"},
            ],
        }
        for name in COMBOS
    }
    combos = {f"c-{name}": {"strategy": "fill-first", "members": [f"{name}/m"]} for name in COMBOS}
    return run_gateway(folder, {"providers": providers, "combos": combos}, TROY_REDIS_URL=server.url)


def account(gateway: Gateway, name: str) -> str:
    """Ask the combo of *name*, and return the trail behind the model."""
    answer = gateway.post(chat(f"c-{name}"))
    assert answer.status == 200, answer.body
    return str(answer.headers["x-troy-trail"]).replace(f"{name}/m#", "")


def leads(gateway: Gateway, name: str) -> str:
    """Return who would be asked first now; that asks nobody."""
    told = gateway.admin("POST", "/api/explain", chat(f"c-{name}")).json()
    return str(told["order"][0])


def test_what_an_account_used_of_its_quota_survives_kill_9(gateway: Gateway, upstreams: Upstreams) -> None:
    upstreams.script("kept", HEALTHY)
    asked = [account(gateway, "kept") for _ in range(QUOTA)]
    until(lambda: sum(row["provider"] == "kept" for row in gateway.rows()) == QUOTA)
    gateway.kill()
    gateway.start()
    assert (asked, account(gateway, "kept")) == (["A=ok"] * QUOTA, "B=ok")


def test_instances_count_an_accounts_quota_together(gateway: Gateway, other: Gateway, upstreams: Upstreams) -> None:
    upstreams.script("shared", HEALTHY)
    assert [account(gateway, "shared") for _ in range(QUOTA)] == ["A=ok"] * QUOTA
    until(lambda: leads(other, "shared") == "shared/m#B")
    assert account(other, "shared") == "B=ok"
    assert len(upstreams.requests("shared", key="sk-up-A")) == QUOTA


def test_an_upstream_that_says_it_is_nearly_empty_is_left(gateway: Gateway, upstreams: Upstreams) -> None:
    upstreams.script("heard", HEALTHY)
    upstreams.script(
        "heard",
        error(
            400, x_ratelimit_limit_requests="50", x_ratelimit_remaining_requests="1", x_ratelimit_reset_requests="2s"
        ),
        HEALTHY,
        key="sk-up-A",
    )
    assert gateway.post(chat("c-heard")).status == 400
    assert account(gateway, "heard") == "B=ok"
    until(lambda: account(gateway, "heard") == "A=ok")


def test_an_account_that_is_refused_for_its_quota_is_left_until_its_reset(
    gateway: Gateway, upstreams: Upstreams
) -> None:
    upstreams.script("refused", HEALTHY)
    upstreams.script("refused", error(402, retry_after="2"), HEALTHY, key="sk-up-A")
    assert account(gateway, "refused") == "A=quota,B=ok"
    until(lambda: account(gateway, "refused") == "A=ok")
