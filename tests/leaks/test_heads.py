from __future__ import annotations

import pytest

from troyproxy.leaks.bare import bare_head, fence
from troyproxy.leaks.formats import canonical
from troyproxy.leaks.heads import Head, read_head, skip_suffix, tag_end
from troyproxy.leaks.table import Follow, Look

NAMES = frozenset({"dim_lamp", "Open-Door"})
NO, MORE, YES = Look.NO, Look.MORE, Look.YES


def call(text: str) -> tuple[Look, str]:
    head = read_head(text, canonical(text), 0, Follow.CALL)
    return head.look, head.name


def attribute(text: str) -> tuple[Look, str]:
    head = read_head(text, canonical(text), 0, Follow.NAME)
    return head.look, head.name


def naked(text: str, *, fenced: bool = False) -> tuple[Look, str]:
    head = bare_head(text, canonical(text), 0, NAMES, fenced=fenced)
    return head.look, head.shape


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", (MORE, "")),
        (" \n", (MORE, "")),
        ("Na", (MORE, "")),
        ("Name ", (MORE, "Name")),
        ("Name{", (YES, "Name")),
        ("Name (", (YES, "Name")),
        ("Name\n(", (NO, "Name")),
        ("Name is", (NO, "Name")),
        ("Name[AR", (MORE, "Name")),
        ("Name[ARGS]{", (YES, "Name")),
        ("Name.call(", (YES, "Name")),
        ("Name</tool_call>", (YES, "Name")),
        ("Name</b>", (NO, "Name")),
        ("call:Name{", (YES, "Name")),
        ("<tool_c", (MORE, "")),
        ("<b>", (NO, "")),
        ("1", (NO, "")),
        ("[", (MORE, "")),
        ("[Name", (MORE, "")),
        ("[Name(", (YES, "Name")),
        ("[Name ", (NO, "Name")),
        ("[1", (NO, "")),
        ("<tool_call:own>Name<tool_sep>", (YES, "Name")),
        ("```json\n[Name(", (YES, "Name")),
        ("<tool_call>" * 7 + "Name{", (YES, "Name")),
        ("<tool_call>" * 8, (NO, "")),
    ],
)
def test_behind_an_opener_a_name_or_json_or_another_opener_follows(text: str, found: tuple[Look, str]) -> None:
    assert call(text) == found


@pytest.mark.parametrize("text", ["{", " [ {", "<tool_call>{", "<|tool_call|>\n[{"])
def test_json_is_left_to_another_reader(text: str) -> None:
    head = read_head(text, text, 0, Follow.CALL)
    assert (head.look, head.json_at) == (MORE, text.index("[" if "[" in text else "{"))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("'", (MORE, "")),
        ('"Na', (MORE, "")),
        ('"Name"', (MORE, "Name")),
        ('"Name">', (MORE, "Name")),
        ('"Name"> \n<', (YES, "Name")),
        ("Name>{", (YES, "Name")),
        ("Name({", (YES, "Name")),
        ("Name)> x", (MORE, "Name")),
        ("Name)> x ", (NO, "Name")),
        ('Name" id="3', (MORE, "Name")),
        ('Name" id="3"> <', (YES, "Name")),
        ("= Name", (NO, "")),
    ],
)
def test_a_name_in_a_tag_ends_with_what_goes_on_behind_it(text: str, found: tuple[Look, str]) -> None:
    assert attribute(text) == found


def test_behind_a_name_attribute_the_tag_has_to_end() -> None:
    texts = ['<invoke name="Name" {', '<invoke name="Name"> {']
    assert [read_head(text, text, 13, Follow.NAME).look for text in texts] == [NO, YES]


def test_a_suffix_ends_with_its_tag() -> None:
    assert [skip_suffix(text, 0) for text in ("abc>x", "abc", "", ">")] == [4, 3, 0, 1]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("{", (MORE, "F06")),
        ("[{", (MORE, "F28")),
        ("[dim_lamp(", (YES, "F08")),
        ("[paint(", (NO, "")),
        ("functools[", (MORE, "F29")),
        ("functools.", (NO, "")),
        ("funct", (MORE, "")),
        ("call:dim_lamp{", (YES, "F32")),
        ("call:dim_lamp:", (MORE, "")),
        ("call:dim_lamp {", (NO, "F32")),
        ("call: x", (NO, "")),
        ("print(default_api.dim_lamp(", (YES, "F46")),
        ("print(default_api.dim_lamp", (MORE, "")),
        ("print(default_api.dim_lamp)", (NO, "")),
        ("print(default_api.paint(", (NO, "")),
        ("print(def", (MORE, "")),
        ("print(x", (NO, "")),
        ("python(default_api.dim_lamp(", (YES, "F46")),
        ("tool_code\nprint(default_api.dim_lamp(", (YES, "F46")),
        ("tool_code\npri", (MORE, "")),
        ("tool_code\nx", (NO, "")),
        ("commentary to=functions.dim_lamp json{", (YES, "F30")),
        ("commentary to=", (MORE, "F30")),
        ("commentary to=functions.paint json{", (NO, "")),
        ("commentary on", (NO, "")),
        ("functiondim_lamp\n```json\n{", (YES, "F17")),
        ("functiondim_lamp\n``", (MORE, "F17")),
        ("functiondim_lamp is", (NO, "F17")),
        (">>>dim_lamp\n{", (YES, "F47")),
        (">>", (MORE, "")),
        (">>>", (MORE, "")),
        ("> x", (NO, "")),
        ("<json>\n{", (MORE, "F03")),
        ("<tool>[{", (MORE, "F03")),
        ("<json> ", (MORE, "")),
        ("<json>[1", (NO, "")),
        ("<xml>text", (NO, "")),
        ("<b>", (NO, "")),
        ("dim_lamp{", (YES, "F45")),
        ("open_door {", (YES, "F45")),
        ("dim_lamp\n{", (YES, "F47")),
        ("functions.dim_lamp:0{", (YES, "F45")),
        ("dim_lamp.call(", (YES, "F07")),
        ("dim_lamp(", (NO, "")),
        ("dim_lamp ", (MORE, "")),
        ("dim_la", (MORE, "")),
        ("tools.dim", (MORE, "")),
        ("paint", (NO, "")),
        ("paint{", (NO, "")),
        ("Hello", (NO, "")),
        ("(", (NO, "")),
    ],
)
def test_a_call_without_a_marker_begins_with_a_declared_name(text: str, found: tuple[Look, str]) -> None:
    assert naked(text) == found


def test_in_a_fence_gemini_may_leave_the_print_away() -> None:
    text = "default_api.dim_lamp("
    assert [naked(text), naked(text, fenced=True)] == [(NO, ""), (YES, "F46")]


@pytest.mark.parametrize(
    ("text", "look"),
    [
        ("```json\n", YES),
        ("~~~\r\n", YES),
        ("````  tool_code\n", YES),
        ("```rust\n", NO),
        ("``", MORE),
        ("```js", MORE),
    ],
)
def test_a_fence_of_a_kind_that_leaks_come_in(text: str, look: Look) -> None:
    assert fence(text, 0)[0] is look


def test_a_span_of_code_is_no_fence() -> None:
    assert [fence(text, 0)[0] for text in ("`x", "``` `x", "```" + "x" * 40)] == [NO, NO, NO]


def test_more_text_never_turns_an_answer_around() -> None:
    texts = ['<function=Name>{"a": 1}', "Name\n<arg_key>", "[TOOL_CALLS]Name[CALL_ID]", "call:Name{a:1}", "Name is x"]
    for text in texts:
        looks = [call(text[:end])[0] for end in range(len(text) + 1)]
        decided = [look for look in looks if look is not MORE]
        assert looks == [MORE] * (len(looks) - len(decided)) + decided
        assert len(set(decided)) == 1


def test_a_head_says_no_by_default_about_json() -> None:
    assert Head(NO).json_at == -1


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("<tool_call >x", 12),
        ("<tool_call id=\"1\" type='function' >x", 35),
        ("<tool_call ", MORE),
        ('<tool_call id = "1', MORE),
        ('<tool_call id="1" ty', MORE),
        ("<tool_call is", MORE),
        ("<tool_call is the", NO),
        ('<tool_call id="1\n', NO),
        ("<tool_call id=1>", NO),
        ('<tool_call id="' + "1" * 65, NO),
    ],
)
def test_a_tag_may_go_on_with_attributes_that_are_quoted(text: str, end: int | Look) -> None:
    assert tag_end(text, 0, "<tool_call ") == end


@pytest.mark.parametrize("text", ["<tool_call>", "commentary to=", "<tool_call:"])
def test_a_spelling_that_is_a_whole_tag_ends_where_it_ends(text: str) -> None:
    assert tag_end(text, 0, text) == len(text)


@pytest.mark.parametrize(
    ("text", "look"),
    [("dim_lamp>{", YES), ("dim_lamp", MORE), ("dim_lamp)(", NO), ("dim_lamp, x)", NO), ("dim_lamp {", NO)],
)
def test_behind_a_bracket_the_name_ends_with_an_angle_bracket(text: str, look: Look) -> None:
    raw = "(function=" + text
    assert read_head(raw, raw, len("(function="), Follow.NAME).look is look
