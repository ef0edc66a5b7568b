"""What may be called how."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troyproxy.catalog import naming


@pytest.mark.parametrize("name", ["openai", "a", "0x", "my.own_provider-2", "a" * 64])
def test_a_provider_id_of_the_closed_set_is_accepted(name: str) -> None:
    assert naming.provider_id(name) == name


@pytest.mark.parametrize(
    "name", ["", "A", ".a", "-a", "a b", "a/b", "é", "a" * 65, "a\n", "auto", "default", "combo", "troy"]
)
def test_any_other_provider_id_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=r"provider id|reserved"):
        naming.provider_id(name)


@pytest.mark.parametrize("name", ["daily", "模型-快", "Auto Coder", "a/b", "team.x_1", "हिन्दी", "x" * 100])
def test_a_combo_name_of_letters_digits_and_marks_is_accepted(name: str) -> None:
    assert naming.combo_name(name) == unicodedata.normalize("NFC", name)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "x" * 101,
        "a\0b",
        "a\nb",
        " a",
        "a ",
        "/a",
        "a/",
        "../x",
        "a/./b",
        "a/..",
        ".",
        "a:b",
        "a#b",
        "a\u00a0b",
        "a\u202eb",
    ],
)
def test_a_combo_name_that_would_hurt_paths_headers_or_labels_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="combo name"):
        naming.combo_name(name)


@pytest.mark.parametrize("name", ["auto", "AUTO", "auto/fast", "default", "combo/x", "Troy"])
def test_a_reserved_combo_name_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="reserved"):
        naming.combo_name(name)


def test_decomposed_accents_are_composed() -> None:
    assert naming.combo_name("cafe\u0301") == "caf\u00e9"


def test_a_name_that_reads_as_a_configured_providers_spec_is_refused() -> None:
    with pytest.raises(ValueError, match="provider OpenAI"):
        naming.combo_name("OpenAI/fast", providers=["openai"])


def test_a_slash_behind_no_provider_is_part_of_the_name() -> None:
    assert naming.combo_name("team/fast", providers=["openai"]) == "team/fast"


def test_a_slug_is_its_own_id() -> None:
    assert naming.combo_id("daily") == "daily"


def test_the_id_of_another_name_is_a_slug_and_the_same_for_equal_names() -> None:
    assert naming.slug(naming.combo_id("cafe\u0301")) == naming.combo_id("caf\u00e9")


@pytest.mark.parametrize("text", ["", "Has Blank", "ü", "auto"])
def test_what_is_no_slug_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"an id|reserved"):
        naming.slug(text)


@pytest.mark.parametrize("text", ["", "a#b", "a b", "é", "-a", "a" * 65])
def test_an_account_name_that_cannot_stand_in_a_header_or_an_id_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="account name"):
        naming.account_name(text)


@pytest.mark.parametrize("text", ["", "a#b", "é", "a" * 65])
def test_a_key_name_that_cannot_stand_in_a_log_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="a key's name"):
        naming.key_name(text)


def test_a_key_name_may_be_an_address() -> None:
    assert naming.key_name("ci@example.com") == "ci@example.com"


def test_an_account_name_may_be_an_address() -> None:
    assert naming.account_name("team-a+1@example.com") == "team-a+1@example.com"


def test_names_that_differ_by_case_or_composition_are_the_same_name() -> None:
    assert naming.same_name("CAFE\u0301") == naming.same_name("caf\u00e9")


@given(st.text(max_size=120))
def test_an_accepted_combo_name_is_accepted_again_unchanged(text: str) -> None:
    try:
        name = naming.combo_name(text)
    except ValueError as error:
        assert str(error)  # noqa: PT017 -- either outcome is fine, each has its claim
    else:
        assert naming.combo_name(name) == name
