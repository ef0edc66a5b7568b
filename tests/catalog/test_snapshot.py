"""The snapshot and its lookup tables."""

from __future__ import annotations

from troyproxy.catalog.combos import Combo
from troyproxy.catalog.keys import Key
from troyproxy.catalog.providers import Provider
from troyproxy.catalog.snapshot import Snapshot, build


def found(snapshot: Snapshot, name: str) -> str | None:
    """Return the id of the provider that a name means."""
    provider = snapshot.provider(name)
    return provider.id if provider is not None else None


def test_a_provider_is_found_by_id_alias_and_case() -> None:
    snapshot = build([Provider("openai", aliases=("oa",))])
    assert [found(snapshot, n) for n in ("openai", "oa", "OpenAI", "OA", "other")] == ["openai"] * 4 + [None]


def test_an_id_beats_another_providers_alias() -> None:
    assert found(build([Provider("a", aliases=("b",)), Provider("b")]), "b") == "b"


def test_a_case_insensitive_match_must_be_unique() -> None:
    assert found(build([Provider("a", aliases=("X1",)), Provider("b", aliases=("x1",))]), "X1".swapcase()) == "b"


def test_an_ambiguous_name_means_no_provider() -> None:
    assert found(build([Provider("a", aliases=("Xy",)), Provider("b", aliases=("xY",))]), "xy") is None


def test_a_combo_is_found_by_name_and_id() -> None:
    snapshot = build([], [Combo("auto-coder", "Auto Coder")])
    assert snapshot.combo("Auto Coder") == snapshot.combo("auto-coder") != snapshot.combo("auto coder")


def test_keys_are_found_by_digest() -> None:
    key = Key("1", "n", b"digest")
    assert build([], keys=[key]).keys == {b"digest": key}
