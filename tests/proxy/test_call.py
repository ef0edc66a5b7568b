from __future__ import annotations

import pytest

from tests.asgi import http_scope
from troyproxy.proxy.call import SCOPE_KEY, Call, call_of, local_path, put_call, raw_headers


def _call(**payload: object) -> Call:
    return Call("r", 0.0, 0.0, "/v1/chat/completions", payload=payload)


@pytest.mark.parametrize(("value", "streams"), [(True, True), (1, False), ("true", False), (None, False)])
def test_only_true_is_a_stream(value: object, streams: bool) -> None:
    assert _call(stream=value).stream is streams


def test_embeddings_never_stream() -> None:
    assert not Call("r", 0.0, 0.0, "/v1/embeddings", payload={"stream": True}).stream


@pytest.mark.parametrize(
    ("options", "asked"), [({"include_usage": True}, True), ({"include_usage": 1}, False), (None, False), ([], False)]
)
def test_only_true_asks_for_usage(options: object, asked: bool) -> None:
    assert _call(stream_options=options).asked_usage is asked


def test_a_header_is_its_first_value_stripped() -> None:
    call = Call("r", 0.0, 0.0, "/v1/chat/completions", headers=((b"x-a", b" 1 "), (b"x-a", b"2")))
    assert (call.header(b"x-a"), call.header(b"x-b")) == ("1", None)


def test_an_edit_changes_body_and_payload_alike() -> None:
    call = Call("r", 0.0, 0.0, "/r", body=b'{"a": 1, "b":2}', payload={"a": 1, "b": 2})
    call.edit({"a": 3}, frozenset({"b"}))
    assert (call.body, call.payload) == (b'{"a": 3}', {"a": 3})


def test_the_call_travels_in_a_copy_of_the_scope() -> None:
    scope, call = http_scope(), _call()
    assert (call_of(put_call(scope, call)), call_of(scope)) == (call, None)


def test_something_else_under_the_key_is_no_call() -> None:
    assert call_of({**http_scope(), SCOPE_KEY: "x"}) is None


def test_header_names_are_lower_case() -> None:
    assert raw_headers({"headers": [(b"X-A", b"V")]}) == ((b"x-a", b"V"),)


@pytest.mark.parametrize(
    ("root", "path", "local"),
    [
        ("", "/v1/x", "/v1/x"),
        ("/llm", "/llm/v1/x", "/v1/x"),
        ("/llm/", "/llm/v1/x", "/v1/x"),
        ("/llm", "/llmv1/x", "/llmv1/x"),
        ("/llm", "/v1/x", "/v1/x"),
        ("/llm", "/llm", ""),
    ],
)
def test_the_mount_point_is_cut_off_at_a_slash(root: str, path: str, local: str) -> None:
    assert local_path({"path": path, "root_path": root}) == local
