"""The trees of members: made once for each snapshot, and never kept past what they were made of."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.fakes import FakeClock
from tests.proxy.auto_desk import FIVE, AutoDesk, with_account
from tests.proxy.rig import combo, provider
from troyproxy.errors import InvalidRequest
from troyproxy.proxy import roots as module
from troyproxy.proxy.roots import Roots
from troyproxy.routing.candidates import Candidate
from troyproxy.routing.members import Group, leaves


@pytest.fixture
def desk(clock: FakeClock) -> AutoDesk:
    return AutoDesk(clock, *FIVE, combo("l", "p0/m", "p1/m", strategy="lkgp"))


@pytest.fixture
def roots(clock: FakeClock) -> Roots:
    return Roots(clock)


def root(desk: AutoDesk, roots: Roots, model: str = "auto", **headers: str) -> Group:
    call = desk.call(model, headers={name.replace("_", "-"): value for name, value in headers.items()})
    assert call.resolution is not None
    assert call.needs is not None
    return roots.of(call, call.resolution, call.needs)


@pytest.mark.parametrize("model", ["auto", "auto/fast", "l"])
def test_a_combo_or_an_auto_id_is_made_once(desk: AutoDesk, roots: Roots, model: str) -> None:
    assert root(desk, roots, model) is root(desk, roots, model)


@pytest.mark.parametrize("model", ["p0/m", "default"])
def test_what_depends_on_the_request_is_made_for_it(desk: AutoDesk, roots: Roots, model: str) -> None:
    assert root(desk, roots, model) is not root(desk, roots, model)


def test_a_new_snapshot_makes_them_anew(desk: AutoDesk, roots: Roots) -> None:
    before = root(desk, roots)
    desk.use(*FIVE)
    assert root(desk, roots) is not before


def test_a_combo_that_is_no_part_of_the_snapshot_is_made_for_itself(desk: AutoDesk, roots: Roots) -> None:
    kept, call = root(desk, roots, "l"), desk.call("l")
    assert call.resolution is not None
    assert call.resolution.combo is not None
    assert call.needs is not None
    draft = replace(call.resolution, combo=replace(call.resolution.combo, members=()))
    assert roots.of(call, draft, call.needs) != kept


def test_a_member_stands_for_the_accounts_that_may_carry_it_now(clock: FakeClock) -> None:
    twins = provider("p", "m", accounts="AB")
    first, second = twins.accounts
    ending = replace(twins, accounts=(replace(first, token_expires_at=clock.now() + 60.0), second))
    desk, roots = AutoDesk(clock, ending, combo("l", "p/m", strategy="lkgp")), Roots(clock)
    before = root(desk, roots, "l")
    assert [leaf.account for leaf in leaves(before)] == ["A", "B"]
    clock.move(59.0)
    assert root(desk, roots, "l") is before
    clock.move(1.0)
    assert [leaf.account for leaf in leaves(root(desk, roots, "l"))] == ["B"]


def test_an_unknown_provider_in_a_header_is_refused_although_the_tree_is_there(desk: AutoDesk, roots: Roots) -> None:
    root(desk, roots)
    with pytest.raises(InvalidRequest, match="x-troy-provider"):
        root(desk, roots, x_troy_provider="nobody")


def test_they_are_bounded(desk: AutoDesk, roots: Roots, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST", 1)
    monkeypatch.setattr(module, "MOST_CARRIED", 1)
    before = root(desk, roots)
    for member in leaves(before):
        assert [account.name for account in roots.carriers(member)] == ["A"]
    root(desk, roots, "auto/fast")
    assert root(desk, roots) is not before


def test_nobody_carries_a_member_without_a_provider_or_account(clock: FakeClock, roots: Roots) -> None:
    off = with_account(FIVE[0], active=False)
    desk = AutoDesk(clock, off)
    (member,) = leaves(root(desk, roots))
    assert roots.carriers(member) == roots.carriers(member) == ()
    assert roots.carriers(Candidate("no/x", None, "x")) == ()
