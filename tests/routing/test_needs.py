from __future__ import annotations

import json
import math

import pytest
from hypothesis import given

from tests.routing.bodies import BODIES
from troyproxy.errors import InvalidRequest
from troyproxy.routing.needs import (
    PAYLOAD_TOKENS,
    Needs,
    as_tokens,
    needs_of,
    validate_chat,
    validate_common,
)

BLOB = "data:image/png;base64," + "A" * 2_600_000
IMAGE = {"type": "image_url", "image_url": {"url": BLOB}}


def said(*parts: object, role: str = "user") -> dict[str, object]:
    return {"messages": [{"role": role, "content": list(parts)}]}


def text(words: str) -> dict[str, object]:
    return {"type": "text", "text": words}


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        ({"tools": [{}]}, True),
        ({"functions": [{}]}, True),
        ({"tools": [{}], "tool_choice": "none"}, True),
        ({"tools": []}, False),
        ({"tools": None}, False),
        ({"tools": "edit"}, False),
        ({}, False),
    ],
)
def test_a_non_empty_array_of_tools_needs_tools(body: dict[str, object], *, wanted: bool) -> None:
    assert needs_of(body).tools is wanted


@pytest.mark.parametrize(
    "part", [IMAGE, {"type": "input_image", "image_url": BLOB}, {"type": "image", "source": {"data": BLOB}}]
)
def test_an_image_part_needs_vision_and_costs_a_flat_sum(part: dict[str, object]) -> None:
    found = needs_of(said(text("what?"), part))
    assert (found.vision, found.est_tokens) == (True, 2 + PAYLOAD_TOKENS)


def test_an_image_in_an_older_message_needs_vision() -> None:
    history = said(IMAGE)["messages"]
    assert isinstance(history, list)
    assert needs_of({"messages": [*history, {"role": "user", "content": "and now?"}]}).vision


def test_an_image_inside_a_tool_result_needs_vision() -> None:
    assert needs_of(said({"type": "tool_result", "content": [IMAGE]})).vision


@pytest.mark.parametrize(
    "message",
    [
        {"role": "user", "content": 'the word "image_url"'},
        {"role": "user", "content": [text('{"type": "image_url"}')]},
        {"role": "assistant", "content": None, "tool_calls": [{"function": {"arguments": {"type": "image"}}}]},
        {"role": "user", "content": [{"type": ["image_url"]}, "image", 5]},
    ],
)
def test_talking_about_images_does_not_need_vision(message: dict[str, object]) -> None:
    assert not needs_of({"messages": [message]}).vision


def test_a_payload_pasted_as_text_is_text() -> None:
    assert needs_of(said(text(BLOB))).est_tokens == math.ceil(len(BLOB) / 4)


def test_an_audio_part_needs_audio_and_is_not_counted_as_text() -> None:
    part = {"type": "input_audio", "input_audio": {"data": "A" * 3_000_000, "format": "wav"}}
    found = needs_of(said(part))
    assert (found.audio, found.vision, found.est_tokens) == (True, False, PAYLOAD_TOKENS)


def test_a_file_part_costs_a_flat_sum_and_its_caption_counts() -> None:
    part = {"type": "file", "file": {"file_data": BLOB}, "title": "t" * 400}
    assert needs_of(said(part)).est_tokens == PAYLOAD_TOKENS + 100


def test_a_document_of_text_is_text() -> None:
    part = {"type": "document", "source": {"type": "text", "data": "x" * 40_000}}
    assert needs_of(said(part)).est_tokens > 10_000


@pytest.mark.parametrize(
    ("form", "needed"), [({"type": "json_schema"}, True), ({"type": "json_object"}, False), ("json", False)]
)
def test_a_json_schema_needs_json(form: object, *, needed: bool) -> None:
    assert needs_of({"response_format": form}).json is needed


def test_the_estimate_is_a_quarter_of_the_text_bytes_rounded_up() -> None:
    messages = [{"role": "system", "content": "x" * 5}, {"role": "user", "content": "y" * 4, "name": "bo"}]
    assert needs_of({"messages": messages}).est_tokens == 3


def test_keys_strings_and_numbers_of_tool_schemas_count() -> None:
    assert (
        needs_of({"tools": [{"name": "abcd", "size": 1, "nothing": None}]}).est_tokens == (4 + 4 + 4 + 4 + 7) / 4 + 0.25
    )


def test_escaped_and_unescaped_text_estimate_alike() -> None:
    body = {"messages": [{"role": "user", "content": "中文🙂\n" * 500}], "tools": [{"d": "日本"}]}
    escaped, plain = json.dumps(body), json.dumps(body, ensure_ascii=False)
    assert needs_of(json.loads(escaped)) == needs_of(json.loads(plain))
    assert needs_of(body).est_tokens == math.ceil((11 * 500 + 7) / 4)


def test_a_lone_surrogate_is_counted() -> None:
    assert needs_of({"messages": [{"content": "\ud83d"}]}).est_tokens == 1


@pytest.mark.parametrize(
    ("body", "tokens"),
    [
        ({"prompt": "x" * 40}, 10),
        ({"prompt": ["x" * 20, "y" * 20]}, 10),
        ({"prompt": [1, 2, 3]}, 3),
        ({"input": [[1, 2], [3]]}, 3),
        ({"input": "x" * 8}, 2),
    ],
)
def test_prompts_and_embedding_inputs_count(body: dict[str, object], tokens: int) -> None:
    assert needs_of(body).est_tokens == tokens


@pytest.mark.parametrize(
    ("body", "tokens"),
    [
        ({"max_tokens": 5}, 5),
        ({"max_tokens": 5, "max_completion_tokens": 7}, 7),
        ({"max_tokens": 5, "max_completion_tokens": None}, 5),
        ({"max_tokens": 5.0}, 5),
        ({"max_tokens": 0}, None),
        ({"max_tokens": True}, None),
        ({"max_tokens": "5"}, None),
        ({}, None),
    ],
)
def test_the_longest_answer_is_the_newer_field_first(body: dict[str, object], tokens: int | None) -> None:
    assert needs_of(body).max_output == tokens


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, -1, 0.5, [], None])
def test_what_is_no_number_of_tokens_is_none(value: object) -> None:
    assert as_tokens(value) is None


def test_a_number_beyond_any_float_is_a_number() -> None:
    assert as_tokens(10**400) == 10**400


def test_json_deeper_than_the_stack_is_counted() -> None:
    content: object = "x" * 8
    for _ in range(50_000):
        content = [content]
    assert needs_of({"messages": [{"content": content}], "prompt": content}).est_tokens == 4


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({}, "messages"),
        ({"messages": None}, "messages"),
        ({"messages": []}, "messages"),
        ({"messages": {"role": "user"}}, "messages"),
        ({"messages": "hi"}, "messages"),
        ({"messages": [{"content": "hi"}, "hi"]}, "messages[1]"),
        ({"messages": [{"content": 5}]}, "messages[0].content"),
        ({"messages": [{"content": {"type": "text"}}]}, "messages[0].content"),
        ({"messages": [{}], "tools": {}}, "tools"),
        ({"messages": [{}], "tools": "x"}, "tools"),
        ({"messages": [{}], "functions": 1}, "functions"),
        ({"messages": [{}], "response_format": "json"}, "response_format"),
        ({"messages": [{}], "stream": "true"}, "stream"),
        ({"messages": [{}], "stream": 1}, "stream"),
        ({"messages": [{}], "stream_options": True}, "stream_options"),
        ({"messages": [{}], "max_tokens": "9"}, "max_tokens"),
        ({"messages": [{}], "max_tokens": True}, "max_tokens"),
        ({"messages": [{}], "max_completion_tokens": []}, "max_completion_tokens"),
    ],
)
def test_what_the_gateway_cannot_understand_is_refused_with_its_param(body: dict[str, object], param: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        validate_chat(body)
    assert caught.value.param == param


@pytest.mark.parametrize(
    "extra",
    [
        {"tools": None, "stream": None, "stream_options": None, "max_tokens": None, "response_format": None},
        {"tools": [], "stream": True, "stream_options": {}, "max_tokens": 1.5},
        {"max_tokens": -1, "temperature": math.nan, "tools": [5], "unknown": {}},
    ],
)
def test_what_upstreams_judge_differently_is_theirs_to_judge(extra: dict[str, object]) -> None:
    body = {"messages": [{"role": "x", "content": ["a", 5]}, {"content": None}, {}], **extra}
    validate_chat(body)
    assert needs_of(body).est_tokens >= 1


def test_routes_without_messages_share_the_common_checks() -> None:
    validate_common({"prompt": "hi", "stream": True})
    with pytest.raises(InvalidRequest):
        validate_common({"prompt": "hi", "stream": "yes"})


@given(BODIES)
def test_any_json_has_needs(body: dict[str, object]) -> None:
    found = needs_of(body)
    assert isinstance(found, Needs)
    assert found.est_tokens >= 0


@given(BODIES)
def test_any_json_is_accepted_or_refused_as_invalid(body: dict[str, object]) -> None:
    try:
        validate_chat(body)
    except InvalidRequest as refusal:
        wrong = refusal.param
    else:
        wrong = None
    assert (wrong is None) <= isinstance(body.get("messages"), list)


@given(BODIES)
def test_needs_survive_a_round_trip_through_any_spelling(body: dict[str, object]) -> None:
    assert needs_of(json.loads(json.dumps(body))) == needs_of(body)


def test_a_message_that_is_a_part_by_itself_is_read_as_one() -> None:
    found = needs_of({"messages": [{"type": "image_url", "image_url": {"url": "x"}}, {"type": "text", "text": "abcd"}]})
    assert (found.vision, found.est_tokens) == (True, PAYLOAD_TOKENS + 1)
