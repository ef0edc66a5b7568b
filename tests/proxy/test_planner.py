"""Who may serve, in which order, who is left out and why; and what is said when nobody may."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.fakes import FakeClock
from tests.proxy.planning import Desk
from tests.proxy.rig import ALPHA, BETA, GAMMA, Rig, combo, model, provider
from troyproxy.catalog.providers import Account, Provider
from troyproxy.errors import (
    AllUnavailable,
    ContextExceeded,
    NoEligibleMember,
)
from troyproxy.proxy.call import Call
from troyproxy.resilience.classes import ErrorClass

TOOL = {"type": "function", "function": {"name": "f"}}
IMAGE = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}]}]
AUDIO = [{"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "AA", "format": "wav"}}]}]


@pytest.fixture
def desk(clock: FakeClock) -> Desk:
    return Desk(clock)


def _members(call: Call) -> list[str]:
    assert call.plan is not None
    return [candidate.spec for candidate in call.plan.candidates]


def test_members_come_in_their_order(desk: Desk, rig: Rig) -> None:
    call = rig.call("three")
    desk.planner.plan(call)
    assert _members(call) == ["alpha/m1", "beta/m2", "gamma/m4"]


def test_a_draft_touches_nothing(desk: Desk, rig: Rig) -> None:
    rig.use(ALPHA, BETA, combo("turn", "alpha/m1", "beta/m2", strategy="round-robin"))
    orders = [desk.planner.draft(rig.call("turn")).plan.candidates[0].spec for _ in range(3)]
    assert (orders, desk.observer.told) == (["alpha/m1"] * 3, [])


def test_a_plan_moves_the_cursor(desk: Desk, rig: Rig) -> None:
    rig.use(ALPHA, BETA, combo("turn", "alpha/m1", "beta/m2", strategy="round-robin"))
    firsts = []
    for _ in range(3):
        call = rig.call("turn")
        desk.planner.plan(call)
        firsts.append(_members(call)[0])
    assert firsts == ["alpha/m1", "beta/m2", "alpha/m1"]


def test_the_seed_of_the_call_decides_over_chance(desk: Desk, rig: Rig) -> None:
    rig.use(ALPHA, BETA, GAMMA, combo("any", "alpha/m1", "beta/m2", "gamma/m4", strategy="random"))
    orders = []
    for _ in range(2):
        call = rig.call("any")
        desk.planner.plan(call)
        orders.append(_members(call))
    assert orders[0] == orders[1]


@pytest.mark.parametrize(
    ("lacks", "fields", "reason"),
    [
        ({"tools": False}, {"tools": [TOOL]}, "no-tools"),
        ({"vision": False}, {"messages": IMAGE}, "no-vision"),
        ({"json": False}, {"response_format": {"type": "json_schema"}}, "no-json"),
        ({"audio": False}, {"messages": AUDIO}, "no-audio"),
    ],
)
def test_a_member_that_lacks_what_is_needed_is_skipped(
    desk: Desk, rig: Rig, lacks: dict[str, bool], fields: dict[str, object], reason: str
) -> None:
    rig.use(provider("alpha", model("m1", **lacks)), BETA, combo("two", "alpha/m1", "beta/m2"))
    call = rig.call(**fields)  # type: ignore[arg-type]  # fields of the payload
    desk.planner.plan(call)
    assert (_members(call), call.ledger.skips, desk.observer.of("skipped")) == (
        ["beta/m2"],
        f"alpha/m1={reason}",
        [("alpha", reason)],
    )


def test_unknown_capabilities_can_be_denied(clock: FakeClock, rig: Rig) -> None:
    error = Desk(clock, deny_unknown=True).refused(rig.call("alpha/m1", tools=[TOOL]))
    assert error.details == [{"member": "alpha/m1", "reason": "no-tools"}]


def test_nobody_able_is_503_with_each_reason(desk: Desk, rig: Rig) -> None:
    rig.use(
        provider("alpha", model("m1", tools=False)),
        provider("beta", model("m2", vision=False)),
        provider("gamma", model("m4", context=1000)),
        combo("three", "alpha/m1", "beta/m2", "gamma/m4"),
    )
    messages = [*IMAGE, {"role": "user", "content": "x" * 200_000}]
    error = desk.refused(rig.call("three", tools=[TOOL], messages=messages))
    assert (type(error), error.http_status, error.http_code) == (NoEligibleMember, 503, "no_eligible_member")
    assert str(error).endswith("alpha/m1: no-tools; beta/m2: no-vision; gamma/m4: context")


def test_too_long_for_everybody_tells_agents_to_compact(desk: Desk, rig: Rig) -> None:
    rig.use(
        provider("alpha", model("m1", context=1000)),
        provider("beta", model("m2", context=4000, output=100)),
        combo("two", "alpha/m1", "beta/m2"),
    )
    error = desk.refused(rig.call(messages=[{"role": "user", "content": "x" * 40_000}], max_tokens=50))
    assert (type(error), error.headers["x-should-retry"]) == (ContextExceeded, "false")
    assert "maximum context length is 4000 tokens" in str(error)
    assert "10050 tokens" in str(error)


def test_an_unknown_provider_and_a_missing_account_are_named(desk: Desk, rig: Rig) -> None:
    off = Provider("beta", accounts=(Account("beta#A", "beta", "A", active=False),))
    rig.use(provider("alpha", "m1", accounts=""), off, combo("three", "nobody/x", "alpha/m1", "beta/m2"))
    error = desk.refused(rig.call("three"))
    assert error.details == [
        {"member": "nobody/x", "reason": "unknown-provider"},
        {"member": "alpha/m1", "reason": "no-account"},
        {"member": "beta/m2", "reason": "disabled"},
    ]


def test_an_expired_token_is_no_account(desk: Desk, rig: Rig) -> None:
    rig.use(Provider("beta", accounts=(Account("beta#A", "beta", "A", token_expires_at=1.0),)))
    assert desk.refused(rig.call("beta/m2")).details == [{"member": "beta/m2", "reason": "no-account"}]


def test_a_combo_without_members_says_so(desk: Desk, rig: Rig) -> None:
    rig.use(combo("none"))
    assert str(desk.refused(rig.call("none"))).endswith("it has no members")


# --- locked ---


@pytest.mark.parametrize(("wait_s", "told"), [(0.4, "1"), (7.2, "8"), (60.0, "60")])
def test_a_rate_limited_member_alone_is_429_with_the_wait_rounded_up(
    desk: Desk, rig: Rig, wait_s: float, told: str
) -> None:
    desk.fail(ALPHA, "m1", ErrorClass.RATE, wait_s)
    error = desk.refused(rig.call("alpha/m1"))
    assert (error.http_status, error.http_code, error.headers["retry-after"]) == (429, "rate_limited", told)
    assert str(error).endswith("alpha/m1: cooldown (rate)")


def test_the_earliest_recovery_is_told(desk: Desk, rig: Rig) -> None:
    desk.fail(ALPHA, "m1", ErrorClass.RATE, 60.0)
    desk.fail(BETA, "m2", ErrorClass.RATE, 7.2)
    assert desk.refused(rig.call()).headers["retry-after"] == "8"


@pytest.mark.parametrize("error_class", [ErrorClass.QUOTA, ErrorClass.AUTH])
def test_any_other_lock_makes_it_503(desk: Desk, rig: Rig, error_class: ErrorClass) -> None:
    desk.fail(ALPHA, "m1", ErrorClass.RATE, 60.0)
    desk.fail(BETA, "m2", error_class)
    error = desk.refused(rig.call())
    assert (type(error), error.http_status, error.http_code) == (AllUnavailable, 503, "all_unavailable")


def test_a_rate_limit_beside_a_lack_is_503(desk: Desk, rig: Rig) -> None:
    rig.use(ALPHA, provider("beta", model("m2", tools=False)), combo("two", "alpha/m1", "beta/m2"))
    desk.fail(ALPHA, "m1", ErrorClass.RATE, 60.0)
    error = desk.refused(rig.call(tools=[TOOL]))
    assert (error.http_status, error.headers["retry-after"]) == (503, "60")


def test_an_open_circuit_is_503_with_its_wait(desk: Desk, rig: Rig) -> None:
    for _ in range(3):
        desk.fail(ALPHA, "m1", ErrorClass.TRANSIENT)
    error = desk.refused(rig.call("alpha/m1"))
    assert (error.http_status, error.headers["retry-after"], error.details) == (
        503,
        "30",
        [{"member": "alpha/m1", "reason": "circuit"}],
    )


def test_a_rate_limit_behind_an_open_circuit_is_503(desk: Desk, rig: Rig) -> None:
    desk.fail(ALPHA, "m1", ErrorClass.RATE, 60.0)
    for _ in range(3):
        desk.fail(ALPHA, "m1", ErrorClass.TRANSIENT)
    error = desk.refused(rig.call("alpha/m1"))
    assert (error.http_status, error.http_code, error.headers["retry-after"]) == (503, "all_unavailable", "60")


def test_told_quietly_a_lock_names_nobody(desk: Desk, rig: Rig) -> None:
    desk.fail(ALPHA, "m1", ErrorClass.RATE, 60.0)
    error = desk.refused(rig.call("alpha/m1")).envelope(quiet=True)["error"]
    assert error == {
        "message": "the model 'alpha/m1' is unavailable for now",
        "type": "rate_limit_error",
        "param": None,
        "code": "rate_limited",
    }


def test_told_quietly_what_a_request_lacks_names_nobody(desk: Desk, rig: Rig) -> None:
    rig.use(provider("beta", model("m2", tools=False)), combo("one", "beta/m2", "nobody/x"))
    assert desk.refused(rig.call("one", tools=[TOOL])).quiet == "the model 'one' cannot serve this request: no-tools"


def test_told_quietly_a_combo_of_nobody_gives_no_reason(desk: Desk, rig: Rig) -> None:
    rig.use(combo("none"))
    assert desk.refused(rig.call("none")).quiet == "the model 'none' cannot serve this request"


def test_told_quietly_a_window_that_is_too_small_is_said_without_members(desk: Desk, rig: Rig) -> None:
    rig.use(provider("beta", model("m2", context=10)))
    error = desk.refused(rig.call("beta/m2", messages=[{"role": "user", "content": "x" * 4000}]))
    assert error.quiet == str(error)
    assert error.envelope(quiet=True)["error"].keys() == {"message", "type", "param", "code"}  # type: ignore[attr-defined]


def test_a_soft_cooldown_bars_nobody(desk: Desk, rig: Rig) -> None:
    desk.fail(ALPHA, "m1", ErrorClass.TRANSIENT)
    call = rig.call("alpha/m1")
    desk.planner.plan(call)
    assert _members(call) == ["alpha/m1"]


def test_one_free_account_is_enough(desk: Desk, rig: Rig) -> None:
    two = provider("alpha", "m1", accounts="AB")
    rig.use(two)
    desk.fail(replace(two, accounts=two.accounts[:1]), "m1", ErrorClass.RATE, 60.0)
    call = rig.call("alpha/m1")
    desk.planner.plan(call)
    assert _members(call) == ["alpha/m1"]


def test_a_lock_of_one_model_leaves_the_others_alone(desk: Desk, rig: Rig) -> None:
    desk.fail(ALPHA, "m1", ErrorClass.RATE, 60.0)
    call = rig.call("alpha/m3")
    desk.planner.plan(call)
    assert _members(call) == ["alpha/m3"]


def test_local_refusals_extend_nothing(desk: Desk, rig: Rig) -> None:
    desk.fail(ALPHA, "m1", ErrorClass.RATE, 60.0)
    before = desk.health.state
    for _ in range(50):
        desk.refused(rig.call("alpha/m1"))
    assert desk.health.state is before


def test_service_is_back_right_when_the_earliest_lock_ends(desk: Desk, rig: Rig) -> None:
    desk.fail(ALPHA, "m1", ErrorClass.RATE, 60.0)
    desk.clock.move(60.0)
    call = rig.call("alpha/m1")
    desk.planner.plan(call)
    assert _members(call) == ["alpha/m1"]


def test_a_call_that_was_never_planned_has_no_moment_to_come_back(desk: Desk, rig: Rig) -> None:
    assert desk.planner.retry_in_s(rig.call()) is None


class Ticking(FakeClock):
    """Time that passes between any two looks at it, as it does outside of tests."""

    def now(self) -> float:
        self.move(1e-6)
        return super().now()


def test_a_request_that_would_find_somebody_at_once_is_not_told_to_wait_while_time_passes(rig: Rig) -> None:
    desk, call = Desk(Ticking()), rig.call("alpha/m1")
    desk.planner.plan(call)
    assert desk.planner.retry_in_s(call) is None


def test_a_lock_that_ended_meanwhile_is_a_plain_reason(desk: Desk, rig: Rig) -> None:
    desk.fail(ALPHA, "m1", ErrorClass.RATE, 5.0)
    call = rig.call("alpha/m1")
    desk.refused(call)
    desk.clock.move(10)
    error = desk.planner.unavailable(call, desk.planner.members(call), call.ledger.skipped)
    assert (str(error).endswith("alpha/m1: cooldown"), error.headers["retry-after"]) == (True, "1")


def test_a_long_list_of_reasons_is_cut_in_the_message_and_not_in_the_details(desk: Desk, rig: Rig) -> None:
    rig.use(combo("many", *[f"nobody{number}/x" for number in range(30)]))
    error = desk.refused(rig.call("many"))
    assert (str(error).count("unknown-provider"), len(error.details)) == (20, 30)  # type: ignore[arg-type]  # a list
