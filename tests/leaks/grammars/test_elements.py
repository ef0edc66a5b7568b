from __future__ import annotations

import pytest

from tests.leaks.reads import arguments, calls, is_no_call, is_unfinished, read

FUNCTION = "<tool_call>\n<function=f>\n{}\n</function>\n</tool_call>"


def parameter(value: str, key: str = "a") -> str:
    """One parameter as the template writes it."""
    return f"<parameter={key}>\n{value}\n</parameter>"


@pytest.mark.parametrize(
    "text",
    [
        *('<function=f>{"a": 1}</function>', '<function=f {"a": 1}></function>', '<function=f({"a": 1})></function>'),
        *('<function=f({"a": 1})</function>', '<function=f>({"a": 1})</function>', '<function(f)>{"a": 1}</function>'),
        *(
            '<function(f){"a": 1}</function>',
            '<function(f)>{"a": 1}',
            '<FUNCTION=f>{"a": 1}</FUNCTION>',
            '<function="f">{"a": 1}',
        ),
        *('<function name="f">{"a": 1}</function>', '<function>{"name": "f", "arguments": {"a": 1}}</function>'),
        *(
            '<invoke name="f">{"a": 1}</invoke>',
            '<function=f>\n{"a": 1}\n</function>',
            '<function=f, {"a": 1}></function>',
        ),
        *('<function=functions.f>{"a": 1}</function>', "<invoke name='f'>{\"a\": 1}</invoke>"),
    ],
)
def test_an_element_may_hold_json(text: str) -> None:
    assert arguments(text) == {"a": 1}


@pytest.mark.parametrize(
    "value",
    [
        *(
            'df -h | head -3 && echo "<ok>"',
            "&amp; stays",
            "a < b",
            "x\n\ny",
            "  indented",
            "null",
            "[1]",
            "<b>bold</b>",
            "",
        ),
        *(
            '<tool_call>{"name":"x"}</tool_call>',
            "see: <tool_call>x</tool_call> end",
            "<function=g>",
            "print('</function>')",
        ),
        *(
            "use </parameter> to close",
            "</parameter>, </function>",
            "<parameter=x> inline",
            "</parameter>\n\nis a tag",
            "{",
        ),
        *("<parameter name='x'>quoted</parameter> here", "a </parameter></functional> b"),
    ],
)
def test_a_value_is_raw_and_is_not_cut_at_markup_inside_it(value: str) -> None:
    assert arguments(FUNCTION.format(parameter(value) + "\n" + parameter("2", "b"))) == {"a": value, "b": "2"}


def test_one_newline_at_each_side_belongs_to_the_template() -> None:
    assert arguments(FUNCTION.format("<parameter=a>\n\nx\n\n</parameter>")) == {"a": "\nx\n"}
    assert arguments(FUNCTION.format("<parameter=a>\r\nx\r\n</parameter>")) == {"a": "x"}


@pytest.mark.parametrize(
    "inside",
    [
        "<parameter=a>\n1\n<parameter=b>\n2\n</parameter>",
        "<parameter=a>1</parameter><parameter=b>2",
        "<parameter=a>\n1\n<parameter=b>\n2",
        '<parameter name="a">1</parameter><param name="b">2</param>',
        "<parameter=a>1</parameter><parameter=b>2</parameter><parameter=a>3</parameter>",
    ],
)
def test_a_lost_closer_is_made_good_by_what_follows(inside: str) -> None:
    assert arguments(FUNCTION.format(inside)) == {"a": "1", "b": "2"}


@pytest.mark.parametrize(
    "value",
    [
        "Doc:\n<parameter=k>\nv\n</parameter>\nmore",
        "Doc:\n<tool_call>\n<function=x>\n<parameter=k>\nv\n</parameter>\n</function>\n</tool_call>",
        "Doc:\n<tool_call>\n<function=x>\n<parameter=k>\nv\n</parameter>\n</function>\n</tool_call>\nDone.",
        "<function=x>\n<parameter=k>\nv\n</parameter>\n</function>\nDone.",
        "</parameter>\n</function>\n</tool_call>\nis how it ends",
    ],
)
def test_nested_markup_that_cannot_be_told_apart_gives_no_call_to_send(value: str) -> None:
    assert not read(FUNCTION.format(parameter(value))).complete


@pytest.mark.parametrize(
    ("end", "closed"),
    [
        ("</tool_call>", True),
        ("<|im_end|>", True),
        ("<tool_call>\n<function=f>\n</function>", True),
        ("</function>", True),
    ],
)
def test_an_element_is_ended_by_its_closer_or_by_what_cannot_stand_inside_it(end: str, closed: bool) -> None:
    reading = read("<tool_call>\n<function=f>\n" + parameter("1") + "\n" + end)
    assert reading.calls[0].arguments == {"a": "1"}
    assert (reading.complete, reading.closed) == (True, closed)


@pytest.mark.parametrize(
    "end", ["", "\n", "\n<", "\n</func", "\n</function", "\n<param", '\n<parameter name="b', "\n<parameter=b>"]
)
def test_an_element_without_any_end_is_unfinished(end: str) -> None:
    assert is_unfinished("<function=f>\n" + parameter("1") + end)


@pytest.mark.parametrize("value", ["rm -rf ./build", "rm -rf ./build</param", "x</parameter", "</function", ""])
def test_an_open_last_value_is_never_completed(value: str) -> None:
    assert is_unfinished("<tool_call>\n<function=f>\n<parameter=cmd>\n" + value)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "<function=f>text",
            "<function=f>text</function>",
            "<function=f",
            "<function=f>{x}",
            "<function=f>{]}",
            "<invoke>",
        ),
        *(
            "<invoke name=f>\n<b>x</b></invoke>",
            "<function foo>",
            "<function=f> <parameter>x</parameter>",
            "<function={}>",
        ),
        *("<functional=f>", "<function=f x>", "<invoke><tool_name>f</tool_name><b>", "<function=" + "f" * 200 + ">{}"),
    ],
)
def test_other_markup_is_no_call(text: str) -> None:
    assert is_no_call(text) is (text not in {"<function=f", "<invoke>"})


def test_whether_a_value_is_text_or_json_may_be_said_by_its_tag() -> None:
    text = (
        '<|DSML|invoke name="f"><|DSML|parameter name="a" string="true">3</|DSML|parameter>'
        '<|DSML|parameter name="b" string="false">{"c": [1]}</|DSML|parameter>'
        "<|DSML|parameter name='d' string=false>3</|DSML|parameter></|DSML|invoke>"
    )
    (call,) = read(text).calls
    assert (call.arguments, call.typed) == ({"a": "3", "b": {"c": [1]}, "d": 3}, True)


def test_json_that_is_promised_and_not_given_is_no_call() -> None:
    assert is_no_call(
        '<|DSML|invoke name="f"><|DSML|parameter name="a" string="false">x</|DSML|parameter></|DSML|invoke>'
    )


def test_parameters_without_such_a_tag_are_untyped() -> None:
    (call,) = read('<invoke name="f"><parameter name="a">3</parameter></invoke>').calls
    assert (call.arguments, call.typed) == ({"a": "3"}, False)


def test_only_param_knows_cdata() -> None:
    assert arguments('<function name="f"><param name="a"> <![CDATA[</param> & ]] >]]></param></function>') == {
        "a": "</param> & ]] >"
    }
    assert arguments("<function=f><parameter=a><![CDATA[x]]></parameter></function>") == {"a": "<![CDATA[x]]>"}


@pytest.mark.parametrize(
    "text", ['<function name="f"><param name="a"><![CDATA[x', '<function name="f"><param name="a"><![CDATA[x]]></par']
)
def test_open_cdata_is_unfinished(text: str) -> None:
    assert is_unfinished(text)


def test_text_behind_cdata_is_no_value() -> None:
    assert is_no_call('<function name="f"><param name="a"><![CDATA[x]]> y</param></function>')


def test_the_legacy_shape_names_its_tool_and_keys_in_tags() -> None:
    inside = "<a>1 </a> 2</a>\n<B>x</B>\n"
    text = f"<function_calls>\n<invoke>\n<tool_name>f</tool_name>\n<parameters>\n{inside}</parameters>\n</invoke>"
    (call,) = read(text).calls
    assert (call.arguments, call.typed) == ({"a": "1 </a> 2", "B": "x"}, False)


@pytest.mark.parametrize(
    "cut", ["<invoke>", "<tool_name>", "f", "</tool_name>", "<parameters>", "<a>", "1", "</a>", "</parameters>"]
)
def test_the_legacy_shape_is_unfinished_up_to_its_end(cut: str) -> None:
    text = "<invoke><tool_name>f</tool_name><parameters><a>1</a></parameters></invoke>"
    assert is_unfinished(text[: text.index(cut) + len(cut)])


def test_several_elements_are_read_in_order() -> None:
    one, other = "<function=f>" + parameter("1") + "</function>", '<invoke name="dim_lamp">{"id": 2}</invoke>'
    assert calls(one + "\n" + other) == [("f", {"a": "1"}), ("dim_lamp", {"id": 2})]
