"""The head of a request to an upstream."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troyproxy.catalog.providers import NO_AUTH, X_API_KEY, Account, Auth, Provider
from troyproxy.catalog.secret import Secret
from troyproxy.catalog.snapshot import Snapshot
from troyproxy.wire.headers import first
from troyproxy.wire.heads import Heads, build_headers, credential

ALPHA = Provider(id="alpha", base_url="http://alpha/v1")
KEY = Secret("sk-up-A")
HOSTILE = (
    *((b"authorization", b"Bearer gw-key"), (b"x-api-key", b"gw-key"), (b"api-key", b"gw-key")),
    *((b"x-goog-api-key", b"gw-key"), (b"proxy-authorization", b"gw-key"), (b"cookie", b"session=gw-key")),
    *((b"connection", b"x-secret"), (b"x-secret", b"1"), (b"te", b"trailers"), (b"upgrade", b"h2c")),
    *((b"expect", b"100-continue"), (b"host", b"evil.example"), (b"x-forwarded-for", b"10.0.0.1")),
    *((b"cf-ray", b"1"), (b"forwarded", b"for=1"), (b"via", b"x"), (b"origin", b"http://x"), (b"referer", b"http://x")),
    *((b"traceparent", b"00-1"), (b"content-length", b"7"), (b"accept-encoding", b"gzip"), (b"user-agent", b"curl")),
)


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
    client = ((b"openai-beta", b"a"), (b"openai-beta", b"b"), (b"anthropic-version", b"2023-06-01"))
    sent = build_headers(ALPHA, KEY, client, "r1")
    assert [(n, v) for n, v in sent if n in {b"openai-beta", b"anthropic-version"}] == [
        (b"openai-beta", b"a"),
        (b"openai-beta", b"b"),
        (b"anthropic-version", b"2023-06-01"),
    ]


def test_the_clients_content_type_and_accept_pass() -> None:
    client = ((b"content-type", b"multipart/form-data; boundary=x"), (b"accept", b"text/event-stream"))
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


@given(st.lists(st.tuples(st.binary(max_size=20), st.binary(max_size=40))))
def test_nothing_a_client_sends_breaks_a_line(client: list[tuple[bytes, bytes]]) -> None:
    named = [(b"x-title", value) for _, value in client]
    assert not [v for _, v in build_headers(ALPHA, KEY, (*client, *named), "r") if re.search(rb"[\r\n\0\x80-\xff]", v)]


def test_a_value_that_cannot_stand_on_the_wire_is_as_good_as_none() -> None:
    client = ((b"accept", b"a\0b"), (b"content-type", b"a\0b"), (b"x-title", b"a\0b"))
    assert build_headers(ALPHA, KEY, client, "r1") == build_headers(ALPHA, KEY, (), "r1")


def test_an_account_has_one_template_as_long_as_it_is_the_same() -> None:
    heads, now = Heads(), Snapshot()
    account = Account("alpha#A", "alpha", "A", KEY)
    made = heads.template(now, ALPHA, account)
    assert heads.template(now, ALPHA, account) is made
    others = [
        heads.template(now, ALPHA, Account("alpha#A", "alpha", "A", Secret("sk-up-B"))),
        heads.template(now, Provider(id="alpha"), account),
        heads.template(Snapshot(revision=2), ALPHA, account),
    ]
    assert made not in others


def test_a_template_makes_the_head_that_is_made_from_nothing() -> None:
    heads, account = Heads(), Account("alpha#A", "alpha", "A", KEY)
    client = ((b"accept", b"application/json"), (b"openai-beta", b"a"))
    made = heads.template(Snapshot(), ALPHA, account).head(client, "r1", content_type=b"application/json")
    assert made == build_headers(ALPHA, KEY, client, "r1")


def test_without_a_credential_the_rest_is_the_same() -> None:
    assert build_headers(ALPHA, None, (), "r1") == build_headers(ALPHA, KEY, (), "r1")[1:]
