"""Error bodies of every shape are read, and none raises."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troyproxy.resilience.bodies import HEAD_BYTES, read_body

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["error", "code", "message", "detail", "details", "choices", "loc", "param", "violations"]),
            inner,
            max_size=5,
        )
    ),
    max_leaves=15,
)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"error": {"message": "Boom"}}', "boom"),
        (b'[{"error": {"message": "Boom"}}]', "boom"),
        (b'{"error": "Boom"}', "boom"),
        (b'{"errors": [{"message": "Boom"}]}', "boom"),
        (b'{"detail": "Boom"}', "boom"),
        (b'{"detail": [{"msg": "Boom"}]}', "boom"),
        (b'{"message": "Boom"}', "boom"),
        (b'{"response": {"error": {"message": "Boom"}}}', "boom"),
        (b'{"choices": [{"error": {"message": "Boom"}}]}', "boom"),
        (b'{"base_resp": {"status_msg": "Boom"}}', "boom"),
        (b'{"error": {"metadata": {"raw": "Boom"}}}', "boom"),
        (b'"Boom"', "boom"),
        (b"Boom", "boom"),
        (b"\xef\xbb\xbf" + b'{"message": "Boom"}', "boom"),
        (b'{"message": "Boom", "x": NaN}', "boom"),
        (b"<html>Boom</html>", ""),
        (b"  <!DOCTYPE HTML><p>Boom", ""),
        (b"", ""),
        (b"{}", ""),
        (b"null", "null"),
        (b'{"choices": [], "message": "not an error"}', ""),
        (b"[" * 5000 + b"]" * 5000, "[" * 5000 + "]" * 3192),
    ],
)
def test_the_message_is_found_in_every_shape(body: bytes, message: str) -> None:
    assert read_body(body).message == message


def test_html_is_known_as_such() -> None:
    assert read_body(b"<html>").is_html


@pytest.mark.parametrize(
    ("body", "param"),
    [
        (b'{"error": {"param": "reasoning_effort"}}', "reasoning_effort"),
        (b'{"error": {"param": " "}}', None),
        (b'{"error": {"param": null, "message": "reasoning_effort is bad"}}', None),
        (b'{"detail": [{"loc": ["body", "reasoning", "effort"], "msg": "no"}]}', "reasoning.effort"),
        (b'{"detail": [{"loc": ["body"], "msg": "no"}]}', None),
        (
            b'{"error": {"details": [{"fieldViolations": [{"field": "generation_config.seed"}]}]}}',
            "generation_config.seed",
        ),
        (b'{"error": {"details": [{"fieldViolations": [{"field": ""}]}]}}', None),
    ],
)
def test_a_parameter_needs_a_pointer(body: bytes, param: str | None) -> None:
    assert read_body(body).param == param


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b'{"error": {"code": 503}}', 503),
        (b'{"error": {"code": "429"}}', 429),
        (b'{"error": {"code": 1113}}', None),
        (b'{"error": {"status": "UNAVAILABLE", "code": 503}}', 503),
        (b'{"status": 404, "error": {"message": "x"}}', 404),
        (b'{"error": {"code": true}}', None),
    ],
)
def test_a_status_in_the_body_is_a_number_from_400_to_599(body: bytes, status: int | None) -> None:
    assert read_body(body).status == status


def test_codes_are_collected_from_every_level() -> None:
    body = b'{"error": {"code": 400, "type": "T", "innererror": {"code": "Inner"}, "details": [{"reason": "R"}]}}'
    assert read_body(body).codes == {"400", "t", "inner", "r"}


def test_quota_violations_are_among_the_objects() -> None:
    body = b'{"error": {"details": [{"violations": [{"quotaId": "PerDay"}]}]}}'
    assert {"quotaId": "PerDay"} in read_body(body).objects


@pytest.mark.parametrize(("choice", "finish"), [('{"finish_reason": "STOP"}', "stop"), ('{"finish_reason": 1}', "")])
def test_the_first_finish_reason_is_read(choice: str, finish: str) -> None:
    assert read_body(b'{"choices": [%s]}' % choice.encode()).finish == finish


def test_only_the_head_of_a_body_is_looked_at() -> None:
    assert len(read_body(b"x" * (HEAD_BYTES + 1)).text) == HEAD_BYTES


@given(st.binary(max_size=200))
def test_no_bytes_raise(body: bytes) -> None:
    assert isinstance(read_body(body).message, str)


@given(JSON)
def test_no_json_raises(value: object) -> None:

    assert read_body(json.dumps(value).encode()).message is not None
