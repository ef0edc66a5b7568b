from __future__ import annotations

import pytest

from tests.leaks.reads import arguments, is_no_call, is_unfinished


@pytest.mark.parametrize(
    "header",
    [
        "<|channel|>commentary to=functions.f <|constrain|>json<|message|>",
        "<|channel|>analysis to=functions.f code<|message|>",
        "<|start|>assistant to=functions.f<|channel|>commentary json<|message|>",
        "<|start|>assistant<|channel|>commentary to=f<|message|>",
        '<|channel|>commentary to="f" <|message|>\n',
        "assistantcommentary to=functions.f json",
        "analysis to=functions.f json ",
        "commentary to=functions.f ",
        "<|channel|>commentary to=functions.f<|channel|>commentary <|message|>".replace("<|channel|>commentary <", "<"),
    ],
)
def test_the_recipient_stands_at_either_place_or_in_the_residue(header: str) -> None:
    assert arguments(header + '{"a": 1}<|call|>') == {"a": 1}


@pytest.mark.parametrize(
    "text",
    [
        "<|channel|>final<|message|>{}",
        "<|channel|>commentary<|message|>{}",
        "commentary to=functions.g json{}",
        "commentary {}",
        "<|channel|>analysis<|message|>thinking",
        "<|start|>user{}",
        "<|channel|>commentary to=f<|message|>{x}",
        "<|channel|>commentary to=f " + "x" * 600,
    ],
)
def test_a_segment_without_a_recipient_or_payload_is_no_call(text: str) -> None:
    assert is_no_call(text)


@pytest.mark.parametrize(
    "text",
    [
        "<|chan",
        "<|channel|>commentary",
        "<|channel|>commentary to=func",
        "<|start|>assistant to=f<|ch",
        "commentary to=f js",
    ],
)
def test_a_header_that_is_cut_is_unfinished(text: str) -> None:
    assert is_unfinished(text)
