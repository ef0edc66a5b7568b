"""Label values come from closed sets."""

from __future__ import annotations

import pytest

from troyproxy.catalog.combos import Combo, Member
from troyproxy.catalog.models import Model
from troyproxy.catalog.providers import Provider
from troyproxy.catalog.snapshot import Snapshot, build
from troyproxy.telemetry.labels import MAX_KEYS, OTHER, Bounded, KnownModels, Labels, one_of, status_label


@pytest.fixture
def labels() -> Labels:
    return Labels(lambda: {"alpha": {"m1", "m2"}}, lambda: {"combo1"}, max_models=1)


@pytest.mark.parametrize(("name", "shown"), [("alpha", "alpha"), ("nobody", OTHER), ("", OTHER), (None, OTHER)])
def test_a_provider_is_shown_if_it_is_configured(labels: Labels, name: str | None, shown: str) -> None:
    assert labels.provider(name) == shown


@pytest.mark.parametrize(
    ("provider", "model", "shown"),
    [
        ("alpha", "m1", ("alpha", "m1")),
        ("alpha", "m9", ("alpha", OTHER)),
        ("alpha", None, ("alpha", OTHER)),
        ("beta", "m1", (OTHER, OTHER)),
        (None, "m1", (OTHER, OTHER)),
    ],
)
def test_a_model_is_shown_if_its_provider_has_it(
    labels: Labels, provider: str | None, model: str | None, shown: tuple[str, str]
) -> None:
    assert labels.target(provider, model) == shown


def test_beyond_the_bound_known_models_are_other_too(labels: Labels) -> None:
    first = labels.target("alpha", "m1")
    assert (first, labels.target("alpha", "m2"), labels.target("alpha", "m1")) == (first, ("alpha", OTHER), first)


def test_at_most_so_many_models_are_shown() -> None:
    known = {"alpha": [f"m{n}" for n in range(1000)]}
    labels = Labels(lambda: known, tuple, max_models=200)
    assert len({labels.target("alpha", model) for model in known["alpha"]} - {("alpha", OTHER)}) == 200


@pytest.mark.parametrize(("name", "shown"), [("combo1", "combo1"), ("nothing", OTHER), (None, "")])
def test_a_combo_is_shown_if_it_exists(labels: Labels, name: str | None, shown: str) -> None:
    assert labels.combo(name) == shown


def test_keys_are_shown_by_name_within_a_bound(labels: Labels) -> None:
    names = [f"key-{n}" for n in range(MAX_KEYS + 5)]
    assert [labels.key(name) for name in names] == [*names[:MAX_KEYS], *[OTHER] * 5]


@pytest.mark.parametrize(
    ("provider", "name", "shown"), [("alpha", "A", ("alpha", "A")), ("nobody", "A", (OTHER, OTHER))]
)
def test_an_account_is_shown_if_its_provider_is_configured(
    labels: Labels, provider: str, name: str, shown: tuple[str, str]
) -> None:
    assert labels.account(provider, name) == shown


def test_a_reload_is_seen_without_a_word() -> None:
    combos: set[str] = set()
    labels = Labels(dict, lambda: combos)
    combos.add("new")
    assert labels.combo("new") == "new"


@pytest.mark.parametrize(("route", "shown"), [("/v1/models/{id}", "/v1/models/{id}"), ("/v1/models/gpt", OTHER)])
def test_a_route_is_a_template(labels: Labels, route: str, shown: str) -> None:
    assert labels.route(route) == shown


def test_words_are_bounded_per_label(labels: Labels) -> None:
    shown = {labels.word("param", f"p{n}") for n in range(1000)}
    assert len(shown) == 65
    assert labels.word("format", "hermes") == "hermes"


@pytest.mark.parametrize("word", ["x" * 101, "two\nlines", "\ud800"])
def test_what_is_no_plain_word_is_other(word: str) -> None:
    assert Bounded(10)(word) == OTHER


def test_one_of_a_closed_set_or_other() -> None:
    assert (one_of("a", {"a"}), one_of("b", {"a"})) == ("a", OTHER)


@pytest.mark.parametrize(("status", "shown"), [(200, "200"), (529, "529"), (0, OTHER), (600, OTHER)])
def test_a_status_is_one_of_http(status: int, shown: str) -> None:
    assert status_label(status) == shown


def test_models_are_known_if_a_provider_lists_them_or_a_combo_calls_them() -> None:
    alpha = Provider(id="alpha", aliases=("first",), models={"m1": Model(id="m1")})
    called = [Member(model=name) for name in ("first/m2", "alpha/a/b", "nobody/m3", "m4")]
    snapshot = build([alpha], [Combo(id="c", name="c", members=(*called, Member(combo="d")))])
    assert KnownModels(lambda: snapshot)() == {"alpha": {"m1", "m2", "a/b"}}


def test_known_models_follow_a_reload() -> None:
    current = Snapshot()
    known = KnownModels(lambda: current)
    assert known() == {}
    current = build([Provider(id="alpha")])
    assert known() == {"alpha": set()}
