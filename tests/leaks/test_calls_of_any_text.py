from __future__ import annotations

import json
import sys

from hypothesis import given
from hypothesis import strategies as st

from tests.leaks.reads import calls, read

# what a call, its wrapper or its values may be made of
PIECES = [
    *("<tool_call>", "</tool_call>", "<function=f>", "</function>", "<parameter=a>", "</parameter>", "<invoke name=f>"),
    *('{"name": "f", "arguments": {', '"id": 3', "}", "]", "[", '"', "'", "\\", ",", ":", "f(", ")", "a=", "[f(a=1"),
    *(
        "<arg_key>",
        "</arg_key>",
        "<arg_value>",
        "</arg_value>",
        "f",
        "f{",
        "call:f{",
        "a:",
        "<escape>",
        '<|"|>',
        "=",
        "=",
    ),
    *("<|channel|>", "commentary to=f ", "<|message|>", "]<]minimax[>[", "<a>", "</a>", "<item>", "</item>", "</s>"),
    *("<|open|>", 'call tool="f"<|sep|>', 'argument key="k" type="string"<|sep|>', "<|close|>argument<|sep|>", "]]>"),
    *(
        "```json\n",
        "```",
        "\n",
        " ",
        ";",
        "<|python_tag|>",
        "print(default_api.f(",
        "[TOOL_CALLS]",
        "[ARGS]",
        "<![CDATA[",
    ),
    *(
        "<|tool_sep|>",
        "function",
        "<tool_response>",
        "\uff5c",
        "\u2581",
        "\ud800",
        "\x00",
        "-1e999",
        "01",
        '"""',
        "'''",
    ),
    *("<param name=a>", "<invoke><tool_name>f</tool_name><parameters>", "</parameters>", "</invoke>", "<function>"),
]
texts = st.lists(st.sampled_from(PIECES) | st.text(max_size=4), max_size=14).map("".join)


@given(texts)
def test_reading_never_raises_and_every_answer_is_consistent(text: str) -> None:
    reading = read(text)
    assert 0 <= reading.end <= len(text)
    assert not (reading.complete and reading.dangling)
    assert bool(reading.calls) is (reading.end > 0)
    for call in reading.calls:
        json.dumps(call.arguments, allow_nan=False)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
objects = st.dictionaries(st.text(max_size=6), json_values, max_size=4)


@given(st.lists(objects, min_size=1, max_size=3))
def test_random_arguments_come_back_from_every_json_format(given_arguments: list[dict[str, object]]) -> None:
    bodies = [json.dumps({"name": "f", "arguments": one}, ensure_ascii=False) for one in given_arguments]
    raw = [json.dumps(one) for one in given_arguments]
    for text in (
        "".join(f"<tool_call>\n{body}\n</tool_call>\n" for body in bodies),
        f"[{', '.join(bodies)}]",
        "; ".join(bodies),
        "<tool_calls>" + "\n".join(bodies) + "</tool_calls>",
        "".join(f"[TOOL_CALLS]f[ARGS]{one}" for one in raw),
        "".join(f"<function=f>{one}</function>" for one in raw),
        "".join(f"<|channel|>commentary to=functions.f <|constrain|>json<|message|>{one}<|call|>" for one in raw),
    ):
        assert calls(text) == [("f", one) for one in given_arguments]


@given(st.lists(objects, min_size=1, max_size=2), st.data())
def test_a_cut_of_random_calls_gives_only_whole_ones(
    given_arguments: list[dict[str, object]], data: st.DataObject
) -> None:
    text = "".join(f"<tool_call>{json.dumps({'name': 'f', 'arguments': one})}</tool_call>" for one in given_arguments)
    reading = read(text[: data.draw(st.integers(0, len(text) - 1))])
    assert [call.arguments for call in reading.calls] == given_arguments[: len(reading.calls)]


def events_of(text: str) -> int:
    """Return how many calls of functions, Python's and C's, it takes to read *text*."""
    count = 0

    def counted(*_: object) -> None:
        nonlocal count
        count += 1

    sys.setprofile(counted)
    try:
        read(text)
    finally:
        sys.setprofile(None)
    return count


def test_twice_the_text_takes_no_more_than_twice_the_work() -> None:
    heads = [
        "",
        "<tool_call>",
        "<function=f><parameter=a>",
        "<tool_call>f<arg_key>k</arg_key><arg_value>",
        "[f(a=",
        "call:f{a:",
    ]
    bodies = [
        *PIECES,
        "</parameter>x",
        "\n<parameter=a>",
        "</function>x",
        "</arg_value>x",
        "a=1,",
        '"a":{',
        "[f(a=1),",
        "f{};",
    ]
    for head in heads:
        for body in bodies:
            once, twice = (events_of(head + body * times) for times in (150, 300))
            assert twice < 2 * once + 400, (head, body)


def test_a_captured_text_of_the_largest_size_is_read() -> None:
    size = 256 * 1024
    inside = json.dumps({"name": "f", "arguments": {"a": "x\\" * (size // 3), "b": [{}] * 1000}})
    assert len(calls(f"<tool_call>{inside}</tool_call>")) == 1
    for body in ("<", "</parameter>", "\n", "</parameter> ", "<param ", "&", '"', "\\"):
        assert read("<function=f><parameter=a>" + body * (size // len(body))).dangling
