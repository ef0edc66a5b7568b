"""What is remembered of who served last: for whom, for how long, and what makes it forgotten."""

from __future__ import annotations

import pytest

from tests.fakes import FakeClock
from tests.proxy.auto_desk import AutoDesk
from tests.proxy.rig import ALPHA, BETA, combo, provider
from troyproxy.catalog.keys import Key
from troyproxy.proxy.draft import recalled, remembered
from troyproxy.proxy.memory import BOUND, GoodTarget, TargetMemory, account_name, identity_in, key_of, session_of
from troyproxy.resilience.classes import ErrorClass, Scope
from troyproxy.resilience.events import CircuitClosed, CircuitOpened, Cleared, Event, Failed, Locked, Succeeded
from troyproxy.routing.members import expand

KEY = ("k1", "-", "c@0.0", "")
OTHER = ("k2", "-", "c@0.0", "")
NOW = 1_800_000_000.0


def failed(scope: Scope, *, cooldown_s: float | None = 5.0, account: str = "alpha#A", model: str = "m1") -> Failed:
    return Failed(NOW, "alpha", model, account, ErrorClass.RATE, None, cooldown_s, False, scope, NOW)


@pytest.fixture
def memory(clock: FakeClock) -> TargetMemory:
    made = TargetMemory(clock)
    made.served([KEY], "alpha", "m1", "A")
    return made


@pytest.fixture
def desk(clock: FakeClock) -> AutoDesk:
    lkgp = combo("l", "alpha/m1", "beta/m2", strategy="lkgp")
    relay = combo("r", "alpha/m1", "beta/m2", strategy="context-relay")
    return AutoDesk(clock, ALPHA, BETA, lkgp, relay, combo("f", "alpha/m1"))


def known(memory: TargetMemory) -> str | None:
    found = memory.last(KEY)
    return None if found is None else found.identity


def test_a_success_is_remembered_for_its_key_only(memory: TargetMemory) -> None:
    assert (known(memory), memory.last(OTHER)) == ("alpha/m1#A", None)


def test_a_success_without_keys_is_not_remembered(clock: FakeClock) -> None:
    memory = TargetMemory(clock)
    memory.served([], "alpha", "m1", "A")
    assert known(memory) is None


def test_it_lasts_fifteen_minutes_from_the_latest_success_and_looking_adds_nothing(
    memory: TargetMemory, clock: FakeClock
) -> None:
    clock.move(600.0)
    memory.served([KEY], "alpha", "m1", "A")
    clock.move(899.0)
    assert known(memory) == "alpha/m1#A"
    clock.move(1.0)
    assert known(memory) is None


def test_a_failure_is_forgotten_by_whoever_remembers_the_target(memory: TargetMemory) -> None:
    memory.served([OTHER], "alpha", "m1", "A")
    memory.failed("alpha", "m1", "A")
    assert (known(memory), memory.last(OTHER)) == (None, None)


def test_a_success_of_somebody_else_after_a_failure_does_not_bring_ours_back(memory: TargetMemory) -> None:
    memory.failed("alpha", "m1", "A")
    memory.served([OTHER], "alpha", "m1", "A")
    assert (known(memory), memory.last(OTHER) is not None) == (None, True)


def test_a_failure_of_another_target_changes_nothing(memory: TargetMemory) -> None:
    for other in (("alpha", "m1", "B"), ("alpha", "m2", "A"), ("beta", "m1", "A")):
        memory.failed(*other)
    assert known(memory) == "alpha/m1#A"


@pytest.mark.parametrize(
    "event",
    [
        CircuitOpened(NOW, "alpha", "m1", NOW + 30.0, 30.0),
        Locked(NOW, "alpha", "alpha#A", "m1", NOW + 30.0, False, ErrorClass.RATE),
        Locked(NOW, "alpha", "alpha#A", "*", NOW + 30.0, True, ErrorClass.QUOTA),
        failed(Scope.PAIR),
        failed(Scope.ACCOUNT, model="m9"),
        failed(Scope.MODEL, account="alpha#B"),
    ],
)
def test_a_circuit_or_a_cooldown_over_the_target_forgets_it_for_good(memory: TargetMemory, event: Event) -> None:
    memory.hear(event)
    assert known(memory) is None


@pytest.mark.parametrize(
    "event",
    [
        CircuitOpened(NOW, "alpha", "m2", NOW + 30.0, 30.0),
        CircuitClosed(NOW, "alpha", "m1"),
        Locked(NOW, "alpha", "alpha#B", "m1", NOW + 30.0, False, ErrorClass.RATE),
        failed(Scope.PAIR, cooldown_s=None),
        failed(Scope.PAIR, account="alpha#B"),
        Succeeded(NOW, "alpha", "m1", "alpha#A", NOW),
        Cleared(NOW),
    ],
)
def test_what_concerns_others_or_does_no_harm_changes_nothing(memory: TargetMemory, event: Event) -> None:
    memory.hear(event)
    assert known(memory) == "alpha/m1#A"


def test_a_provider_whose_accounts_are_gone_is_forgotten(memory: TargetMemory) -> None:
    memory.failed("alpha", "*", "*")
    assert known(memory) is None


def test_a_combo_that_is_another_now_is_forgotten(memory: TargetMemory) -> None:
    memory.served([("k1", "-", "cc@0.0", "")], "alpha", "m1", "A")
    memory.forget_combo("c")
    assert (known(memory), memory.last(("k1", "-", "cc@0.0", "")) is not None) == (None, True)


def test_it_is_bounded(memory: TargetMemory) -> None:
    memory.served([("k", str(at), "c@0.0", "") for at in range(BOUND)], "alpha", "m1", "A")
    assert known(memory) is None


@pytest.mark.parametrize(
    ("account_id", "name"), [("alpha#A", "A"), ("alpha#keyless", "alpha-keyless"), ("*", "*"), ("other#A", "other#A")]
)
def test_an_account_is_known_by_its_name(account_id: str, name: str) -> None:
    assert account_name("alpha", account_id) == name


def test_a_keyless_target_is_forgotten_when_it_cools_down(clock: FakeClock) -> None:
    memory = TargetMemory(clock)
    memory.served([KEY], "local", "m", "local-keyless")
    memory.hear(Locked(NOW, "local", "local#keyless", "m", NOW + 9.0, False, ErrorClass.RATE))
    assert known(memory) is None


def test_a_target_is_found_pinned_or_not(desk: AutoDesk) -> None:
    target = GoodTarget("alpha", "m1", "A", 0)
    plain = expand(desk.snapshot.combos["r"], desk.snapshot)
    assert (identity_in(target, plain), identity_in(None, plain)) == ("alpha/m1", None)
    pinned = expand(combo("p", "alpha/m1"), desk.snapshot)
    assert identity_in(target, pinned) == "alpha/m1"


# --- for whom ---


@pytest.mark.parametrize(
    ("fields", "headers", "session"),
    [
        ({}, {}, None),
        ({}, {"x-troy-session": "h"}, "h"),
        ({"metadata": {"session_id": "m"}}, {}, "m"),
        ({"metadata": {"conversation_id": "c"}}, {}, "c"),
        ({"prompt_cache_key": "p"}, {}, "p"),
        ({"session_id": "s", "metadata": {"session_id": "m"}}, {"x-troy-session": "h"}, "h"),
        ({"session_id": 7, "metadata": "odd"}, {}, None),
        ({"session_id": ""}, {"x-troy-session": ""}, None),
    ],
)
def test_a_session_is_what_the_client_names(
    desk: AutoDesk, fields: dict[str, object], headers: dict[str, str], session: str | None
) -> None:
    assert session_of(desk.call("f", headers=headers, **fields)) == session  # type: ignore[arg-type]  # of the payload


def test_two_keys_with_one_session_share_nothing(desk: AutoDesk) -> None:
    one, two = (desk.call("l", key=Key(name, name, b""), session_id="s") for name in ("k1", "k2"))
    shared = desk.snapshot.combos["l"]
    assert key_of(one, shared) != key_of(two, shared)


def test_a_session_is_kept_as_a_digest_and_long_ones_differ_to_their_end(desk: AutoDesk) -> None:
    shared = desk.snapshot.combos["l"]
    keys = {key_of(desk.call("l", session_id="alice" * 500 + end), shared) for end in "xy"}
    assert len(keys) == 2
    assert all("alice" not in part for key in keys for part in key)


def test_odd_text_in_a_session_is_no_error(desk: AutoDesk) -> None:
    assert key_of(desk.call("l", session_id="\ud800"), desk.snapshot.combos["l"])[1] != "-"


# --- the strategies that remember ---


def test_lkgp_remembers_with_and_without_a_session_and_context_relay_only_with(desk: AutoDesk) -> None:
    counted = {}
    for name in ("l", "r", "f"):
        group = expand(desk.snapshot.combos[name], desk.snapshot)
        for session in ("", "s"):
            counted[name, bool(session)] = len(list(remembered(desk.call(name, session_id=session), [group], None)))
    assert counted == {
        ("l", False): 1,
        ("l", True): 1,
        ("r", False): 0,
        ("r", True): 1,
        ("f", False): 0,
        ("f", True): 0,
    }


@pytest.mark.parametrize(("name", "session", "expected"), [("l", "", True), ("r", "", False), ("r", "s", True)])
def test_what_was_remembered_leads(desk: AutoDesk, name: str, session: str, expected: bool) -> None:
    headers = {"x-troy-session": session}
    call = desk.plan(name, headers=headers)
    desk.auto.memory.served(call.remember, "beta", "m2", "A")
    again = desk.plan(name, headers=headers)
    assert again.plan is not None
    assert (again.plan.candidates[0].spec == "beta/m2") is expected


def test_another_strategy_recalls_nothing(desk: AutoDesk) -> None:
    call, group = desk.call("f"), expand(desk.snapshot.combos["f"], desk.snapshot)
    desk.auto.memory.served([key_of(call, group.combo)], "alpha", "m1", "A")
    assert recalled(desk.auto.memory, call, group) is None


def test_of_two_accounts_the_one_that_served_leads(clock: FakeClock) -> None:
    twins = provider("alpha", "m1", accounts="AB")
    desk = AutoDesk(clock, twins, combo("l", "alpha/m1", strategy="lkgp"))
    desk.auto.memory.served(desk.plan("l").remember, "alpha", "m1", "B")
    plan = desk.plan("l").plan
    assert plan is not None
    assert [candidate.account for candidate in plan.candidates] == ["B", "A"]


def test_a_lock_of_a_while_hides_and_then_leaves_nothing_known(desk: AutoDesk) -> None:
    call = desk.plan("l")
    desk.auto.memory.served(call.remember, "alpha", "m1", "A")
    desk.fail(ALPHA, "m1", ErrorClass.RATE)
    desk.clock.move(60.0)
    group = expand(desk.snapshot.combos["l"], desk.snapshot)
    assert recalled(desk.auto.memory, desk.call("l"), group) is None
