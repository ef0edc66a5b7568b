"""Chat bodies are read in any shape; nothing raises."""

from __future__ import annotations

import json

import pytest
from hypothesis import given

from tests.wire.chat_shapes import JSON
from troyproxy.wire import chat
from troyproxy.wire.sse import FrameDecoder


def delta(finish: object = None, **fields: object) -> dict[str, object]:
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": finish}]}


def outputs(event: object) -> list[bool]:
    return [chat.has_output(choice) for _, choice in chat.choices_in(event)]


@given(JSON)
def test_no_shape_of_json_raises(value: object) -> None:
    results = (
        isinstance(outputs(value), list),
        chat.failed_call(value) in {None, *chat.FAILED_CALLS},
        isinstance(chat.delta_texts(value), list),
        isinstance(chat.error_message(chat.error_of(value)), str),
        isinstance(chat.error_message(value), str),
        chat.error_code(value) in {None, *range(400, 600)},
        chat.is_completion(value) in {True, False},
        chat.is_embedding(value) in {True, False},
        chat.has_tools(value) in {True, False},
    )
    assert all(results)


@pytest.mark.parametrize(
    "fields",
    [
        {"content": "x"},
        {"content": [{"type": "text", "text": "x"}]},
        {"reasoning": "x"},
        {"reasoning_content": "x"},
        {"refusal": "x"},
        {"audio": {"data": "x"}},
        {"tool_calls": [{"index": 0}]},
        {"function_call": {"name": "f"}},
    ],
)
def test_a_non_empty_delta_is_output(fields: dict[str, object]) -> None:
    assert outputs(delta(**fields)) == [True]


@pytest.mark.parametrize(
    "event",
    [
        delta(),
        delta(role="assistant", content=""),
        delta(content=None, tool_calls=[]),
        delta(finish=""),
        {"choices": []},
        {"choices": None},
        {"choices": [None, "x", {"delta": None}, {"delta": "x"}]},
        {"choices": [{"index": 0, "text": ""}]},
        {},
        None,
        [],
    ],
)
def test_a_preamble_is_no_output(event: object) -> None:
    assert not any(outputs(event))


def test_a_finish_reason_alone_is_no_output() -> None:
    assert outputs(delta(finish="stop")) == [False]


def test_legacy_text_is_output() -> None:
    assert outputs({"choices": [{"index": 0, "text": "x", "finish_reason": None}]}) == [True]


def test_each_choice_is_looked_at() -> None:
    assert outputs({"choices": [{"delta": {"role": "assistant"}}, {"delta": {"content": "x"}}]}) == [False, True]


def test_choices_are_told_apart_by_index_or_else_position() -> None:
    event = {
        "choices": [{"index": 3, "finish_reason": "stop"}, {"delta": {}}, {"index": True, "finish_reason": "length"}]
    }
    assert [index for index, _ in chat.choices_in(event)] == [3, 1, 2]


def test_content_deltas_come_with_their_index() -> None:
    event = {
        "choices": [
            {"index": 1, "delta": {"content": "a"}},
            {"index": 0, "delta": {"content": [{"type": "text", "text": "b"}, {"text": None}, "x", {"text": "c"}]}},
            {"index": 2, "text": "d"},
            {"index": 4, "delta": {"content": 7}},
            {"index": 5, "delta": {"content": ""}},
        ]
    }
    assert chat.delta_texts(event) == [(1, "a"), (0, "bc"), (2, "d")]


@pytest.mark.parametrize(
    ("value", "error"),
    [
        ({"error": {"message": "no"}}, {"message": "no"}),
        ({"error": {}}, {}),
        ({"error": "no", "choices": []}, "no"),
        ({"error": "no", "choices": None}, "no"),
        ([{"error": {"code": 429}}], {"code": 429}),
        ({"error": "no", "choices": [{"delta": {"content": ""}, "finish_reason": "error"}]}, "no"),
    ],
)
def test_an_error_without_usable_choices_is_one(value: object, error: object) -> None:
    assert chat.error_of(value) == error


@pytest.mark.parametrize(
    "value",
    [
        {"error": None},
        {"error": ""},
        {"error": 0},
        {"error": ["x"]},
        [],
        "error",
        {**delta(content='set "error"'), "error": None},
        {**delta(content="x"), "error": {"code": 500}},
        {**delta(finish="stop"), "error": "late"},
    ],
)
def test_healthy_bodies_and_usable_choices_are_no_error(value: object) -> None:
    assert chat.error_of(value) is None


@pytest.mark.parametrize(
    ("error", "message"),
    [
        ("no", "no"),
        ({"message": "no"}, "no"),
        ({"message": "", "msg": "no"}, "no"),
        ({"message": None, "detail": "no"}, "no"),
        ({"code": 1}, '{"code":1}'),
        (None, "null"),
        ("x" * 3000, "x" * 2000),
    ],
)
def test_an_error_has_a_message(error: object, message: str) -> None:
    assert chat.error_message(error) == message


def test_an_error_too_deep_to_show_still_has_a_message() -> None:
    error: list[object] = []
    for _ in range(100_000):
        error = [error]
    assert chat.error_message(error) == "unreadable error"


@pytest.mark.parametrize(
    ("error", "code"),
    [
        ({"code": 429}, 429),
        ({"code": "503"}, 503),
        ({"code": "rate_limit_exceeded", "status": 429}, 429),
        ({"code": None, "status": "RESOURCE_EXHAUSTED"}, None),
        ({"code": 200}, None),
        ({"code": 600}, None),
        ({"code": True}, None),
        ({"code": 429.5}, None),
        ({"code": "4290"}, None),
        ("429", None),
    ],
)
def test_only_an_error_status_is_a_code(error: object, code: int | None) -> None:
    assert chat.error_code(error) == code


@pytest.mark.parametrize(
    "value",
    [
        {"choices": [{"index": 0, "message": {"content": "x"}, "finish_reason": "stop"}]},
        {"choices": [{"message": {"content": ""}, "finish_reason": "length"}]},
        {"choices": [{"text": ""}]},
    ],
)
def test_a_body_with_messages_is_a_completion(value: object) -> None:
    assert chat.is_completion(value)


@pytest.mark.parametrize(
    "value",
    [{}, [], None, {"choices": []}, {"choices": {}}, {"choices": [None]}, {"choices": [{"delta": {}}]}],
)
def test_a_body_without_messages_is_no_completion(value: object) -> None:
    assert not chat.is_completion(value)


@pytest.mark.parametrize(
    "value",
    [
        {"object": "list", "data": [{"embedding": [0.1]}]},
        {"object": "list", "data": []},
        {"data": [{"embedding": "AAA="}]},
    ],
)
def test_a_list_of_vectors_is_an_embedding(value: object) -> None:
    assert chat.is_embedding(value)


@pytest.mark.parametrize(
    "value",
    [None, {}, {"object": "list"}, {"object": "list", "data": [1]}, {"data": []}, {"data": [{"id": 1}]}],
)
def test_other_lists_are_no_embedding(value: object) -> None:
    assert not chat.is_embedding(value)


@pytest.mark.parametrize(
    ("payload", "offered"),
    [
        ({"tools": [{}]}, True),
        ({"functions": [{}]}, True),
        ({"tools": [], "functions": None}, False),
        ({"tools": "x"}, False),
        ([], False),
    ],
)
def test_tools_are_a_non_empty_list(payload: object, *, offered: bool) -> None:
    assert chat.has_tools(payload) is offered


def test_a_failed_stream_ends_with_one_event() -> None:
    event = chat.error_event(
        message="upstream idle for over 1000 ms",
        type="server_error",
        code="timeout",
        request_id="r1",
        attempts=2,
        retryable=True,
    )
    (found,) = FrameDecoder().feed(event)
    assert json.loads(found.data or b"") == {
        "error": {
            "message": "upstream idle for over 1000 ms",
            "type": "server_error",
            "code": "timeout",
            "param": None,
            "troy": {"request_id": "r1", "partial": True, "retryable": True, "attempts": 2},
        }
    }


@pytest.mark.parametrize(
    ("choices", "reason"),
    [
        ([{"finish_reason": "function_call_filter: MALFORMED_FUNCTION_CALL"}], "malformed_function_call"),
        ([{"finish_reason": "UNEXPECTED_TOOL_CALL", "message": {"content": ""}}], "unexpected_tool_call"),
        ([{"finish_reason": "TOO_MANY_TOOL_CALLS", "delta": {}}], "too_many_tool_calls"),
        ([{"finish_reason": "MALFORMED_FUNCTION_CALL", "delta": {"content": "Hi"}}], None),
        ([{"finish_reason": "stop", "delta": {}}], None),
        ([{"finish_reason": None}], None),
        ([], None),
    ],
)
def test_a_candidate_may_end_because_its_call_came_to_nothing(choices: list[object], reason: str | None) -> None:
    assert chat.failed_call({"choices": choices}) == reason
