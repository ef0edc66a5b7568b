from __future__ import annotations

import pytest

from tests.leaks.scanning import cuts, leak, quoting, run, whole
from troyproxy.leaks.options import Options, Scope, Strictness

CALL = '<function=dim_lamp>{"id": 3}</function>'


# --- echo ---


@pytest.mark.parametrize("behind", ["", "\n", "\n\nThere you are.", "<|im_end|>"])
def test_a_call_that_the_user_wrote_is_a_quotation(behind: str) -> None:
    text = CALL + behind
    seen = whole(text, quoting(f"Repeat exactly: {CALL} please"))
    assert (seen.leak, seen.released) == (None, len(text))
    assert run(text, quoting(f"Repeat exactly: {CALL} please")) == seen


def test_a_call_that_only_begins_like_a_quotation_is_a_leak_whatever_the_cuts() -> None:
    asked, text = quoting('<function=dim_lamp>{"id": 4}</function>'), CALL + "\nMore."
    assert {run(pieces, asked).leak is not None for pieces in cuts(text, 60)} == {True}


def test_a_quotation_found_later_in_the_messages_counts_too() -> None:
    assert leak(CALL, quoting("<function=dim_lamp>{}", CALL)) is None


def test_a_quotation_after_prose_and_without_a_marker_is_one_too() -> None:
    bare = '{"name": "dim_lamp", "arguments": {"id": 3}}'
    assert [
        leak("Here:\n" + CALL, quoting(CALL)),
        leak(bare, quoting(bare)),
        leak(bare + "<|im_end|>", quoting(bare)),
    ] == [
        None,
        None,
        None,
    ]


def test_without_the_echo_check_a_quotation_is_a_leak() -> None:
    assert leak(CALL, quoting(CALL), Options(echo_check=False)) == "F01"


def test_a_quotation_longer_than_the_bound_is_text() -> None:
    long = '<function=dim_lamp>{"id": "' + "x" * 300
    assert leak(long, quoting(long), Options(whole_chars=100)) is None


# --- options ---


def test_with_scope_start_prose_is_not_searched() -> None:
    options = Options(scope=Scope.START)
    assert [leak(CALL, options=options), leak("So: " + CALL, options=options)] == ["F01", None]
    assert leak("Done.\n</parameter>\n</invoke>", options=options) is None


def test_formats_that_are_not_asked_for_are_text() -> None:
    options = Options(formats=frozenset({"F03"}))
    texts = [
        CALL,
        '<tool_call>{"name": "dim_lamp", "arguments": {}}',
        "Done.\n</parameter></invoke>",
        "<|python_tag|>x()",
    ]
    assert [leak(text, options=options) for text in texts] == [None, "F03", None, None]


def test_orphans_can_be_left_alone() -> None:
    assert leak("Done.\n</parameter>\n</invoke>", options=Options(orphan_closers=False)) is None


def test_every_tag_of_hy3_may_have_a_suffix() -> None:
    text = "<tool_calls:own>\n<tool_call:own>dim_lamp<tool_sep:own>\n<arg_key:own>id</arg_key:own>"
    assert [leak(text), leak("<tool_calls:own> is a tag")] == ["F24", None]
    assert run(text) == whole(text)


def test_a_fence_ends_with_one_that_is_as_long() -> None:
    bare = '{"name": "dim_lamp", "arguments": {"text": "\n```\n"}}'
    texts = [f"````json\n{bare}\n````", f"````json\n{bare}\n```", f"```json\n{CALL}"]
    assert [leak(text) for text in texts] == ["F06", None, None]


def test_an_operator_may_add_openers() -> None:
    options = Options(extra_openers=("[Tool call] ", ""))
    texts = ['[tool call] dim_lamp: {"id": 3}', '[Tool call] paint: {"id": 3}', '[Calling] dim_lamp: {"id": 3}']
    assert [leak(text, options=options) for text in texts] == ["extra", None, None]
    assert run(texts[0], options=options) == whole(texts[0], options=options)


@pytest.mark.parametrize(
    "marker", ["<function=", "<Function(", "<function>", "<tool_call>", "<|tool_call|>", "functools["]
)
def test_with_strictness_markers_a_marker_at_the_start_is_enough(marker: str) -> None:
    options = Options(strictness=Strictness.MARKERS)
    assert leak(f"\n {marker} anything", options=options) is not None
    assert run(f"\n {marker} anything", options=options) == whole(f"\n {marker} anything", options=options)


def test_with_strictness_markers_nothing_else_is_a_leak() -> None:
    options = Options(strictness=Strictness.MARKERS)
    texts = ["So: " + CALL, "<func", " ", " " * 600 + CALL, "</parameter></invoke>", "<functions> " + CALL]
    assert [leak(text, options=options) for text in texts] == [None] * 6
    assert leak(CALL, options=Options(strictness=Strictness.MARKERS, formats=frozenset({"F03"}))) is None


# --- bounds ---


@pytest.mark.parametrize(
    "text",
    [
        " " * 600 + CALL[:10],
        "<function=" + "x" * 600,
        "<tool_call>" + " " * 600 + "</tool_call>",
        "<tool_call>" + "\n" * 600 + '{"name": "dim_lamp", "arguments": {}}',
    ],
)
def test_a_header_beyond_its_bound_is_text(text: str) -> None:
    assert whole(text).leak is None
    assert run(text) == whole(text)


def test_blanks_beyond_the_bound_do_not_hide_a_call() -> None:
    assert leak(" " * 600 + CALL) == "F01"


def test_a_name_behind_long_arguments_is_found() -> None:
    text = '<tool_call>{"arguments": {"text": "' + "x" * 5000 + '"}, "name": "dim_lamp"}'
    assert leak(text) == "F03"
    assert run(text) == whole(text)


@pytest.mark.parametrize("marker", ["<tool_call>", "", "So: <tool_call>"])
def test_json_whose_name_does_not_come_within_the_bound_is_text(marker: str) -> None:
    text = marker + '{"arguments": {"text": "' + "x" * 400 + '"}, "name": "dim_lamp"}'
    options = Options(whole_chars=200, call_chars=300)
    assert whole(text, options=options) == run(text, options=options)
    assert leak(text, options=options) is None


def test_a_call_after_prose_is_text_once_it_is_longer_than_the_bound() -> None:
    text = 'So:\n<function=dim_lamp>{"id": "' + "x" * 400
    options = Options(whole_chars=300)
    assert [leak(text), leak(text, options=options)] == ["F01", None]
    assert run(text, options=options) == whole(text, options=options)


@pytest.mark.parametrize("gap", [490, 520, 900])
def test_a_run_of_closers_that_is_too_long_is_text_whatever_the_cuts(gap: int) -> None:
    text = "Done.\n</invoke>" + " " * gap + "</invoke></invoke>" + " " * gap
    assert {run(pieces) for pieces in cuts(text, 30)} == {whole(text)}


# --- beside structured calls ---


@pytest.mark.parametrize(
    "left",
    ["<tool_call>", "<tool_call>\n</tool_call>", "<function", "</tool_call>", "Done.\n</tool_call>", "<|tool_call|>"],
)
def test_markers_alone_beside_structured_calls_are_dropped(left: str) -> None:
    seen = whole(left, structured=True)
    assert (seen.leak is not None, seen.released) == (True, 6 if left.startswith("Done.") else 0)


@pytest.mark.parametrize(
    "left", ["<tool_call>{", "<", " ", "Hello", "</tool_call> and", '{"name": "dim_lamp", "arguments": {}}']
)
def test_anything_else_beside_structured_calls_is_released(left: str) -> None:
    assert leak(left, structured=True) is None
