"""The two ways to read a body that is here."""

from __future__ import annotations

import pytest

from troyproxy.errors import InvalidJSON, InvalidRequest, NotFound, TroyError, UnsupportedMediaType
from troyproxy.proxy.call import Call
from troyproxy.proxy.reading import NATIVE, OPAQUE, Reading
from troyproxy.wire import json

FORM = b"multipart/form-data; boundary=x"
BODY = (
    b'--x\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n\x00\xff\r\n'
    b'--x\r\nContent-Disposition: form-data; name="model"\r\n\r\nalpha/m1\r\n--x--\r\n'
)


def call(
    body: bytes, kind: bytes | None = b"application/json", route: str = "/v1/rerank", path: str = "/rerank"
) -> Call:
    headers = () if kind is None else ((b"content-type", kind),)
    return Call("r", 0.0, 0.0, route, path, headers, body=body)


def taken(made: Call) -> Call:
    OPAQUE.expect(made)
    OPAQUE.take(made)
    return made


def refused(made: Call) -> TroyError:
    with pytest.raises(TroyError) as caught:
        taken(made)
    return caught.value


def test_a_native_body_is_decoded() -> None:
    made = call(b'{"model":"m","stream":true}')
    NATIVE.expect(made)
    NATIVE.take(made)
    assert made.payload == {"model": "m", "stream": True}


def test_a_native_body_is_json() -> None:
    with pytest.raises(UnsupportedMediaType):
        NATIVE.expect(call(BODY, FORM))


@pytest.mark.parametrize("name", ["Model", "MODEL", "Stream", "STREAM", "\u017ftream"])
@pytest.mark.parametrize("reading", [NATIVE, OPAQUE])
def test_a_second_spelling_of_what_is_decided_by_is_refused(name: str, reading: Reading) -> None:
    made = call(json.encode({"model": "m", name: "other"}))
    with pytest.raises(InvalidRequest) as caught:
        reading.take(made)
    assert caught.value.param == name.casefold()


@pytest.mark.parametrize("kind", [b"application/json; charset=utf-8", b"application/vnd.x+json", None])
def test_of_json_only_the_model_is_taken(kind: bytes | None) -> None:
    made = taken(call(b'{"model":"m","stream":true,"tools":[{}],"reasoning_effort":5}', kind))
    assert (made.payload, made.form, made.stream) == ({"model": "m"}, None, False)


def test_of_a_form_only_the_model_is_taken() -> None:
    made = taken(call(BODY, FORM))
    assert made.form is not None
    assert (made.payload, made.body) == ({"model": "alpha/m1"}, BODY)


def test_a_model_of_another_kind_is_for_the_resolver_to_refuse() -> None:
    assert taken(call(b'{"model":5}')).payload == {"model": 5}


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"{}", b"application/json"),
        (b'{"model":null}', b"application/json"),
        (BODY.replace(b'"model"', b'"other"'), FORM),
        (BODY.replace(b"alpha/m1", b" "), FORM),
        (BODY.replace(b'name="model"', b'name="model"; filename="m"'), FORM),
    ],
)
def test_a_missing_model_is_named_with_what_is_allowed(body: bytes, kind: bytes) -> None:
    error = refused(call(body, kind))
    assert (type(error), error.param, "a combo" in str(error)) == (InvalidRequest, "model", True)


def test_moderations_may_do_without_a_model() -> None:
    made = taken(call(b'{"input":"x"}', route="/v1/moderations", path="/moderations"))
    assert made.payload == {"model": "omni-moderation-latest"}


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (BODY[:-8], FORM),
        (BODY, b"multipart/form-data"),
        (BODY, b"multipart/form-data; boundary=y"),
        (b"{}", FORM),
        (b"", FORM),
    ],
)
def test_a_broken_form_is_refused(body: bytes, kind: bytes) -> None:
    error = refused(call(body, kind))
    assert (error.http_status, error.http_code, "multipart" in str(error)) == (400, "invalid_request", True)


@pytest.mark.parametrize("body", [b"", BODY, b"{"])
def test_what_calls_itself_json_and_is_none_is_refused(body: bytes) -> None:
    assert type(refused(call(body))) is InvalidJSON


@pytest.mark.parametrize("kind", [b"text/plain", b"multipart/mixed; boundary=x", b"application/octet-stream"])
def test_another_content_type_is_refused_with_what_is_read(kind: bytes) -> None:
    error = refused(call(BODY, kind))
    assert type(error) is UnsupportedMediaType
    assert "application/json or multipart/form-data" in str(error)


@pytest.mark.parametrize("rest", ["speech", "voices/add", "a.b-c_d~e", "..."])
def test_a_plain_path_goes_on(rest: str) -> None:
    made = call(b'{"model":"m"}', route="/v1/audio/{path}", path=f"/audio/{rest}")
    assert taken(made).payload == {"model": "m"}


@pytest.mark.parametrize(
    "rest",
    [
        "",
        "..",
        ".",
        "../models",
        "speech/",
        "a//b",
        "a/../b",
        "a?b=c",
        "a#b",
        "a%2e",
        "a\\b",
        "ä",
        "a b",
        "a:b",
        "x/" * 9,
    ],
)
def test_a_path_that_is_more_than_names_is_not_there(rest: str) -> None:
    error = refused(call(b'{"model":"m"}', route="/v1/audio/{path}", path=f"/audio/{rest}"))
    assert type(error) is NotFound
