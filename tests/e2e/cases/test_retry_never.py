"""Field case SF-09, switched off: with `TROY_RETRY_TIMEOUTS=never` what may have been bought is bought once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.cases.house import calls, combo, keys_used, provider
from tests.e2e.gateway import Gateway, chat, run_gateway
from tests.e2e.upstreams import HANG, RESET, Upstreams, error


@pytest.fixture(scope="module")
def gateway(folder: Path, upstreams: Upstreams) -> Iterator[Gateway]:
    config = {
        "providers": {"alpha": provider(upstreams, "alpha", "AB"), "beta": provider(upstreams, "beta")},
        "combos": {f"c-{model}": combo(f"alpha/{model}", f"beta/{model}") for model in ("silent", "broken", "refused")},
    }
    limits = {"TROY_UPSTREAM_TIMEOUT_MS": "1000", "TROY_STREAM_IDLE_MS": "1000", "TROY_RETRY_TIMEOUTS": "never"}
    with run_gateway(folder, config, **limits) as running:
        yield running


@pytest.mark.parametrize("streams", [False, True])
def test_sf_09_a_timeout_ends_the_walk_when_the_operator_says_so(
    gateway: Gateway, upstreams: Upstreams, streams: bool
) -> None:
    upstreams.script("alpha", HANG, model="silent")
    before = calls(upstreams, "alpha/silent", "beta/silent")
    answer = gateway.post(chat("c-silent", stream=streams))
    after = calls(upstreams, "alpha/silent", "beta/silent")
    assert (answer.status, answer.code) == (504, "timeout")
    assert [now - then for now, then in zip(after, before, strict=True)] == [1, 0]


def test_sf_09_other_failures_still_go_on(gateway: Gateway, upstreams: Upstreams) -> None:
    upstreams.script("alpha", error(500), model="broken")
    assert gateway.post(chat("c-broken")).headers["x-troy-model"] == "beta/broken"
    assert keys_used(upstreams, "alpha", "broken") == ["A", "B"]


def test_sf_09_a_reset_is_no_timeout(gateway: Gateway, upstreams: Upstreams) -> None:
    upstreams.script("alpha", RESET, model="refused")
    assert gateway.post(chat("c-refused")).status == 200
