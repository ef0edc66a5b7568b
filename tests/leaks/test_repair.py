from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from tests.leaks.corpus import EXAMPLES, LAMP, VECTORS
from troyproxy.leaks.asked import Asked, Inputs
from troyproxy.leaks.options import Options, Validate
from troyproxy.leaks.repair import Repair, repaired, suppressed_reason

SCHEMA: Mapping[str, object] = {
    "type": "object",
    "properties": {"id": {"type": "integer"}, "room": {"type": "string"}},
    "required": ["id"],
}
ASKED = Asked(names=frozenset({"dim_lamp", "other"}), schemas={"dim_lamp": SCHEMA})
CALL = '<tool_call>{"name": "dim_lamp", "arguments": {"id": 3}}</tool_call>'
UNTYPED = "<function=dim_lamp><parameter=id>\n3\n</parameter></function>"
OTHER = '<tool_call>{"name": "other", "arguments": {}}</tool_call>'


def repair(
    text: str,
    asked: Asked = ASKED,
    finish_reason: str | None = "stop",
    **options: Any,  # noqa: ANN401
) -> Repair | None:
    """Repair *text* with *options* changed."""
    return repaired(text, asked, Options(**options), finish_reason=finish_reason, response_id="r1")


def sent(found: Repair | None) -> list[tuple[str, Any]]:
    """Return names and decoded arguments."""
    return [(call.name, json.loads(call.arguments)) for call in found.calls] if found else []


def test_a_vector_gives_exactly_its_calls() -> None:
    starts = {"tl-009": "<function=", "tl-027": "<invoke", "tl-036": "<\uff5cDSML"}
    for vector in (one for one in VECTORS if one.expect == "leak"):
        text = vector.text[vector.text.find(starts.get(vector.id, "")) :]
        made = sent(repair(text, vector.asked()))
        assert made == [(call["name"], call["arguments"]) for call in vector.calls], vector.id


def test_an_own_example_of_every_format_becomes_calls() -> None:
    for example in EXAMPLES:
        found = repair(example.text, Asked(names=LAMP), None)
        assert found, example.id
        assert sent(found) == [("dim_lamp", given) for given in example.calls], example.id
        assert found.finish_reason == "tool_calls"


def test_no_cut_of_an_example_makes_a_call_that_it_does_not_make_whole() -> None:
    for example in EXAMPLES:
        for cut in range(len(example.text)):
            for reason in ("stop", "length"):
                made = [given for _, given in sent(repair(example.text[:cut], Asked(names=LAMP), reason))]
                assert made == example.calls[: len(made)], example.text[:cut]


def test_several_calls_get_ids_of_their_own() -> None:
    found = repair(CALL + OTHER)
    assert found
    assert sent(found) == [("dim_lamp", {"id": 3}), ("other", {})]
    assert len({call.id for call in found.calls}) == 2


def test_an_echo_is_no_call() -> None:
    echo = Asked(names=LAMP, inputs=Inputs({"messages": [{"role": "user", "content": f"Repeat: {CALL}"}]}))
    assert repair(CALL, echo) is None
    assert repair(CALL, echo, echo_check=False)


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        *(
            (text, ASKED)
            for text in ("", "prose", "<tool_call>{x}</tool_call>", '<tool_call>{"name": "dim_lamp", "argum')
        ),
        ('<tool_call>{"name": "unknown", "arguments": {}}</tool_call>', ASKED),
        (CALL + '<tool_call>{"name": "unknown", "arguments": {}}</tool_call>', ASKED),
        ('<tool_call>{"name": "dim_lamp", "arguments": []}</tool_call>', ASKED),
        ('<tool_call>{"name": "dim_lamp", "arguments": {"room": "x"}}</tool_call>', ASKED),
        (CALL + "<tool_call>{broken}</tool_call>", ASKED),
        (CALL, Asked(names=frozenset({"dim_lamp", "other"}), forced="other")),
        (CALL, Asked(names=LAMP, barred=LAMP)),
        (CALL, Asked(names=LAMP, only_special=True)),
        ('<tool_call>{"name": "other", "arguments": {"a": "\\ud800"}}</tool_call>', ASKED),
    ],
)
def test_what_fails_a_check_is_not_repaired(text: str, asked: Asked) -> None:
    assert repair(text, asked) is None


def test_a_forced_function_may_be_called() -> None:
    assert repair(CALL, Asked(names=LAMP, forced="dim_lamp"))


def test_an_excluded_tool_is_not_called() -> None:
    assert repair(CALL, repair_exclude=frozenset({"dim_lamp"})) is None


def test_only_the_first_call_is_kept_where_parallel_calls_are_off_or_legacy() -> None:
    for asked in (Asked(names=ASKED.names, parallel=False), Asked(names=ASKED.names, legacy=True)):
        assert sent(repair(CALL + OTHER, asked)) == [("dim_lamp", {"id": 3})]


def test_arguments_are_coerced_unless_that_is_off() -> None:
    assert sent(repair(UNTYPED)) == [("dim_lamp", {"id": 3})]
    assert sent(repair(UNTYPED, coerce=False)) == [("dim_lamp", {"id": "3"})]


@pytest.mark.parametrize(
    ("validate", "given", "repairs"),
    [
        *((Validate.OFF, {}, True), (Validate.REQUIRED, {}, False), (Validate.REQUIRED, {"id": "x"}, True)),
        *((Validate.FULL, {"id": "x"}, False), (Validate.FULL, {"id": 3}, True), (Validate.FULL, {"id": "3"}, True)),
    ],
)
def test_how_much_of_the_schema_must_be_met_is_configured(validate: Validate, given: object, repairs: bool) -> None:
    text = json.dumps({"name": "dim_lamp", "arguments": given})
    assert (repair(text, validate=validate) is not None) is repairs


def test_arguments_are_written_as_they_are_read_and_never_empty() -> None:
    found = repair(
        '<tool_call>{"name": "other", "arguments": {"a": "é"}}</tool_call><tool_call>{"name": "other"}</tool_call>'
    )
    assert found
    assert [call.arguments for call in found.calls] == ['{"a": "é"}', "{}"]


@pytest.mark.parametrize(
    ("text", "upstream", "calls", "reason"),
    [
        *((CALL, upstream, 1, "tool_calls") for upstream in ("stop", "eos", None, "tool_calls", "length")),
        (CALL + OTHER, "length", 2, "tool_calls"),
        (CALL + '<tool_call>{"name": "oth', "length", 1, "length"),
        (CALL + '<tool_call>{"name": "other", "arguments": {}}', "length", 1, "length"),
        ('[TOOL_CALLS]other{"a": 1}', "length", 1, "tool_calls"),
        (UNTYPED + "</tool_call>", "length", 1, "tool_calls"),
        (CALL + "\nIt is d", "length", 1, "tool_calls"),
    ],
)
def test_the_finish_reason_goes_with_the_calls(text: str, upstream: str | None, calls: int, reason: str) -> None:
    found = repair(text, finish_reason=upstream)
    assert found
    assert (len(found.calls), found.finish_reason) == (calls, reason)


@pytest.mark.parametrize(
    ("text", "upstream"),
    [
        (CALL, "content_filter"),
        (CALL + '<tool_call>{"name": "oth', "stop"),
        (CALL.removesuffix("</tool_call>"), "length"),
        (CALL + "<tool_call>{broken}", "length"),
        (UNTYPED + "</tool_call>\nis how", "length"),
        (UNTYPED.removesuffix("</parameter></function>") + "</function>", "length"),
    ],
)
def test_some_reasons_forbid_a_repair(text: str, upstream: str) -> None:
    assert repair(text, finish_reason=upstream) is None


def test_a_legacy_request_finishes_with_a_function_call() -> None:
    found = repair(CALL, Asked(names=LAMP, legacy=True))
    assert found
    assert found.finish_reason == "function_call"


def test_prose_behind_a_call_is_dropped_unless_the_text_must_be_whole() -> None:
    text = CALL + "\nHere is the forecast: sunny."
    assert sent(repair(text)) == [("dim_lamp", {"id": 3})]
    assert repaired(text, ASKED, Options(), finish_reason=None, response_id="r", whole=True) is None


def test_an_operator_s_own_opener_is_repaired() -> None:
    assert sent(repair("[Tool call] other: {}", extra_openers=("[Tool call] ",))) == [("other", {})]


@pytest.mark.parametrize(
    ("upstream", "structured", "reason"),
    [
        *(
            ("stop", False, "stop"),
            ("length", False, "length"),
            (None, False, None),
            ("content_filter", False, "content_filter"),
        ),
        *(("tool_calls", False, "stop"), ("tool_calls", True, "tool_calls"), ("function_call", False, "stop")),
    ],
)
def test_a_suppressed_choice_keeps_its_reason_unless_it_promises_calls(
    upstream: str | None, structured: bool, reason: str | None
) -> None:
    assert suppressed_reason(upstream, structured=structured) == reason


def test_a_call_gets_no_id_that_the_conversation_has_already() -> None:
    first = repair(CALL)
    assert first is not None
    history = {"messages": [{"role": "assistant", "tool_calls": [{"id": first.calls[0].id}]}]}
    second = repair(CALL, replace(ASKED, inputs=Inputs(history)))
    assert second is not None
    assert second.calls[0].id != first.calls[0].id
