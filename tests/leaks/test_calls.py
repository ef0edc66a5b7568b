from __future__ import annotations

import re

import pytest

from tests.leaks.corpus import EXAMPLES, LAMP, VECTORS, Example, Vector
from tests.leaks.reads import NAMES, calls, is_no_call, is_unfinished, read
from troyproxy.leaks.calls import read_calls

LEAKS = [vector for vector in VECTORS if vector.expect == "leak"]
TEXTS = [(example.text, LAMP) for example in EXAMPLES]
TEXTS += [
    (vector.text, frozenset(vector.tools))
    for vector in LEAKS
    if vector.calls and re.match(r"<(?!.*analysis)|[\[{`]", vector.text)
]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.id)
def test_an_own_example_of_every_format_gives_its_calls(example: Example) -> None:
    reading = read_calls(example.text, LAMP)
    assert [(call.name, call.arguments) for call in reading.calls] == [("dim_lamp", given) for given in example.calls]
    assert reading.complete
    assert reading.end == len(example.text)


def test_every_format_has_an_example() -> None:
    assert {example.id[:3] for example in EXAMPLES} == {f"F{number:02}" for number in range(1, 48)}


@pytest.mark.parametrize("vector", LEAKS, ids=lambda vector: vector.id)
def test_a_vector_gives_the_names_of_its_calls(vector: Vector) -> None:
    start = re.search(r"(?:(?<=\n\n)|(?<=now\. ))<", vector.text)
    reading = read_calls(vector.text[start.start() if start else 0 :], frozenset(vector.tools))
    assert [call.name for call in reading.calls if call.name in vector.tools] == [call["name"] for call in vector.calls]


def test_no_beginning_of_a_call_is_another_call_or_half_of_one() -> None:
    for text, names in TEXTS:
        whole = read_calls(text, names).calls
        for cut in range(1, len(text)):
            reading = read_calls(text[:cut], names)
            assert reading.calls == whole[: len(reading.calls)], text[:cut]
            assert reading.complete is (bool(reading.calls) and not reading.dangling), text[:cut]


def test_a_begun_call_is_unfinished_at_every_cut() -> None:
    for text, names in TEXTS:
        for cut in range(1, len(text)):
            reading = read_calls(text[:cut], names)
            assert reading.dangling or (reading.calls and reading.end == cut), text[:cut]


def test_an_undeclared_name_behind_a_marker_is_given_as_it_was_read() -> None:
    assert calls('<tool_call>{"name": "Other", "arguments": {}}') == [("Other", {})]


@pytest.mark.parametrize(
    "text",
    ['{"name": "g", "arguments": {}}', "[g(a=1)]", "g{}", "call:g{}", "f(a=1)", '{"name": "f"}', '{"f": {"a": 1}}'],
)
def test_without_a_marker_only_a_declared_name_with_arguments_is_a_call(text: str) -> None:
    assert is_no_call(text)


@pytest.mark.parametrize(
    "tail",
    ["", "\n", "</tool_call>", "</tool_c", "<|im_end|>", "<|im_e", "</s>", ";", "<tool_response>{}\nSunny!"],
)
def test_closers_stop_tokens_and_invented_results_belong_to_the_calls(tail: str) -> None:
    text = '<tool_call>{"name": "f", "arguments": {}}' + tail
    assert read(text).complete
    assert read(text).end == len(text)


def test_prose_behind_a_call_does_not_belong_to_it() -> None:
    text = '<tool_call>{"name": "f", "arguments": {}}</tool_call>\n'
    reading = read(text + "That was it.")
    assert (reading.complete, reading.end) == (True, len(text))


@pytest.mark.parametrize(
    "next_one", ["<tool_call>", "<tool_call>{", "<function=f>", "<tool_call>f", "<function=", "<|"]
)
def test_a_call_that_is_begun_behind_a_whole_one_leaves_the_reading_dangling_or_closed(next_one: str) -> None:
    reading = read('<tool_call>{"name": "f", "arguments": {}}</tool_call>' + next_one)
    assert len(reading.calls) == 1
    assert reading.dangling is (next_one != "<|")


@pytest.mark.parametrize(
    "next_one", ["<tool_call>{x}</tool_call>", "<function=f>prose", "<tool_call>a b", "<|weird|> f"]
)
def test_a_broken_call_behind_a_whole_one_makes_the_reading_incomplete(next_one: str) -> None:
    reading = read('<tool_call>{"name": "f", "arguments": {}}</tool_call>' + next_one)
    assert (reading.complete, reading.dangling) == (False, False)


def test_an_empty_shell_behind_a_call_is_skipped() -> None:
    text = '<tool_call>{"name": "f", "arguments": {}}</tool_call><tool_call></tool_call>'
    assert calls(text) == [("f", {})]


def test_a_closed_wrapper_vouches_for_nothing_behind_it() -> None:
    reading = read('<tool_call>{"name": "f", "arguments": {}}</tool_call>f(a=1)')
    assert len(reading.calls) == 1


@pytest.mark.parametrize(
    ("text", "closed"),
    [
        ('<tool_call>{"name": "f", "arguments": {}}', False),
        ('<tool_call>{"name": "f", "arguments": {}}</tool_call>', True),
        ('[{"name": "f", "arguments": {}}', False),
        ("[f(a=1)", False),
        ("[f(a=1)]", True),
        ('[TOOL_CALLS]f{"a": 1}', True),
        ("<function=f>{}", False),
        ("<function=f><parameter=a>1</parameter></tool_call>", True),
        ("<function=f><parameter=a>1</parameter><function=f></function>", True),
    ],
)
def test_whether_the_last_call_was_closed_is_known(text: str, closed: bool) -> None:
    reading = read(text)
    assert reading.complete
    assert reading.closed is closed


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            " ",
            "hello",
            "<b>",
            "<tool_call>is the tag",
            "<function block",
            "{1}",
            "{'name': 'f'}",
            "[1, 2]",
            "[x](y)",
        ),
        *(
            '<ToolCall>[{"name": "f", "arguments": {}}]',
            "<tool_call>\n\n</tool_call>",
            "[ ] f(a=1)",
            "a{}",
            "``` a",
            "]x",
        ),
        *(
            "```rust\nf{}\n```",
            "<function=f> is a marker",
            "<invoke name=f>text</invoke>",
            "<f, g>",
            "f is",
            "call:f(1)",
        ),
        *(
            "print(x)",
            "<|python_tag|>print(x)",
            "<|python_tag|>f(1)",
            "<|python_tag|>f.call(1)",
            "<|channel|>final<|message|>",
        ),
        *(
            "<tool_call>f\nx</tool_call>",
            "<|x|>{}",
            "commentary on f {}",
            "[TOOL_CALLS]f[X]{}",
            "<tool_call>{]</tool_call>",
        ),
    ],
)
def test_other_text_is_no_call(text: str) -> None:
    assert is_no_call(text)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "<",
            "<tool_c",
            "<tool_call>",
            "```",
            "```js",
            "```json\n",
            "func",
            "tool_co",
            "[TOOL",
            "]<]mini",
            "call:f",
            "f",
        ),
        *(
            "<tool_call>is",
            '<tool_call>{"name": "g',
            "<function=g",
            "[f(a=1, b",
            "f[AR",
            "f[CALL_ID]x[A",
            "<|channel|>comm",
        ),
        *("functionf", "functions.", "print(default_api.f(a=", "<|start|>assistant to=functions.f", "<|python_tag|>x"),
        *("dim_lamp\n```js", '<function name="', "<invoke><tool_na", '<|open|>call tool="f"', "<tool_call>f\n<arg_"),
    ],
)
def test_a_beginning_is_unfinished(text: str) -> None:
    assert is_unfinished(text)


def test_a_message_of_the_model_to_itself_is_skipped_before_a_call() -> None:
    text = "<|channel|>analysis<|message|>Hm, {}<|end|><|start|>assistant<|channel|>commentary to=f<|message|>{}"
    assert calls(text) == [("f", {})]


def test_more_openers_are_taken_and_vouch_for_nothing() -> None:
    extra = ("[Tool call] ",)
    assert read_calls("[Tool call] f: {}", NAMES, extra=extra).complete
    assert read_calls("[Tool", NAMES, extra=extra).dangling
    assert not read_calls("[Tool call] g: {}", NAMES, extra=extra).calls
