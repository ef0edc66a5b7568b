"""Combos of file and database become one set."""

from __future__ import annotations

import pytest

from troyproxy.catalog.combos import Combo, Member
from troyproxy.catalog.models import Model
from troyproxy.catalog.providers import Origin, Provider
from troyproxy.settings.report import Report
from troyproxy.settings.wiring import known_model, wire

PROVIDERS = {"alpha": Provider("alpha", aliases=("al",), models={"gpt-x": Model("gpt-x", aliases=("gx",))})}


def combo(name: str, *members: str, origin: Origin = Origin.FILE) -> Combo:
    """Return a combo with text members; ``@x`` is a reference."""
    made = (Member(combo=m[1:]) if m.startswith("@") else Member(model=m) for m in members)
    return Combo(name, name, members=tuple(made), origin=origin)


def stored(name: str, *members: str) -> Combo:
    """Return a combo of the database."""
    return combo(name, *members, origin=Origin.DATABASE)


def wired(*combos: Combo) -> tuple[dict[str, Combo], Report]:
    """Return the combos by name, and what was reported."""
    report = Report()
    file = [c for c in combos if c.origin is Origin.FILE]
    found = wire(file, [c for c in combos if c.origin is not Origin.FILE], PROVIDERS, report)
    return {c.name: c for c in found}, report


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("alpha/anything", True),
        ("ALPHA/m", True),
        ("al/m", True),
        ("gpt-x", True),
        ("gx", True),
        ("alpha/", False),
        ("alpha", False),
        ("beta/m", False),
        ("gpt-y", False),
    ],
)
def test_a_model_is_known_by_its_provider_or_by_a_list(text: str, known: bool) -> None:
    assert known_model(PROVIDERS)(text) is known


def test_a_text_member_is_a_model_before_it_is_a_combo() -> None:
    combos, report = wired(combo("gpt-x", "gpt-x"))
    assert combos["gpt-x"].members == (Member(model="gpt-x"),)
    assert report.problems == []


def test_a_text_member_that_is_no_model_is_a_combo() -> None:
    assert wired(combo("a", "b"), combo("b", "alpha/m"))[0]["a"].members == (Member(combo="b"),)


@pytest.mark.parametrize("member", ["beta/m", "@nosuch"])
def test_a_member_that_is_neither_stays_with_a_warning(member: str) -> None:
    combos, report = wired(combo("a", member))
    assert len(combos["a"].members) == 1
    assert "is no known model and no combo; it is skipped" in report.warnings[0]


def test_a_config_that_names_in_vain_is_warned_about() -> None:
    auto = {"candidatePool": ["ALPHA", "nosuch"]}
    _, report = wired(Combo("a", "a", "auto", config={"auto": auto, "stikcy": 2}, origin=Origin.FILE))
    assert [warning.partition(",")[0] for warning in report.warnings] == [
        "combos.a: config: 'stikcy' is unknown and is not looked at; there are: sticky",
        "combos.a: candidatePool: 'nosuch' is no configured provider and is skipped",
    ]


def test_an_account_that_is_not_there_is_warned_about() -> None:
    pinned = tuple(Member(model="alpha/m", account=name) for name in ("nosuch", "alpha-keyless"))
    _, report = wired(Combo("a", "a", members=pinned, origin=Origin.FILE))
    assert report.warnings == ["combos.a: the member alpha/m is skipped: alpha has no account nosuch"]


def test_a_file_combo_hides_a_stored_one_of_its_name() -> None:
    combos, report = wired(combo("a", "alpha/m"), stored("a", "alpha/n"))
    assert combos["a"].members == (Member(model="alpha/m"),)
    assert report.warnings == ["combos.a: the database combo is hidden by the file combo a"]


def test_names_that_differ_by_case_hide_each_other_too() -> None:
    assert list(wired(combo("a", "alpha/m"), stored("A", "alpha/n"))[0]) == ["a"]


def test_a_stored_combo_whose_id_is_a_file_combos_name_is_hidden() -> None:
    other = Combo("a", "Other", members=(Member(model="alpha/n"),), origin=Origin.DATABASE)
    assert list(wired(combo("a", "alpha/m"), other)[0]) == ["a"]


@pytest.mark.parametrize(
    ("combos", "ring"),
    [
        ((combo("a", "a"),), "a → a"),
        ((combo("a", "b"), combo("b", "@a")), "a → b → a"),
        ((combo("x", "@a", "alpha/m"), combo("a", "b"), combo("b", "c"), combo("c", "a")), "a → b → c → a"),
    ],
)
def test_a_ring_in_the_file_is_a_problem_that_names_it(combos: tuple[Combo, ...], ring: str) -> None:
    assert [m for _, m in wired(*combos)[1].problems] == [f"the combos form a ring: {ring}"]


def test_a_ring_that_the_database_closes_is_a_warning() -> None:
    report = wired(combo("a", "@b"), stored("b", "@a", "alpha/m"))[1]
    assert report.problems == []
    assert report.warnings == ["combos.a: the combos form a ring, which is walked once: a → b → a"]


def test_three_levels_are_allowed() -> None:
    assert wired(combo("a", "@b"), combo("b", "@c"), combo("c", "alpha/m"))[1].problems == []


def test_a_fourth_level_is_a_problem() -> None:
    report = wired(combo("a", "@b"), combo("b", "@c"), combo("c", "@d"), combo("d", "alpha/m"))[1]
    assert report.problems == [("combos.a", "nests 4 combos deep; allowed: 3")]


def test_what_the_database_nests_too_deeply_is_a_warning() -> None:
    report = wired(stored("a", "@b"), combo("b", "@c"), combo("c", "@d"), combo("d", "alpha/m"))[1]
    assert (report.problems, report.warnings) == ([], ["combos.a: nests 4 combos deep; allowed: 3"])


def test_a_combo_named_like_a_providers_spec_is_a_problem() -> None:
    report = wired(combo("alpha/m", "alpha/m"))[1]
    assert report.problems == [('combos["alpha/m"]', "the name reads as a model of the provider alpha")]
