"""The trees of members: made once for each snapshot, and never kept past what they were made of."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.fakes import FakeClock
from tests.proxy.auto_desk import FIVE, KEYLESS, AutoDesk, with_account
from tests.proxy.rig import combo, provider
from troyproxy.errors import InvalidRequest
from troyproxy.proxy import roots as module
from troyproxy.proxy.roots import Roots
from troyproxy.routing.candidates import Candidate
from troyproxy.routing.members import Group, leaves
from troyproxy.routing.names import resolve


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
    return roots.of(call, call.resolution, desk.clock.now()).root


@pytest.mark.parametrize("model", ["auto", "auto/fast", "default", "l"])
def test_what_does_not_depend_on_the_request_is_made_once(desk: AutoDesk, roots: Roots, model: str) -> None:
    assert root(desk, roots, model) is root(desk, roots, model)


def test_a_spec_is_made_once_for_each_model(desk: AutoDesk, roots: Roots) -> None:
    assert root(desk, roots, "p0/m") is root(desk, roots, "p0/m")
    assert root(desk, roots, "p1/m") is not root(desk, roots, "p0/m")


def test_default_is_made_once_for_each_preference(desk: AutoDesk, roots: Roots) -> None:
    call = desk.call("default", key=replace(KEYLESS, provider="p2"))
    trees = [
        root(desk, roots, "default"),
        root(desk, roots, "default", x_troy_wants_tools="1"),
        root(desk, roots, "default", x_troy_provider="p3"),
        roots.of(call, resolve("default", call.snapshot), desk.clock.now()).root,
    ]
    assert [next(leaves(tree)).spec for tree in trees] == ["p0/m", "p0/m", "p3/m", "p2/m"]
    assert len(set(map(id, trees))) == 4
    assert root(desk, roots, "default", x_troy_provider="p3") is trees[2]


def test_a_tool_turn_of_default_has_those_that_drift_now_last(clock: FakeClock, desk: AutoDesk) -> None:
    late = {("p0", "m")}
    roots = Roots(clock, lambda: late)

    def first(**headers: str) -> str:
        return next(leaves(root(desk, roots, "default", **headers))).spec

    chat, tools = first(), first(x_troy_wants_tools="1")
    late.clear()
    assert (chat, tools, first(x_troy_wants_tools="1")) == ("p0/m", "p1/m", "p0/m")


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
    assert roots.of(call, draft, desk.clock.now()).root != kept


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


def test_a_tree_that_a_known_provider_in_a_header_came_with_is_not_kept(desk: AutoDesk, roots: Roots) -> None:
    kept = root(desk, roots, "p0/m")
    assert root(desk, roots, "p0/m", x_troy_provider="p1") == kept
    assert root(desk, roots, "p0/m") is kept
