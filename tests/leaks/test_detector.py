from __future__ import annotations

import json
from itertools import pairwise
from typing import Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from troyproxy.leaks.detector import Detector, Verdict
from troyproxy.leaks.formats import HEADER_CHARS, WHOLE_CHARS

NAMES: Final = frozenset({"dim_lamp", "get_weather"})

LEAKS: Final = [
    ("F01", '<function=dim_lamp>{"id": 3}</function>'),
    ("F01", '<FUNCTION=dim_lamp({"id": 3})</function>'),
    ("F01", '<function=dim_lamp {"id": 3}></function>'),
    ("F01", '<function=dim_lamp{"id": 3}></function>'),
    ("F01", '<function="dim_lamp">{"id": 3}'),
    ("F01", "<function=dim_lamp>\n<parameter=room>hall</parameter>\n</function>"),
    ("F01", '\ufeff \u200b\n<function=dim_lamp>{"id": 3'),
    ("F02", '<function(dim_lamp)>{"id": 3}</function>'),
    ("F02", '\n<function(get_weather){"city":"Oslo"}</function>'),
    ("F03", '<tool_call>{"name": "dim_lamp", "arguments": {"id": 3}}</tool_call>'),
    ("F03", '\uff1cTool\u2581Call\uff1e{"name": "dim_lamp"'),
    ("F03", '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>'),
    ("F03", '<tool_call>{"arguments": {"label": "say </tool_call> \\"aloud\\"", "n": [1, -2.5]}, "name": "dim_lamp"}'),
    ("F03", '<tool_call>{"id": "c1", "function": {"arguments": {"name": "x"}, "name": "dim_lamp"}}'),
    ("F03", '<tool_call>{"function": {"arguments": {}}, "name": "dim_lamp"}'),
    ("F03", '<tool_call>{"function": "dim_lamp", "arguments": {}}'),
    ("F03", "<tool_call>{'name': 'dim_lamp', 'arguments': {}}"),
    ("F03", '<tool_call><tool_call>{"name": "functions.dim_lamp:0"}'),
    ("F03", '</tool_call>\n<tool_call>{"name": "dim_lamp"}'),
    ("F03", '<tool_call></tool_call><tool_call>{"name": "dim_lamp"}'),
    ("F13", '<tool_call>[{"name": "dim_lamp", "arguments": {"id": 3}}]'),
    ("F04", "<tool_call>\n<function=dim_lamp>\n<parameter=room>\nhall\n</parameter>\n</function>\n</tool_call>"),
    ("F42", '<tool_call><function name="dim_lamp"><param name="room">hall</param></function>'),
    ("F43", '<tool_call><invoke name="dim_lamp">'),
    ("F23", "<tool_call>dim_lamp\n<arg_key>room</arg_key>\n<arg_value>hall</arg_value>\n</tool_call>"),
    ("F23", "<tool_call>dim_lamp<arg_key>room</arg_key>"),
    ("F23", "<tool_call>dim_lamp</tool_call>"),
    ("F06", '<|python_tag|>{"name": "dim_lamp", "parameters": {"id": 3}}'),
    ("F06", "<|python_tag|>dim_lamp.call(id=3)"),
    ("F06", "<\uff5cpython_tag\uff5c> import os"),
]

CLEAN: Final = [
    "",
    "<",
    "   ",
    "\n<func",
    "Hello",
    "use it if a < b, else <func",
    "<f, g> denotes the inner product; if a<b and b<|c| then a<|c|.",
    "<tool_call> is the tag Hermes models use.",
    "<tool_call>dim_lamp is the name",
    "<tool_call>",
    "<tool_call>\n",
    "<tool_call>\n</tool_call>",
    "</tool_call> and done",
    "<tool_call><b>bold</b>",
    "<|python_tag|>",
    "<|python_tag|>  ",
    "<function=name> if your template wants that",
    "<function=dim_lamp is how it starts",
    "<function=dim_lamp",
    "<function=dim lamp>",
    "<function=>",
    "<function>dim_lamp",
    '<tool_call>{"name": "paint_fence", "arguments": {"colour": "red"}}</tool_call>',
    '<tool_call>{"name": 3, "arguments": {}}</tool_call>',
    '<tool_call>{"arguments": {"name": "dim_lamp"}}</tool_call>',
    '<tool_call>{"name": "dim_l',
    "<tool_call>{name: dim_lamp}",
    "<tool_call>{[1]: 2}",
    '<tool_call>{"a": ;}',
    "<tool_call>[1, 2, 3]",
    "<tool_call>[]",
    '```json\n{"name": "dim_lamp", "arguments": {}}\n```',
    '`<function=dim_lamp>{"id": 3}</function>` is Llama drift',
    'Llama drift looks like this: <function=dim_lamp>{"id": 3}</function>',
    "<think>Maybe <tool_call>dim_lamp</tool_call></think>What time?",
]


def verdict(*texts: str) -> tuple[Verdict, str | None]:
    detector = Detector(NAMES)
    for text in texts:
        detector.feed(text)
    return detector.finish(), detector.format


@pytest.mark.parametrize(("name", "text"), LEAKS)
def test_a_call_of_a_declared_tool_at_the_start_is_a_leak(name: str, text: str) -> None:
    assert verdict(text) == (Verdict.LEAK, name)


@pytest.mark.parametrize("text", CLEAN)
def test_anything_else_is_clean(text: str) -> None:
    assert verdict(text) == (Verdict.CLEAN, None)


@pytest.mark.parametrize("text", [*(text for _, text in LEAKS), *CLEAN])
def test_every_split_in_two_gives_the_verdict_of_the_whole(text: str) -> None:
    assert {verdict(text[:cut], text[cut:]) for cut in range(len(text) + 1)} == {verdict(text)}


@pytest.mark.parametrize("text", [*(text for _, text in LEAKS), *CLEAN])
def test_one_character_at_a_time_gives_the_verdict_of_the_whole(text: str) -> None:
    assert verdict(*text) == verdict(text)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from([text for _, text in LEAKS] + CLEAN), st.lists(st.integers(0, 120), max_size=12))
def test_no_set_of_cuts_changes_the_verdict(text: str, cuts: list[int]) -> None:
    edges = [0, *sorted(cuts), len(text)]
    assert verdict(*(text[a:b] for a, b in pairwise(edges))) == verdict(text)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.text(alphabet='<>|{}[]():,"= \n/_aefilnoptcmud', max_size=60), st.integers(0, 60))
def test_text_made_of_marker_characters_is_split_safe_too(text: str, cut: int) -> None:
    start = "<tool_call>"
    assert verdict(start + text[:cut], text[cut:]) == verdict(start + text)


@pytest.mark.parametrize("known", [True, False])
def test_a_markup_marker_needs_the_name_to_be_declared(known: bool) -> None:
    detector = Detector(frozenset({"lookup"} if known else {"other"}))
    assert detector.feed("<function=lookup>{}") is (Verdict.LEAK if known else Verdict.CLEAN)


def test_a_special_token_needs_no_declared_name() -> None:
    assert Detector(frozenset()).feed("<|python_tag|>print(1)") is Verdict.LEAK


def test_an_unfinished_marker_is_pending_and_suspicious() -> None:
    detector = Detector(NAMES)
    assert (detector.feed(" <tool_c"), detector.suspicious, detector.head) == (Verdict.PENDING, True, " <tool_c")


def test_blanks_alone_are_pending_and_not_suspicious() -> None:
    detector = Detector(NAMES)
    assert (detector.feed(" \n\ufeff"), detector.suspicious) == (Verdict.PENDING, False)


def test_a_refuted_prefix_is_clean_with_the_next_character() -> None:
    detector = Detector(NAMES)
    assert (detector.feed("<functio"), detector.feed("s")) == (Verdict.PENDING, Verdict.CLEAN)


def test_a_verdict_is_final() -> None:
    detector = Detector(NAMES)
    detector.feed("Hello ")
    assert detector.feed("<function=dim_lamp>{}") is Verdict.CLEAN


@pytest.mark.parametrize("text", [" " * HEADER_CHARS, "<function=" + "x" * HEADER_CHARS, "<tool_call>" + " " * 600])
def test_a_header_beyond_its_bound_is_clean(text: str) -> None:
    assert Detector(NAMES).feed(text) is Verdict.CLEAN


def test_a_name_behind_long_arguments_is_still_found() -> None:
    call = {"arguments": {"text": "x" * 5000}, "name": "dim_lamp"}
    assert verdict("<tool_call>" + json.dumps(call)) == (Verdict.LEAK, "F03")


def test_json_beyond_its_bound_is_clean() -> None:
    assert Detector(NAMES).feed('<tool_call>{"a": "' + "x" * WHOLE_CHARS) is Verdict.CLEAN


def test_what_is_kept_of_the_text_is_bounded() -> None:
    detector = Detector(NAMES)
    detector.feed('<tool_call>{"a": "' + "x" * 5000)
    assert len(detector.head) == HEADER_CHARS + 1
