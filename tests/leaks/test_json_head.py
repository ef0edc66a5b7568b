from __future__ import annotations

import pytest

from troyproxy.leaks.json_head import JsonHead
from troyproxy.leaks.table import Look

NO, MORE, YES = Look.NO, Look.MORE, Look.YES


def head(text: str, *, strict: bool = False, keyed: bool = False) -> tuple[Look, str]:
    whole, single = JsonHead(strict=strict, keyed=keyed), JsonHead(strict=strict, keyed=keyed)
    whole.feed(text)
    for char in text:
        single.feed(char)
    assert (single.look, single.name, single.read) == (whole.look, whole.name, whole.read)
    return whole.look, whole.name


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"name": "f"', (YES, "f")),
        ("{'name': 'f'", (YES, "f")),
        ('[ {"tool_name": "f"', (YES, "f")),
        ('{"arguments": {"name": "x", "l": [1, -2.5, true]}, "name": "f"', (YES, "f")),
        ('{"arguments": {"q": "say \\"}\\" \\\\"}, "name": "f"', (YES, "f")),
        ('{"function": {"arguments": {}, "name": "f"', (YES, "f")),
        ('{"function": {"x": 1}, "name": "f"', (YES, "f")),
        ('{"function": "f"', (YES, "f")),
        ('{"function": ["x"], "name": "f"', (YES, "f")),
        ('{"tool_calls": [{"id": "p", "function": {"name": "f"', (YES, "f")),
        ('{"tool_calls": {"name": "x"}, "name": "f"', (YES, "f")),
        ('{"name": "' + "x" * 300 + '"', (YES, "x" * 256)),
        ('{"name": "' + "x\\n" * 200 + '"', (YES, "x\\" * 128)),
        ('{"na', (MORE, "")),
        ("{", (MORE, "")),
        ("[ ", (MORE, "")),
        ('{"name": 3, "', (MORE, "")),
        ("[1, 2]", (NO, "")),
        ("[]", (NO, "")),
        ("{}", (NO, "")),
        ('{"a": 1}', (NO, "")),
        ("{name: 1}", (NO, "")),
        ("{[1]: 2}", (NO, "")),
        ('{"a": ;}', (NO, "")),
        ('["x"]', (NO, "")),
    ],
)
def test_the_name_is_found_wherever_it_stands_in_the_call(text: str, found: tuple[Look, str]) -> None:
    assert head(text) == found


@pytest.mark.parametrize(
    ("text", "look"),
    [
        ('{"title": ', NO),
        ('{"type": "article"', NO),
        ('{"type": "function", "name": "f"', YES),
        ('{"id": 3, "parameters": {"title": 1}, "name": "f"', YES),
    ],
)
def test_without_a_marker_only_the_keys_of_a_call_are_taken(text: str, look: Look) -> None:
    assert head(text, strict=True)[0] is look


def test_the_first_key_may_be_the_name() -> None:
    texts = ['[{"f": {"id": 3}}]', '[{"name": "f"']
    assert [head(text, keyed=True) for text in texts] == [(YES, "f"), (YES, "f")]


def test_an_answer_is_final() -> None:
    reader = JsonHead()
    assert (reader.feed("[1"), reader.feed('{"name": "f"')) == (NO, NO)
