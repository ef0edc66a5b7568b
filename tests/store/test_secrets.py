from __future__ import annotations

import pytest

from troyproxy.catalog.secret import Secret
from troyproxy.errors import ConfigError
from troyproxy.store.secrets import SecretBox


@pytest.mark.parametrize("text", ["sk-upstream", "", "ключ", "lone \ud800"])
def test_what_was_sealed_opens_with_the_same_key(text: str) -> None:
    key = SecretBox.generate()
    sealed = SecretBox(key).seal(Secret(text))
    assert SecretBox(key).open(sealed) == Secret(text)


def test_a_key_from_a_file_may_end_with_a_line_feed() -> None:
    key = SecretBox.generate()
    sealed = SecretBox(key).seal(Secret("x"))
    assert SecretBox(Secret(key.reveal() + "\n")).open(sealed) == Secret("x")


def test_a_key_may_come_without_its_padding() -> None:
    key = SecretBox.generate()
    sealed = SecretBox(key).seal(Secret("x"))
    assert SecretBox(Secret(key.reveal().rstrip("="))).open(sealed) == Secret("x")


def test_the_sealed_text_does_not_show_the_secret() -> None:
    assert "sk-upstream" not in SecretBox(SecretBox.generate()).seal(Secret("sk-upstream"))


@pytest.mark.parametrize("text", ["", "short", "x" * 42, "x" * 44, "ключ"])
def test_a_text_that_is_no_key_is_refused_without_being_shown(text: str) -> None:
    with pytest.raises(ConfigError, match="TROY_SECRET_KEY") as caught:
        SecretBox(Secret(text))
    assert not text or text not in str(caught.value)


def test_another_key_opens_nothing_and_the_error_says_what_to_do() -> None:
    sealed = SecretBox(SecretBox.generate()).seal(Secret("sk-upstream"))
    with pytest.raises(ConfigError, match="another TROY_SECRET_KEY: set the one"):
        SecretBox(SecretBox.generate()).open(sealed)


def test_a_damaged_text_is_an_error() -> None:
    with pytest.raises(ConfigError):
        SecretBox(SecretBox.generate()).open("gAAAA-not-a-token")
