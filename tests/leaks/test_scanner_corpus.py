from __future__ import annotations

import pytest

from tests.leaks.corpus import EXAMPLES, Example, Vector
from tests.leaks.scanning import ARMED, CLEAN, GENERIC, LAMP_ASKED, Clean, cuts, run, whole
from tests.measuring import unmeasured
from troyproxy.leaks.asked import Asked
from troyproxy.leaks.scanner import Position, Scanner, Tier, scan

# What a format id of an example is counted as, where the text alone does not tell them apart.
SHARED = {"F06b": "F06"}


@pytest.mark.parametrize("vector", ARMED, ids=lambda vector: vector.id)
def test_a_vector_has_its_verdict_whole_by_the_character_and_under_any_cuts(vector: Vector) -> None:
    asked = vector.asked()
    seen = whole(vector.text, asked)
    assert ("leak" if seen.leak else "clean") == vector.expect
    assert seen.leak or seen.released == len(vector.text)
    assert run(vector.text, asked) == seen
    with unmeasured():
        assert all(run(pieces, asked) == seen for pieces in cuts(vector.text, 200))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.id)
def test_an_example_of_each_format_is_found_under_its_id_whatever_the_cuts(example: Example) -> None:
    seen = whole(example.text)
    assert seen.leak is not None
    assert seen.leak.format == SHARED.get(example.id, example.id[:3])
    assert (seen.leak.name, seen.leak.declared, seen.released) == ("dim_lamp", True, 0)
    assert run(example.text) == seen
    with unmeasured():
        assert all(run(pieces) == seen for pieces in cuts(example.text, 200))


@pytest.mark.parametrize("clean", CLEAN, ids=lambda clean: clean.id)
def test_a_clean_answer_is_released_whole_whatever_the_cuts(clean: Clean) -> None:
    seen = whole(clean.text, GENERIC)
    assert (seen.leak, seen.released) == (None, len(clean.text))
    assert run(clean.text, GENERIC) == seen
    with unmeasured():
        assert all(run(pieces, GENERIC) == seen for pieces in cuts(clean.text, 40))


def test_there_are_enough_clean_answers() -> None:
    assert len(CLEAN) >= 80


def test_no_cut_of_a_clean_answer_is_a_leak() -> None:
    cut_short = [each.text[:end] for each in CLEAN if not each.mentions for end in range(min(len(each.text), 400))]
    with unmeasured():
        assert [text for text in cut_short if scan(text, GENERIC)] == []


def test_an_example_after_prose_is_a_leak_that_keeps_the_prose_unless_it_has_no_marker() -> None:
    prose = "I will dim it.\n\n"
    for example in EXAMPLES:
        seen = whole(prose + example.text)
        assert run(prose + example.text) == seen
        bare = whole(example.text).leak
        words = example.id == "F34b" or (bare is not None and bare.tier is Tier.BARE)
        expected = (None, len(prose + example.text)) if words else (Position.LINE, len(prose))
        assert (seen.leak and seen.leak.position, seen.released) == expected, example.id


def test_two_scanners_side_by_side_do_not_disturb_each_other() -> None:
    texts = [vector.text for vector in ARMED]
    for first, second in zip(texts, reversed(texts), strict=True):
        pair = [(Scanner(LAMP_ASKED), first), (Scanner(LAMP_ASKED), second)]
        for at in range(max(len(first), len(second))):
            for scanner, text in pair:
                scanner.feed(text[at : at + 1])
        for scanner, text in pair:
            scanner.finish()
            assert scanner.leak == scan(text, LAMP_ASKED)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('<|python_tag|>{"name":"get_weather","parameters":{"city":"Oslo"}}', "F06"),
        ("<tool_call>\nget_weather\n<arg_key>city</arg_key>\n<arg_value>Oslo</arg_value>\n</tool_call>", "F23"),
        ('<function(get_weather){"city":"Oslo"}</function>', "F02"),
        ("<tool_call>\n<function=get_weather>\n<parameter=city>\nsee: <tool_call>{}</tool_call> end", "F04"),
        ('I could use <tool_call>{"name":"get_weather"}</tool_call> here.</think>\n[TOOL_CALLS]get_weather{}', "F12"),
        ('Let me. <tool_call>{"name":"get_weather","arguments":{}}</tool_call></think>', None),
        ("use it if a < b, else <func", None),
    ],
)
def test_what_was_seen_in_the_field_has_the_same_verdict_at_every_cut(text: str, found: str | None) -> None:
    asked = Asked(names=frozenset({"get_weather"}))
    seen = whole(text, asked)
    assert (seen.leak and seen.leak.format) == found
    assert {run([text[:end], text[end:]], asked) for end in range(len(text))} == {seen}
