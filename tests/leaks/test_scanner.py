from __future__ import annotations

import pytest

from tests.leaks.corpus import LAMP
from tests.leaks.scanning import LAMP_ASKED, leak, whole
from troyproxy.leaks.asked import Asked
from troyproxy.leaks.options import Options
from troyproxy.leaks.scanner import Position, Scanner, Tier, scan

KIMI = "<|tool_calls_section_begin|><|tool_call_begin|>dim_lamp:0<|tool_call_argument_begin|>{}"
CALL = '<function=dim_lamp>{"id": 3}</function>'


def test_the_evidence_tells_where_and_what() -> None:
    found = scan("I will dim it.\n" + CALL, LAMP_ASKED)
    assert found is not None
    assert (found.format, found.tier, found.position, found.name, found.declared, found.block_start) == (
        "F01",
        Tier.MARKUP,
        Position.LINE,
        "dim_lamp",
        True,
        15,
    )


@pytest.mark.parametrize(
    ("text", "position", "start"),
    [
        (CALL, Position.START, 0),
        ("\ufeff \n" + CALL, Position.START, 0),
        ("assistant\n\n" + CALL, Position.START, 0),
        ("<think>hm</think>\n" + CALL, Position.START, 17),
        ("hm, a lamp</think>" + CALL, Position.START, 18),
        ("</think>\n" + CALL, Position.START, 8),
        ("<think>hm " + KIMI, Position.START, 10),
        ("Now: " + CALL, Position.MIDDLE, 5),
        ("Now:\n  " + CALL, Position.LINE, 7),
        ("Done.\n</parameter>\n</invoke>\n", Position.ORPHAN, 6),
    ],
)
def test_a_leak_begins_where_the_clean_text_ends(text: str, position: Position, start: int) -> None:
    seen = whole(text)
    assert seen.leak is not None
    assert (seen.leak.position, seen.leak.block_start, seen.released) == (position, start, start)


@pytest.mark.parametrize(
    "behind",
    [
        "",
        " \n",
        "</tool_call>",
        "</func",
        "<|im_end|>",
        "<|im_",
        "\n" + CALL,
        "\n<function=dim_lamp>{",
        "\n<tool_response>\n21 degrees\n</tool_response>\nThe lamp is on.",
        "</tool_calls:opensource>",
    ],
)
def test_after_prose_a_call_may_be_followed_by_what_a_server_leaves(behind: str) -> None:
    assert leak("I will dim it.\n" + CALL + behind) == "F01"


@pytest.mark.parametrize(
    "behind", [" is how.", "\n\nThat was it.", "</function></p>", " `x`", "\n<tool_call> is a tag"]
)
def test_after_prose_a_call_that_is_explained_is_clean(behind: str) -> None:
    assert leak("It looks like this: " + CALL + behind) is None


def test_a_call_that_follows_an_explained_one_is_still_found() -> None:
    assert leak("It looks like this: " + CALL + " and now I do it.\n\n" + CALL) == "F01"


def test_at_the_start_what_follows_the_call_is_dropped_too() -> None:
    seen = whole(CALL + "\nHere is the forecast: sunny.")
    assert (seen.leak is not None, seen.released) == (True, 0)


def test_what_was_captured_begins_at_the_call() -> None:
    scanner = Scanner(LAMP_ASKED)
    for text in ("</tool_call>\n <functi", "on=dim_lamp>{", '"id": 3}', "</function>"):
        scanner.feed(text)
    assert (scanner.captured, scanner.overflowed) == (CALL, False)


def test_what_is_captured_is_bounded() -> None:
    scanner = Scanner(LAMP_ASKED, Options(call_chars=40))
    scanner.feed(CALL)
    scanner.feed("more than that")
    scanner.feed("and more")
    assert (scanner.captured, scanner.overflowed) == (CALL + "m", True)


def test_a_shell_without_a_call_is_no_leak_and_a_call_behind_it_is_one() -> None:
    assert [leak("<tool_call></tool_call>"), leak("<tool_call>\n</tool_call>" + CALL)] == [None, "F01"]


def test_nothing_is_held_of_prose_and_a_spelling_until_it_is_refuted() -> None:
    scanner = Scanner(LAMP_ASKED)
    assert [scanner.feed(text) for text in ("Hello, ", "use <fun", "ction", " x")] == [7, 11, 11, 22]


def test_blanks_are_held() -> None:
    scanner = Scanner(LAMP_ASKED)
    scanner.feed(" \n")
    assert scanner.holding
    scanner.feed("<to")
    assert scanner.holding
    scanner.feed("p>")
    assert not scanner.holding


def test_after_the_end_text_passes_and_ending_twice_does_no_harm() -> None:
    scanner = Scanner(LAMP_ASKED)
    scanner.feed("<")
    assert (scanner.finish(), scanner.feed(CALL), scanner.finish(), scanner.leak) == (
        1,
        1 + len(CALL),
        1 + len(CALL),
        None,
    )


def test_after_a_leak_nothing_more_is_released() -> None:
    scanner = Scanner(LAMP_ASKED)
    assert (scanner.feed("Hi " + CALL), scanner.finish(), scanner.feed("Hello"), scanner.finish()) == (3, 3, 3, 3)


# --- tiers ---


def test_a_special_token_at_the_start_needs_no_declared_name_and_markup_does() -> None:
    assert leak("<|tool_call|>{'name': 'paint', 'arguments': {}}") == "F13"
    assert leak("<tool_call>{'name': 'paint', 'arguments': {}}") is None


def test_after_prose_a_special_token_needs_a_declared_name() -> None:
    call = '[TOOL_CALLS]{}{{"id": 3}}'
    assert [leak("So:\n" + call.format(name)) for name in ("paint", "dim_lamp")] == [None, "F12"]


def test_the_python_tag_may_be_followed_by_raw_code() -> None:
    assert [leak("<|python_tag|>" + code) for code in ("import os", "{'x': 1}", "  ")] == ["F07", "F06", None]


def test_the_python_tag_is_a_leak_at_the_end_of_the_text_too() -> None:
    assert [leak('<|python_tag|>{"nam'), leak("<|python_tag|>impor"), leak("So: <|python_tag|>impor")] == [
        "F07",
        "F07",
        None,
    ]


def test_json_in_a_common_element_is_a_leak_when_nothing_else_is_there() -> None:
    call = '<json>{"name": "dim_lamp", "arguments": {"id": 3}}</json>'
    assert [leak(text) for text in (call, call + " is it.", call.replace("dim_lamp", "paint"))] == ["F03", None, None]


def test_the_toolcall_of_nemotron_is_upper_case_only() -> None:
    call = '>[{"name": "dim_lamp", "arguments": {}}]</TOOLCALL>'
    assert [leak("<TOOLCALL" + call), leak("<ToolCall" + call)] == ["F37", None]


@pytest.mark.parametrize("bars", ["|", "\uff5c", "\u2016", "\uff5c\uff5c"])
def test_bars_may_be_wide_doubled_or_look_alike(bars: str) -> None:
    text = f'<{bars}DSML{bars}invoke name="dim_lamp"><{bars}DSML{bars}parameter name="id">3'
    assert [leak(text), leak(text.lower())] == ["F19", "F19"]


def test_an_element_of_the_family_may_have_a_foreign_prefix() -> None:
    assert leak('<acme:tool_calls><acme:invoke name="dim_lamp"><acme:parameter name="id">3') == "F43"


# --- what the request says ---


def test_bare_json_is_the_answer_where_json_was_asked_for() -> None:
    asked = Asked(names=LAMP, json_answer=True)
    bare = '{"name": "dim_lamp", "arguments": {"id": 3}}'
    assert [leak(bare, asked), leak(f"```json\n{bare}\n```", asked), leak(CALL, asked)] == [None, None, "F01"]


def test_where_no_call_is_allowed_only_special_tokens_count() -> None:
    asked = Asked(names=LAMP, only_special=True)
    closers = "Done.\n</parameter>\n</invoke>"
    texts = [
        CALL,
        '{"name": "dim_lamp", "arguments": {}}',
        closers,
        "<|tool_call|>[dim_lamp()]",
        "<|tool_call|>[paint()]",
    ]
    assert [leak(text, asked) for text in texts] == [None, None, None, "F13", "F13"]


def test_with_a_history_only_its_tools_count() -> None:
    asked = Asked(names=LAMP, only_special=True, known_only=True)
    texts = ["<|tool_call|>[dim_lamp()]", "<|tool_call|>[paint()]", "<|python_tag|>import os"]
    assert [leak(text, asked) for text in texts] == ["F13", None, None]
