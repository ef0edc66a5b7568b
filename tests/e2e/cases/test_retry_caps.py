"""Field cases RA-06, RA-07 and RA-09: no upstream's number parks an account for good, and clients get a true one."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Final

import pytest

from tests.e2e.cases.house import calls, circuit, failed, keys_used, locks, provider, secret
from tests.e2e.gateway import Gateway, chat, run_gateway
from tests.e2e.until import until
from tests.e2e.upstreams import HEALTHY, Upstreams, error, whole

CAP_S: Final = 1.2
KEY_A: Final = secret("alpha", "A")
HUGE: Final[dict[str, tuple[int, str]]] = {
    "a week of 429": (429, "604800"),
    "a day of 504": (504, "86400"),
    "more than any clock": (429, "99999999999999999999"),
    "500 digits": (429, "9" * 500),
    "a date in 2099": (429, "Wed, 21 Oct 2099 07:28:00 GMT"),
    "epoch milliseconds": (429, "4102444800000"),
    "503": (503, "86400"),
    "529": (529, "86400"),
    "401": (401, "86400"),
    "402": (402, "86400"),
    "403": (403, "86400"),
    "500": (500, "86400"),
}
MODELS: Final = tuple(f"ra06-{at}" for at in range(len(HUGE)))
LATER: Final = whole(b'{"error":{"message":"limit reached, resets after 26h10m5s","code":429}}', 429)


@pytest.fixture(scope="module")
def gateway(folder: Path, upstreams: Upstreams) -> Iterator[Gateway]:
    # Locks of credentials hold a whole account, so each case has an account of its own.
    singles = {model: provider(upstreams, model, "A") for model in MODELS}
    config = {"providers": {"alpha": provider(upstreams, "alpha", "AB"), **singles}}
    with run_gateway(folder, config, TROY_MAX_COOLDOWN_MS=str(int(CAP_S * 1000))) as running:
        yield running


@pytest.mark.parametrize("kind", HUGE)
def test_ra_06_a_hint_is_capped_and_the_account_comes_back(gateway: Gateway, upstreams: Upstreams, kind: str) -> None:
    name = f"ra06-{list(HUGE).index(kind)}"
    status, retry_after = HUGE[kind]
    upstreams.script(name, error(status, "later", retry_after=retry_after), HEALTHY, model="m")
    answer = gateway.post(chat(f"{name}/m"))
    assert answer.status == (502 if status in {401, 402, 403} else status)
    assert int(answer.headers.get("retry-after", "1")) <= math.ceil(CAP_S)
    (event,) = failed(gateway, name, "m")
    assert event["cooldown_s"] == CAP_S
    until(lambda: gateway.post(chat(f"{name}/m")).status == 200)
    first, second, *_ = upstreams.requests(name, model="m")
    assert second.at - first.at >= CAP_S - 0.1
    assert not locks(gateway, name, "m")


def test_ra_06_an_operator_lifts_a_lock_at_once(gateway: Gateway, upstreams: Upstreams) -> None:
    upstreams.script("alpha", *[error(429, "later", retry_after="604800")] * 2, HEALTHY, model="ra06-cleared")
    assert gateway.post(chat("alpha/ra06-cleared")).status == 429
    assert gateway.admin("POST", "/api/cooldowns/clear", {"provider": "alpha", "model": "ra06-cleared"}).status == 200
    assert gateway.post(chat("alpha/ra06-cleared")).status == 200


def test_ra_09_a_client_is_told_when_somebody_will_be_there_and_never_nought(
    gateway: Gateway, upstreams: Upstreams
) -> None:
    for letter, wait in (("A", "1.1"), ("B", "600")):
        later = error(429, "later", retry_after=wait)
        upstreams.script("alpha", later, HEALTHY, key=secret("alpha", letter), model="ra09")
    assert gateway.post(chat("alpha/ra09")).status == 429
    told: list[tuple[float, float, int]] = []

    def served() -> bool:
        until_at = min((lock["until"] for lock in locks(gateway, "alpha", "ra09")), default=0.0)
        before = time.time()
        answer = gateway.post(chat("alpha/ra09"))
        if answer.status == 429:
            assert answer.code == "rate_limited"
            told.append((until_at - time.time(), until_at - before, int(answer.headers["retry-after"])))
        return answer.status == 200

    until(served)
    assert told
    assert all(seconds >= 1 for _, _, seconds in told)
    assert all(math.ceil(least) <= max(1, seconds) <= max(1, math.ceil(most)) for least, most, seconds in told)
    assert keys_used(upstreams, "alpha", "ra09")[:3] == ["A", "B", "A"]
    assert calls(upstreams, "alpha/ra09") == [3]


def test_ra_09_nothing_known_is_nothing_said(gateway: Gateway, upstreams: Upstreams) -> None:
    upstreams.script("alpha", error(400, "no such role"), model="ra09-bad")
    answer = gateway.post(chat("alpha/ra09-bad"))
    assert (answer.status, "retry-after" in answer.headers) == (400, False)


def test_ra_07_a_limit_that_lasts_is_not_asked_again(gateway: Gateway, upstreams: Upstreams) -> None:
    upstreams.script("alpha", LATER, key=KEY_A, model="ra07")
    answers = [gateway.post(chat("alpha/ra07")) for _ in range(50)]
    assert {answer.status for answer in answers} == {200}
    of_a = [request.at for request in upstreams.requests("alpha", model="ra07", key=KEY_A)]
    assert all(later - earlier >= CAP_S - 0.1 for earlier, later in pairwise(of_a))
    assert {event["cooldown_s"] for event in failed(gateway, "alpha", "ra07")} == {CAP_S}
    assert circuit(gateway, "alpha", "ra07") == "closed"
