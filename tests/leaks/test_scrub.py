from __future__ import annotations

import pytest

from tests.leaks.scanning import cuts
from troyproxy.leaks.scrub import Scrub

KIMI = (
    '<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{"a": 1}<|tool_call_end|>'
)


def scrubbed(*pieces: str) -> tuple[str, str | None]:
    scrub = Scrub()
    text = "".join(map(scrub.feed, pieces)) + scrub.finish()
    return text, scrub.found


@pytest.mark.parametrize(
    ("text", "left", "found"),
    [
        (f"I look.{KIMI}<|tool_calls_section_end|>", 'I look.functions.f:0{"a": 1}', "F21"),
        ("<\uff5ctool\u2581calls\u2581begin\uff5c>a<\uff5ctool\u2581sep\uff5c>b", "ab", "F17"),
        ("<|channel|>commentary to=f<|message|>{}", "commentary to=f{}", "F30"),
        ("[TOOL_CALLS]f[ARGS]{}", "f{}", "F11"),
        ("a <TOOLCALL>[", "a [", "F37"),
        ("<|python_tag|>", "", "F06"),
        ("plain <b> [x] a<|b", "plain <b> [x] a<|b", None),
        ("<tool_call>", "<tool_call>", None),
        ("Vec<ToolCall>", "Vec<ToolCall>", None),
        ("", "", None),
    ],
)
def test_special_tokens_are_taken_out_and_the_rest_stays_whatever_the_cuts(
    text: str, left: str, found: str | None
) -> None:
    assert scrubbed(text) == (left, found)
    assert scrubbed(*text) == (left, found)
    assert {scrubbed(*pieces) for pieces in cuts(text, 50)} == {(left, found)}


def test_only_what_may_become_a_token_is_held() -> None:
    scrub = Scrub()
    assert [scrub.feed(text) for text in ("a <", "|tool", " b", "<|")] == ["a ", "", "<|tool b", ""]
    assert (scrub.finish(), scrub.finish()) == ("<|", "")
