"""Field cases RA-03 and RA-04: every number and duration by which an upstream says when to come back."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pytest

from tests.e2e.cases.house import failed, provider
from tests.e2e.gateway import Gateway, chat, run_gateway
from tests.e2e.upstreams import Upstreams, error

LEAST_S: Final = 1.0
"""The gateway's minimum: nobody is hammered."""
MINIMUM, DEFAULT = (LEAST_S, LEAST_S), (1.8, 2.2)
"""Lowest and highest cooldown; the default is the first step of the back-off, jittered."""
PRECISE: Final[dict[str, tuple[dict[str, str], tuple[float, float]]]] = {
    "a fraction": ({"retry_after": "1.5"}, (1.5, 1.5)),
    "milliseconds beside seconds": ({"retry_after_ms": "1500", "retry_after": "2"}, (1.5, 1.5)),
    "milliseconds alone": ({"retry_after_ms": "250"}, MINIMUM),
    "fractions of milliseconds": ({"retry_after_ms": "2500.5"}, (2.5005, 2.5005)),
    "nought": ({"retry_after": "0"}, MINIMUM),
    "nought milliseconds": ({"retry_after_ms": "0"}, MINIMUM),
    "a sign": ({"retry_after": "-5"}, DEFAULT),
    "no number": ({"retry_after": "nan"}, DEFAULT),
    "infinity": ({"retry_after": "inf"}, DEFAULT),
    "an exponent": ({"retry_after": "1e3"}, DEFAULT),
    "an empty value": ({"retry_after": ""}, DEFAULT),
    "junk before a good one": ({"retry_after_ms": "soon", "retry_after": "7"}, (7, 7)),
}
BUCKETS: Final[dict[str, tuple[float, float]]] = {
    "1m30s": (90, 90),
    "6m0s": (360, 360),
    "120ms": MINIMUM,
    "2.25s": (2.25, 2.25),
    "1h2m3.5s": (3723.5, 3723.5),
    "90": (90, 90),
    "": DEFAULT,
    "-": DEFAULT,
    "1m30": DEFAULT,
}


@pytest.fixture(scope="module")
def gateway(folder: Path, upstreams: Upstreams) -> Iterator[Gateway]:
    config = {"providers": {"alpha": provider(upstreams, "alpha")}}
    with run_gateway(folder, config, TROY_MAX_COOLDOWN_MS="7200000") as running:
        yield running


def cooldown_s(
    gateway: Gateway, upstreams: Upstreams, model: str, headers: Mapping[str, str], status: int = 429
) -> float:
    """Return how long the model is left alone after this answer."""
    upstreams.script("alpha", error(status, "slow down", **headers), model=model)
    assert gateway.post(chat(f"alpha/{model}")).status == status
    return float(failed(gateway, "alpha", model)[0]["cooldown_s"])


def limits(requests: str, tokens: str = "2h0m0s", left: str = "500") -> dict[str, str]:
    """Return rate-limit headers of which the bucket of requests is empty."""
    return {
        "x_ratelimit_remaining_requests": "0",
        "x_ratelimit_reset_requests": requests,
        "x_ratelimit_remaining_tokens": left,
        "x_ratelimit_reset_tokens": tokens,
    }


@pytest.mark.parametrize("kind", PRECISE)
def test_ra_03_fractions_and_milliseconds_are_read(gateway: Gateway, upstreams: Upstreams, kind: str) -> None:
    headers, (least, most) = PRECISE[kind]
    found = cooldown_s(gateway, upstreams, f"ra03-{list(PRECISE).index(kind)}", headers)
    assert least - 1e-6 <= found <= most + 1e-6


@pytest.mark.parametrize("value", BUCKETS)
def test_ra_04_the_reset_of_the_empty_bucket_is_read(gateway: Gateway, upstreams: Upstreams, value: str) -> None:
    least, most = BUCKETS[value]
    found = cooldown_s(gateway, upstreams, f"ra04-{list(BUCKETS).index(value)}", limits(value))
    assert least - 1e-6 <= found <= most + 1e-6


def test_ra_04_a_reset_may_be_a_moment(gateway: Gateway, upstreams: Upstreams) -> None:
    moment = datetime.fromtimestamp(time.time() + 90, UTC).isoformat().replace("+00:00", "Z")
    found = cooldown_s(gateway, upstreams, "ra04-iso", limits(moment))
    assert found == pytest.approx(90, abs=3)


def test_ra_04_a_bucket_that_is_not_empty_explains_nothing(gateway: Gateway, upstreams: Upstreams) -> None:
    full = limits("1m30s") | {"x_ratelimit_remaining_requests": "3"}
    assert cooldown_s(gateway, upstreams, "ra04-full", full) <= DEFAULT[1]


def test_ra_04_of_two_empty_buckets_the_later_counts(gateway: Gateway, upstreams: Upstreams) -> None:
    assert cooldown_s(gateway, upstreams, "ra04-both", limits("1m30s", "6m0s", "0")) == 360


def test_ra_04_retry_after_wins_over_the_buckets(gateway: Gateway, upstreams: Upstreams) -> None:
    assert cooldown_s(gateway, upstreams, "ra04-wins", limits("6m0s") | {"retry_after": "3"}) == 3


@pytest.mark.parametrize("value", ["", "1m30s"])
def test_ra_04_a_503_is_a_plain_failure_whatever_its_buckets_say(
    gateway: Gateway, upstreams: Upstreams, value: str
) -> None:
    headers = limits(value, value) | {"x_ratelimit_remaining_tokens": "", "retry_after": ""}
    model = f"ra04-503-{len(value)}"
    assert cooldown_s(gateway, upstreams, model, headers, 503) == 2
    assert failed(gateway, "alpha", model)[0]["error_class"] == "transient"
