"""The table of classes is complete and says what the design says."""

from __future__ import annotations

import pytest

from troyproxy.resilience.classes import RULES, BreakerEffect, ErrorClass, NextStep, Scope


@pytest.mark.parametrize("error_class", list(ErrorClass))
def test_each_class_has_a_rule(error_class: ErrorClass) -> None:
    assert error_class in RULES


@pytest.mark.parametrize("error_class", list(ErrorClass))
def test_a_class_cools_exactly_if_it_says_for_how_long(error_class: ErrorClass) -> None:
    rule = RULES[error_class]
    assert rule.cools == (rule.exponential or rule.cooldown_s is not None)


def test_only_overload_and_transient_count_against_the_breaker() -> None:
    counting = {name for name, rule in RULES.items() if rule.breaker is BreakerEffect.FAILURE}
    assert counting == {ErrorClass.OVERLOAD, ErrorClass.TRANSIENT}


def test_only_quota_and_auth_lock_the_whole_account() -> None:
    assert {name for name, rule in RULES.items() if rule.scope is Scope.ACCOUNT} == {ErrorClass.QUOTA, ErrorClass.AUTH}


def test_only_bad_requests_and_departed_clients_stop_the_walk() -> None:
    stopping = {name for name, rule in RULES.items() if rule.walk is NextStep.STOP}
    assert stopping == {ErrorClass.REQUEST, ErrorClass.CANCELLED}


def test_rate_is_the_only_exponential_class() -> None:
    assert [name for name, rule in RULES.items() if rule.exponential] == [ErrorClass.RATE]
