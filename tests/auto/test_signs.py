"""The words that tell a task: read word by word, they count as the patterns themselves would."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troyproxy.auto.signs import MOST, SIGNS, Sign, counted

FAILURE = re.compile(r"\b\w*(?:error|exception)\b")
WORDS = sorted({word for sign in SIGNS for phrase in sign.phrases for word in re.findall(r"[a-z]{2,}|\W", phrase)})


def plainly(sign: Sign, text: str) -> int:
    """Return how often *sign* is in *text*, by a search of the whole text."""
    thrown = len(FAILURE.findall(text)) if sign.failures else 0
    return min(MOST, len(sign.pattern.findall(text)) + thrown)


@given(st.lists(st.sampled_from([*WORDS, "keyerror", "x", "\n"]) | st.text(max_size=3), max_size=40), st.booleans())
def test_words_count_as_a_search_of_the_whole_text_does(words: list[str], spaced: bool) -> None:
    text = (" " if spaced else "").join(words).lower()
    assert list(counted(text)) == [plainly(sign, text) for sign in SIGNS]


@pytest.mark.parametrize("at", range(len(SIGNS)))
def test_every_phrase_is_found_by_its_first_letters(at: int) -> None:
    for phrase in SIGNS[at].phrases:
        assert re.match(r"[a-z]{2}(?!\?)[a-z]?(?!\?)|[a-z]\\\+", phrase), phrase


@given(st.data())
def test_whatever_a_pattern_matches_is_counted(data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(SIGNS) - 1))
    text = data.draw(st.from_regex(SIGNS[at].pattern, fullmatch=True)).lower()
    if SIGNS[at].pattern.match(text):
        assert counted(text)[at] >= 1


def test_names_of_errors_count_by_their_end_and_no_more_than_three_times() -> None:
    at = next(at for at, sign in enumerate(SIGNS) if sign.failures)
    assert counted("a keyerror and a timeout_exception, errors aside")[at] == 2
    assert counted("undefined error error error error")[at] == MOST
