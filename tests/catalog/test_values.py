"""The small values of the vocabulary: secrets, models, members, keys."""

from __future__ import annotations

import pytest

from troyproxy.catalog.combos import Member
from troyproxy.catalog.keys import Key
from troyproxy.catalog.models import DEFAULT_EFFORTS, Capabilities, Model
from troyproxy.catalog.secret import Secret


def test_a_secret_shows_itself_in_no_text() -> None:
    assert f"{Secret('hush')} {Secret('hush')!r}" == "Secret('***') Secret('***')"


def test_a_secret_is_revealed_on_purpose_only() -> None:
    assert Secret("hush").reveal() == "hush"


def test_a_keys_digest_is_not_in_its_repr() -> None:
    assert "digest" not in repr(Key("1", "n", b"digest"))


@pytest.mark.parametrize(
    ("key", "valid"),
    [
        (Key("1", "n", b""), True),
        (Key("1", "n", b"", revoked_at=1.0), False),
        (Key("1", "n", b"", expires_at=5.0), False),
        (Key("1", "n", b"", expires_at=6.0), True),
    ],
)
def test_a_key_is_valid_until_revoked_or_expired(key: Key, valid: bool) -> None:
    assert key.valid(5.0) is valid


def test_unknown_capabilities_are_filled_and_known_ones_kept() -> None:
    assert Capabilities(tools=False).over(Capabilities(tools=True, json=True)) == Capabilities(tools=False, json=True)


def test_a_model_that_declares_no_efforts_takes_the_usual_three() -> None:
    assert Model("m").effort_levels == DEFAULT_EFFORTS


def test_declared_efforts_are_the_models_own() -> None:
    assert Model("m", efforts=("none",)).effort_levels == ("none",)


@pytest.mark.parametrize(("member", "label"), [(Member(model="p/m"), "p/m"), (Member(combo="c"), "combo/c")])
def test_a_member_is_labelled_as_it_is_written(member: Member, label: str) -> None:
    assert member.label == label
