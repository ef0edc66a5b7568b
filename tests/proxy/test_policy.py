from __future__ import annotations

from dataclasses import replace

import pytest

from troyproxy.catalog.providers import Provider, Timeouts
from troyproxy.proxy.policy import WalkPolicy, attempt_limit_s, health_policy
from troyproxy.settings.values import Settings

OWN = Provider("alpha", timeouts=Timeouts(connect_s=1, first_byte_s=2, first_output_s=3, idle_s=4, total_s=5))


def test_the_settings_are_taken_over_in_seconds_and_bytes() -> None:
    settings = replace(
        Settings(),
        connect_timeout_ms=1500,
        max_body_mb=2,
        retry_timeouts="never",
        unknown_capability="deny",
        upstream_auth_errors="verbatim",
        expose="id",
    )
    policy = WalkPolicy.of(settings)
    assert (policy.connect_s, policy.max_body, policy.retry_timeouts, policy.deny_unknown) == (
        1.5,
        2 << 20,
        False,
        True,
    )
    assert (policy.mask_auth, policy.expose) == (False, "id")


def test_the_defaults_of_both_agree() -> None:
    assert WalkPolicy.of(Settings()) == WalkPolicy()


def test_breakers_go_by_the_settings() -> None:
    policy = health_policy(replace(Settings(), breaker_failures=9, breaker_open_s=7))
    assert (policy.breaker.failures, policy.breaker.open_s) == (9, 7)


def test_a_providers_own_deadlines_win() -> None:
    policy = WalkPolicy()
    own = (
        policy.connect_of(OWN),
        policy.first_byte_of(OWN, stream=True),
        policy.first_output_of(OWN),
        policy.idle_of(OWN),
        policy.first_byte_of(OWN, stream=False),
    )
    assert own == (1, 2, 3, 4, 5)


def test_without_its_own_the_settings_decide() -> None:
    policy, plain = WalkPolicy(), Provider("alpha")
    found = (
        policy.connect_of(plain),
        policy.first_byte_of(plain, stream=True),
        policy.first_output_of(plain),
        policy.idle_of(plain),
        policy.first_byte_of(plain, stream=False),
    )
    assert found == (10.0, 60.0, 300.0, 60.0, 300.0)


@pytest.mark.parametrize(
    ("own_s", "left_s", "later", "limit_s"), [(300, 600, 2, 300), (300, 100, 2, 90), (300, 8, 3, 5), (2, 8, 3, 2)]
)
def test_an_attempt_leaves_five_seconds_to_each_later_member(
    own_s: float, left_s: float, later: int, limit_s: float
) -> None:
    assert attempt_limit_s(own_s, left_s, later) == limit_s
