"""What crosses the gateway, in both directions."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troyproxy.catalog.providers import NO_AUTH, X_API_KEY, Auth, Provider
from troyproxy.catalog.secret import Secret
from troyproxy.wire.headers import (
    MAX_ID_BYTES,
    UPSTREAM_REQUEST_ID,
    ascii_value,
    build_headers,
    credential,
    first,
    request_ids,
    safe_value,
    to_client,
)

ALPHA = Provider(id="alpha", base_url="http://alpha/v1")
KEY = Secret("sk-up-A")
HOSTILE = (
    *((b"Authorization", b"Bearer gw-key"), (b"x-api-key", b"gw-key"), (b"api-key", b"gw-key")),
    *((b"x-goog-api-key", b"gw-key"), (b"Proxy-Authorization", b"gw-key"), (b"cookie", b"session=gw-key")),
    *((b"connection", b"x-secret"), (b"x-secret", b"1"), (b"te", b"trailers"), (b"upgrade", b"h2c")),
    *((b"expect", b"100-continue"), (b"host", b"evil.example"), (b"x-forwarded-for", b"10.0.0.1")),
    *((b"cf-ray", b"1"), (b"forwarded", b"for=1"), (b"via", b"x"), (b"origin", b"http://x"), (b"referer", b"http://x")),
    *((b"traceparent", b"00-1"), (b"content-length", b"7"), (b"accept-encoding", b"gzip"), (b"user-agent", b"curl")),
)


def names(headers: tuple[tuple[bytes, bytes], ...]) -> list[bytes]:
    return [name for name, _ in headers]


def test_a_hostile_client_adds_nothing() -> None:
    assert build_headers(ALPHA, KEY, HOSTILE, "r1") == build_headers(ALPHA, KEY, (), "r1")


def test_the_default_set_is_exactly_this() -> None:
    sent = dict(build_headers(ALPHA, KEY, (), "r1"))
    assert sent.pop(b"user-agent").startswith(b"troyproxy/")
    assert sent == {
        b"authorization": b"Bearer sk-up-A",
        b"content-type": b"application/json",
        b"accept": b"*/*",
        b"accept-encoding": b"identity",
        b"x-request-id": b"r1",
    }


def test_vendor_headers_of_the_client_pass_with_repeats() -> None:
    client = ((b"OpenAI-Beta", b"a"), (b"openai-beta", b"b"), (b"anthropic-version", b"2023-06-01"))
    sent = build_headers(ALPHA, KEY, client, "r1")
    assert [(n, v) for n, v in sent if n in {b"openai-beta", b"anthropic-version"}] == [
        (b"openai-beta", b"a"),
        (b"openai-beta", b"b"),
        (b"anthropic-version", b"2023-06-01"),
    ]


def test_the_clients_content_type_and_accept_pass() -> None:
    client = ((b"Content-Type", b"multipart/form-data; boundary=x"), (b"accept", b"text/event-stream"))
    sent = build_headers(ALPHA, KEY, client, "r1")
    assert (first(sent, b"content-type"), first(sent, b"accept")) == (
        b"multipart/form-data; boundary=x",
        b"text/event-stream",
    )


def test_a_body_encoded_anew_names_its_own_type() -> None:
    sent = build_headers(ALPHA, KEY, ((b"content-type", b"text/plain"),), "r1", content_type=b"application/json")
    assert first(sent, b"content-type") == b"application/json"


def test_fixed_headers_beat_the_clients_and_ours() -> None:
    provider = Provider(
        id="p", headers=(("X-Title", "fixed"), ("user-agent", "mine"), ("Host", "x"), ("bad name", "x"))
    )
    sent = build_headers(provider, KEY, ((b"x-title", b"client"),), "r1")
    assert [(n, v) for n, v in sent if n in {b"x-title", b"user-agent", b"host", b"a b"}] == [
        (b"x-title", b"fixed"),
        (b"user-agent", b"mine"),
    ]


def test_a_credential_stands_exactly_once() -> None:
    provider = Provider(id="p", headers=(("authorization", "Basic x"),))
    sent = build_headers(provider, KEY, HOSTILE, "r1")
    assert [v for n, v in sent if n == b"authorization"] == [b"Bearer sk-up-A"]


def test_trace_context_comes_from_us_only() -> None:
    sent = build_headers(ALPHA, KEY, HOSTILE, "r1", extra=((b"traceparent", b"00-ours"),))
    assert first(sent, b"traceparent") == b"00-ours"


@pytest.mark.parametrize(
    ("provider", "key", "expected"),
    [
        (ALPHA, KEY, ((b"authorization", b"Bearer sk-up-A"),)),
        (Provider(id="p", auth=X_API_KEY), KEY, ((b"x-api-key", b"sk-up-A"),)),
        (Provider(id="p", auth=Auth("Api-Key", "")), Secret(" k\n"), ((b"api-key", b"k"),)),
        (Provider(id="kl", auth=NO_AUTH), KEY, ()),
        (ALPHA, None, ()),
        (ALPHA, Secret(""), ()),
        (ALPHA, Secret("a\r\nx-evil: 1"), ()),
        (ALPHA, Secret("schlüssel"), ()),
    ],
)
def test_a_credential_is_sent_whole_or_not_at_all(
    provider: Provider, key: Secret | None, expected: tuple[tuple[bytes, bytes], ...]
) -> None:
    assert credential(provider, key) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (b"plain", b"plain"),
        (b"a\tb", b"a\tb"),
        (b" padded \r\n", b"padded"),
        (b"a\r\nx-evil: 1", None),
        (b"a\0b", None),
        (b"caf\xc3\xa9 100%", b"caf%C3%A9 100%"),
    ],
)
def test_a_value_is_made_safe_or_dropped(value: bytes, expected: bytes | None) -> None:
    assert safe_value(value) == expected


@given(st.text())
def test_any_text_becomes_visible_ascii(text: str) -> None:
    assert re.fullmatch(rb"[\x20-\x7e]{0,1024}", ascii_value(text))


@given(st.lists(st.tuples(st.binary(max_size=20), st.binary(max_size=40))))
def test_nothing_a_client_sends_breaks_a_line(client: list[tuple[bytes, bytes]]) -> None:
    named = [(b"x-title", value) for _, value in client]
    assert not [v for _, v in build_headers(ALPHA, KEY, [*client, *named], "r") if re.search(rb"[\r\n\0\x80-\xff]", v)]


def test_a_client_gets_the_content_type_and_the_request_ids() -> None:
    upstream = (
        *((b"Content-Type", b"text/event-stream"), (b"X-Request-Id", b"req_1"), (b"request-id", b"req_2")),
        *((b"x-request-id", b"req_1"), (b"cf-ray", b"7"), (b"set-cookie", b"a=b"), (b"connection", b"close, x-tmp")),
        *((b"x-tmp", b"1"), (b"server", b"up"), (b"date", b"x"), (b"content-length", b"3")),
    )
    assert to_client(upstream) == (
        (b"content-type", b"text/event-stream"),
        (UPSTREAM_REQUEST_ID, b"req_1, req_2"),
    )


@pytest.mark.parametrize("listed", [b"x-title", b"close , X-Title", b"openai-beta,x-title"])
def test_what_a_hop_nominates_ends_there_either_way(listed: bytes) -> None:
    client = ((b"Connection", listed), (b"X-Title", b"an app"), (b"http-referer", b"https://a.example"))
    sent = dict(build_headers(ALPHA, KEY, client, "r1"))
    assert (sent.get(b"x-title"), sent[b"http-referer"]) == (None, b"https://a.example")
    upstream = ((b"connection", b"close"), (b"connection", b"X-Request-ID"), (b"x-request-id", b"r1"))
    assert to_client((*upstream, (b"request-id", b"r2"))) == ((UPSTREAM_REQUEST_ID, b"r2"),)


def test_an_upstream_without_either_gives_nothing() -> None:
    assert to_client(((b"server", b"x"),)) == ()


def test_ids_are_dropped_whole_at_the_bound() -> None:
    upstream = ((b"x-request-id", b"a"), (b"request-id", b"b" * MAX_ID_BYTES), (b"apim-request-id", b"c"))
    assert request_ids(upstream) == b"a, c"


def test_a_broken_id_is_dropped() -> None:
    assert request_ids(((b"x-request-id", b"a\0b"),)) == b""
