from __future__ import annotations

import json
import re

import pytest

from tests.leaks.corpus import EXAMPLES
from tests.leaks.reads import NAMES, calls
from troyproxy.leaks.calls import read_calls


def test_a_reader_s_answer_does_not_depend_on_what_another_family_s_markers_are_wrapped_around_it() -> None:
    bodies = ['{"name": "f", "arguments": {"a": 1}}', '<invoke name="f"><parameter name="a">1</parameter></invoke>']
    for example in EXAMPLES:
        opener = example.text.partition("dim_lamp")[0]
        if opener.startswith("<") and opener.endswith(">") and not re.search("function=|name|sep", opener):
            for body in bodies:
                assert [call.name for call in read_calls(opener + body, NAMES).calls] == ["f"], opener


@pytest.mark.parametrize(
    "text",
    [
        '<|DSML|tool_calls><|DSML|invoke name="f"><|DSML|parameter name="a" string="true">x</parameter></invoke>',
        '<|DSML|invoke name="f"><|DSML|parameter name="a">x</|DSML|parameter></|DSML|invoke>'.replace("|", "\uff5c"),
        '<|dsml|invoke name="f"><|dsml|parameter name="a">x</|dsml|parameter></|dsml|invoke>'.replace("|", "\u2016"),
        '<||DSML||invoke name="f"><||DSML||parameter name="a">x</parameter></invoke>'.replace("|", "\uff5c"),
        '<|DSML| invoke name="f"><|DSML| parameter name="a">x</|DSML| parameter></|DSML| invoke>',
        '<\uff5cinvoke name="f\uff5c><parameter name="a">x</parameter></invoke>',
        '<antml:function_calls><antml:invoke name="f"><antml:parameter name="a">x</antml:parameter></antml:invoke>',
        "<INVOKE NAME='f'><PARAMETER NAME='a'>x</PARAMETER></INVOKE>",
        "<function=f><parameter=a>x</parameter></function></tool_call>",
        "<seed:tool_call><function=f><parameter=a>x</parameter></function></seed:tool_call>",
        "<invoke name=f><parameter name=a>x</parameter></invoke>",
        '<tool_call><invoke name="f"><param name="a">x</param></invoke></tool_call>',
    ],
)
def test_elements_of_any_prefix_bars_and_case_are_one_grammar(text: str) -> None:
    assert calls(text) == [("f", {"a": "x"})]


@pytest.mark.parametrize(
    "text",
    [
        "<\uff5ctool_calls_begin\uff5c><\uff5ctool\u2581call\u2581begin\uff5c>f<\uff5ctool\u2581sep\uff5c>{}",
        "<\uff5ctool calls begin\uff5c>f<\uff5ctool\u2581sep\uff5c>{}<\uff5ctool\u2581call\u2581end\uff5c>",
        "<\uff5ctool\\_calls\\_begin\uff5c>function<\uff5ctool\u2581sep\uff5c>f\n```json\n{}\n```<\uff5ctool\u2581call\u2581end\uff5c>",
        "<\uff5ctool\u2581calls\uff5c>f<\uff5ctool\u2581sep\uff5c>{}",
        "functionf\n```json\n{}\n```",
        "functions.f:0{}",
        "f{}",
        "f\n{}",
        "call:f{}",
        "commentary to=functions.f json{}",
        "assistantcommentary to=functions.f json{}",
        "<|start|>assistant<|channel|>commentary to=functions.f<|constrain|>json<|message|>{}",
        "[f()]",
        "<tool_call>f</tool_call>",
        "<tool_calls:open><tool_call:open>f<tool_sep:open></tool_call:open></tool_calls:open>",
        "<|tool_call:start|>f\n<|tool_call:end|>",
        "<function=f></function>",
        "<function=f/>",
        '<tool_call>{"name": "f"}</tool_call>',
        ">>>f\n{}",
    ],
)
def test_drifted_and_stripped_spellings_of_a_call_without_arguments_are_read(text: str) -> None:
    assert calls(text) == [("f", {})]


@pytest.mark.parametrize("name", ["functions.f", "functions.f:0", "default_api.f", "tools.f", "f.f", '"f"', "F"])
def test_a_decorated_name_is_given_as_it_was_declared(name: str) -> None:
    assert calls(f"<tool_call>{json.dumps({'name': name, 'arguments': {}})}</tool_call>") == [("f", {})]
