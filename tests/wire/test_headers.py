"""What crosses the gateway, in both directions."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troyproxy.wire.headers import (
    MAX_ID_BYTES,
    UPSTREAM_REQUEST_ID,
    all_harmless,
    ascii_value,
    crossing,
    media_type,
    request_ids,
    safe_value,
    to_client,
)


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


def test_a_client_gets_the_content_type_and_the_request_ids() -> None:
    upstream = (
        *((b"content-type", b"text/event-stream"), (b"x-request-id", b"req_1"), (b"request-id", b"req_2")),
        *((b"x-request-id", b"req_1"), (b"cf-ray", b"7"), (b"set-cookie", b"a=b"), (b"connection", b"close, x-tmp")),
        *((b"x-tmp", b"1"), (b"server", b"up"), (b"date", b"x"), (b"content-length", b"3")),
    )
    assert to_client(upstream) == (
        (b"content-type", b"text/event-stream"),
        (UPSTREAM_REQUEST_ID, b"req_1, req_2"),
    )


@pytest.mark.parametrize("listed", [b"x-title", b"close , X-Title", b"openai-beta,x-title"])
def test_what_a_hop_nominates_ends_there_either_way(listed: bytes) -> None:
    client = ((b"connection", listed), (b"x-title", b"an app"), (b"http-referer", b"https://a.example"))
    sent = dict(crossing(client, typed=True))
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


def test_a_client_gets_across_what_it_sends_takes_and_says_to_vendors() -> None:
    client = ((b"host", b"x"), (b"accept", b"*/*"), (b"cookie", b"a"), (b"openai-beta", b"a"), (b"openai-beta", b"b"))
    assert crossing(client, typed=True) == ((b"accept", b"*/*"), (b"openai-beta", b"a"), (b"openai-beta", b"b"))


@pytest.mark.parametrize("value", [b"close", b"keep-alive"])
def test_a_connection_that_nominates_nothing_takes_nothing_away(value: bytes) -> None:
    assert crossing(((b"connection", value), (b"x-title", b"a")), typed=True) == ((b"x-title", b"a"),)


def test_what_nearly_everybody_sends_is_harmless_and_a_name_is_not() -> None:
    usual = ((b"accept", b"*/*"), (b"content-type", b"application/json"))
    assert [all_harmless(usual), all_harmless((*usual, (b"x-title", b"a")))] == [True, False]


def test_a_media_type_is_told_without_parameters() -> None:
    assert (media_type(((b"content-type", b"Text/HTML; charset=x"),)), media_type(())) == ("text/html", "")
