"""What is known of a candidate, joined: load, luck, speed, price, quotas, circuit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import MappingProxyType

import pytest
from msgspec import structs

from tests.fakes import FakeClock
from tests.proxy.planning import Desk
from tests.proxy.rig import provider
from troyproxy.accounting.finished import Finished
from troyproxy.accounting.records import AttemptRecord
from troyproxy.accounting.usage import Usage
from troyproxy.auto.factors import Standing
from troyproxy.catalog.models import Limits, Model, Price
from troyproxy.catalog.providers import NO_AUTH, Account
from troyproxy.proxy.measuring import Size
from troyproxy.proxy.outcome import Target
from troyproxy.resilience.breaker import CircuitState
from troyproxy.resilience.classes import ErrorClass
from troyproxy.resilience.classify import Verdict
from troyproxy.routing.members import Candidate, candidate_of
from troyproxy.routing.needs import Needs
from troyproxy.routing.readings import UNKNOWN, Quota, Reading

M1 = Model("m1", limits=Limits(8_000, 500), price=Price(2.0, 4.0))
ALPHA = provider("alpha", M1, accounts="AB")
A, B = ALPHA.accounts
BOTH = candidate_of(ALPHA, "m1")
ON_A, ON_B = candidate_of(ALPHA, "m1", account="A"), candidate_of(ALPHA, "m1", account="B")
SIZE = Size(1_000, 100)
LOW = ((b"x-ratelimit-limit-requests", b"10"), (b"x-ratelimit-remaining-requests", b"2"))


@pytest.fixture
def desk(clock: FakeClock) -> Desk:
    return Desk(clock)


def target(desk: Desk, account: Account = A) -> Target:
    return Target(BOTH, ALPHA, account, desk.clock.now())


@contextmanager
def attempt(desk: Desk, account: Account = A, outcome: str = "ok", ms: float = 100.0) -> Iterator[None]:
    """One attempt, in flight meanwhile."""
    at = target(desk, account)
    desk.measuring.began(at)
    yield
    record = AttemptRecord("alpha", "m1", account.name, outcome, 200, at.started_at, ms, usage=Usage(600, 400))
    desk.measuring.ended(at, record, whole=True)


def reading(desk: Desk, candidate: Candidate = ON_A, size: Size = SIZE) -> Reading:
    return desk.measuring.reading(candidate, size, desk.clock.now())


def test_an_attempt_in_flight_is_carried_and_then_counted(desk: Desk) -> None:
    with attempt(desk, ms=80.0):
        during = reading(desk)
    after = reading(desk)
    assert (during.inflight, during.recent) == (1, 0)
    assert (after.inflight, after.recent, after.last_used_at) == (0, 1, desk.clock.now())
    assert (after.success_rate, after.p50_ms) == (1.0, 80.0)


def test_an_account_is_measured_for_itself(desk: Desk) -> None:
    with attempt(desk, outcome="transient"):
        pass
    assert (reading(desk, ON_A).success_rate, reading(desk, ON_B).success_rate) == (0.0, None)


def test_nothing_measured_is_nothing_known(desk: Desk) -> None:
    assert reading(desk) == Reading(cost_usd=0.0024)


def test_without_a_provider_or_an_account_nothing_is_known(desk: Desk) -> None:
    gone = candidate_of(ALPHA, "m1", account="gone")
    assert reading(desk, gone) is UNKNOWN
    assert reading(desk, replace(ON_A, provider=None)) is UNKNOWN
    assert desk.measuring.standing(gone, desk.clock.now()) == Standing(input_usd=2.0, output_usd=4.0)


def test_a_candidate_without_a_pinned_account_is_read_as_the_combo_of_its_accounts(desk: Desk) -> None:
    for account, outcome, ms in ((A, "ok", 90.0), (B, "ok", 60.0), (B, "rate", 1.0)):
        with attempt(desk, account, outcome, ms):
            pass
    desk.measuring.heard(A, LOW)
    with attempt(desk, A), attempt(desk, B):
        both = reading(desk, BOTH)
    assert (both.inflight, both.recent, both.success_rate, both.p50_ms) == (2, 3, 1.0, 60.0)
    assert both.quotas == ()
    assert both.cost_usd == pytest.approx(0.0024)


def test_a_provider_without_keys_is_measured_too(desk: Desk) -> None:
    local = provider("local", "tiny", accounts="", auth=NO_AUTH)
    assert reading(desk, candidate_of(local, "tiny")) == Reading()


@pytest.mark.parametrize(
    ("needs", "route", "size"),
    [
        (Needs(est_tokens=1_000), "/v1/chat/completions", Size(1_000, 1_024)),
        (Needs(est_tokens=1_000, max_output=100), "/v1/chat/completions", Size(1_000, 100)),
        (Needs(est_tokens=1_000), "/v1/embeddings", Size(1_000, 0)),
        (Needs(), "/v1/rerank", Size(0, None)),
    ],
)
def test_the_size_of_a_request(needs: Needs, route: str, size: Size) -> None:
    assert Size.of(needs, route) == size


@pytest.mark.parametrize(
    ("price", "size", "cost"),
    [
        (Price(2.0, 4.0), Size(1_000_000, 100), 2.0004),
        (Price(2.0, 4.0), Size(0, 1_000), 0.002),
        (Price(0.0, 0.0), SIZE, 0.0),
        (Price(), SIZE, None),
        (Price(2.0), SIZE, None),
        (Price(2.0), Size(1_000_000, 0), 2.0),
        (Price(2.0, 4.0), Size(0, None), None),
    ],
)
def test_the_cost_of_a_request_is_that_of_its_longest_answer(
    desk: Desk, price: Price, size: Size, cost: float | None
) -> None:
    candidate = replace(ON_A, facts=replace(M1, price=price))
    assert reading(desk, candidate, size).cost_usd == (None if cost is None else pytest.approx(cost))


def test_a_reader_reads_for_one_request(desk: Desk) -> None:
    read = desk.measuring.reader(Needs(est_tokens=500_000, max_output=1), "/v1/chat/completions", desk.clock.now())
    assert read(ON_A).cost_usd == pytest.approx(1.000004)


def test_an_open_circuit_that_waits_for_a_probe_is_half_open(desk: Desk) -> None:
    for _ in range(2):
        desk.fail(ALPHA, "m1", ErrorClass.TRANSIENT)
    assert not reading(desk).half_open
    desk.clock.move(31)
    assert reading(desk).half_open


def test_a_quota_error_bars_the_account_until_its_cooldown_ends(desk: Desk) -> None:
    now = desk.clock.now()
    desk.health.failed(target(desk), Verdict.of(ErrorClass.QUOTA, "no credit", hint_s=600.0))
    assert (reading(desk, ON_A).barred_until, reading(desk, ON_B).barred_until) == (now + 600, None)
    desk.clock.move(600)
    assert reading(desk, ON_A).barred_until is None


def test_another_lock_bars_no_quota(desk: Desk) -> None:
    desk.health.failed(target(desk), Verdict.of(ErrorClass.AUTH, "no key"))
    assert reading(desk).barred_until is None


def test_own_quotas_count_requests_tokens_and_money(desk: Desk) -> None:
    own = replace(A, quota=MappingProxyType({"requests": 2, "tokens": 4_000, "usd": 0.028, "per": "day"}))
    candidate = candidate_of(replace(ALPHA, accounts=(own, B)), "m1", account="A")
    with attempt(desk):
        pass
    left = {quota.name: round(quota.remaining, 6) for quota in reading(desk, candidate).quotas}
    assert left == {"requests/day": 0.5, "tokens/day": 0.75, "usd/day": 0.9}


@pytest.mark.parametrize(("quota", "before"), [(None, 1.0), (MappingProxyType({"requests": 4, "per": "day"}), 0.75)])
def test_a_request_is_counted_once_with_a_quota_when_it_begins(
    desk: Desk, quota: MappingProxyType[str, object] | None, before: float
) -> None:
    limited = replace(A, quota=MappingProxyType({"requests": 4, "per": "day"}))

    def left() -> float:
        return desk.measuring.quotas.quotas(replace(limited), desk.clock.now())[0].remaining

    with attempt(desk, replace(A, quota=quota)):
        assert left() == before
    assert left() == 0.75


def test_what_headers_say_is_in_the_reading(desk: Desk) -> None:
    desk.measuring.heard(A, LOW)
    assert reading(desk).quotas == (Quota("requests", 0.2),)


def test_others_are_told_of_own_attempts_and_not_of_theirs(desk: Desk) -> None:
    told: list[Finished] = []
    desk.measuring.tell(told.append)
    with attempt(desk):
        pass
    desk.measuring.learn(told)
    assert [(one.account, one.ok, one.tokens) for one in told] == [("A", True, 1_000)]


def test_what_others_tell_counts_as_own(desk: Desk) -> None:
    own = replace(A, quota=MappingProxyType({"requests": 4, "per": "minute"}))
    candidate = candidate_of(replace(ALPHA, accounts=(own, B)), "m1", account="A")
    desk.measuring.learn([Finished("alpha", "m1", "A", desk.clock.now(), ok=True, latency_ms=7.0)])
    known = reading(desk, candidate)
    assert (known.recent, known.p50_ms, known.quotas[0].remaining) == (1, 7.0, 0.75)


def test_junk_from_others_is_ignored_and_a_clock_ahead_is_ours(desk: Desk) -> None:
    now = desk.clock.now()
    ahead = Finished("alpha", "m1", "A", now + 1e6, ok=True)
    desk.measuring.learn([structs.replace(ahead, tokens=-1), structs.replace(ahead, at=float("nan")), ahead])
    assert (reading(desk).recent, reading(desk).last_used_at) == (1, now)


def test_a_standing_holds_what_is_measured(desk: Desk) -> None:
    for ms in (100.0, 200.0, 300.0):
        with attempt(desk, ms=ms):
            pass
    with attempt(desk, outcome="transient"):
        pass
    desk.measuring.heard(A, LOW)
    standing = desk.measuring.standing(ON_A, desk.clock.now())
    assert (standing.circuit, standing.quota, standing.samples) == (CircuitState.CLOSED, 0.2, 3)
    assert (standing.p95_ms, standing.error_rate) == (300.0, 0.25)
    assert standing.sigma_ms == pytest.approx(81.65, abs=0.01)
    assert (standing.input_usd, standing.output_usd) == (2.0, 4.0)


def test_of_several_accounts_the_freest_quota_and_the_fastest_stand(desk: Desk) -> None:
    for account, ms in ((A, 300.0), (B, 200.0)):
        with attempt(desk, account, ms=ms):
            pass
    desk.measuring.heard(A, LOW)
    now = desk.clock.now()
    unknown_quota = desk.measuring.standing(BOTH, now)
    desk.measuring.heard(B, (LOW[0], (LOW[1][0], b"5")))
    assert (unknown_quota.quota, unknown_quota.p95_ms) == (None, 200.0)
    assert desk.measuring.standing(BOTH, now).quota == 0.5
