"""What goes to an upstream before the body: the httpx adapter's target, our framing, nothing that breaks a line."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from troyproxy.catalog.providers import Provider
from troyproxy.ports import Headers, UpstreamFailed, UpstreamRequest
from troyproxy.resilience.faults import Fault
from troyproxy.upstream.http import outgoing
from troyproxy.upstream.pooled.address import Origin, address_of
from troyproxy.upstream.pooled.heads import MAX_KEPT, Heads

ALPHA = Provider(id="alpha", base_url="http://alpha/v1")
REQUEST = UpstreamRequest(ALPHA, "POST", "/chat/completions", ((b"x-a", b"1"),), b"{}")
PATHS = st.text(st.sampled_from("abz/09._~%-:@+=;,$&() é?#!'*\\\"<>[]{}|^`"), max_size=12)
PAIRS = st.lists(st.tuples(st.sampled_from("abc"), st.text(st.sampled_from("x1 +&=%é/~*"), max_size=4)), max_size=3)


def lines(request: UpstreamRequest) -> list[bytes]:
    head = Heads(request.provider).head(request)
    assert head.endswith(b"\r\n\r\n")
    return head[:-4].split(b"\r\n")


def attempted(request: UpstreamRequest) -> list[bytes] | Fault:
    """The lines, or why there are none."""
    try:
        return lines(request)
    except UpstreamFailed as failed:
        return failed.fault


def refusal(request: UpstreamRequest) -> tuple[Fault, bool]:
    with pytest.raises(UpstreamFailed) as caught:
        Heads(request.provider).head(request)
    return caught.value.fault, caught.value.body_sent


def test_a_head_is_exactly_this() -> None:
    first, host, *rest, agent = lines(REQUEST)
    assert (first, host, rest) == (
        b"POST /v1/chat/completions HTTP/1.1",
        b"host: alpha",
        [b"x-a: 1", b"content-length: 2"],
    )
    assert agent.startswith(b"user-agent: troyproxy/")


@pytest.mark.parametrize(
    ("method", "body", "length"),
    [("GET", b"", []), ("HEAD", b"", []), ("GET", b"x", [b"content-length: 1"]), ("POST", b"", [b"content-length: 0"])],
)
def test_a_length_is_told_where_there_may_be_a_body(method: str, body: bytes, length: list[bytes]) -> None:
    told = [
        line for line in lines(structs.replace(REQUEST, method=method, body=body)) if line.startswith(b"content-length")
    ]
    assert told == length


def test_framing_is_never_the_callers() -> None:
    theirs: Headers = (
        *((b"host", b"evil"), (b"Content-Length", b"9"), (b"transfer-encoding", b"chunked")),
        *((b"connection", b"close"), (b"expect", b"100-continue")),
    )
    assert lines(structs.replace(REQUEST, headers=theirs)) == lines(structs.replace(REQUEST, headers=()))


def test_repeats_stay_apart_and_in_order() -> None:
    told = lines(structs.replace(REQUEST, headers=((b"x", b"1"), (b"y", b"2"), (b"x", b"3"))))
    assert told[2:5] == [b"x: 1", b"y: 2", b"x: 3"]


def test_the_callers_user_agent_stands_alone() -> None:
    told = lines(structs.replace(REQUEST, headers=((b"user-agent", b"mine"),)))
    assert [line for line in told if line.startswith(b"user-agent")] == [b"user-agent: mine"]


@pytest.mark.parametrize(
    ("given", "expected"),
    [((), [b"authorization: Basic dTpwQA=="]), (((b"authorization", b"mine"),), [b"authorization: mine"])],
)
def test_user_and_password_of_a_base_url_are_basic_authentication(given: Headers, expected: list[bytes]) -> None:
    provider = replace(ALPHA, base_url="http://u:p%40@alpha/v1")
    told = lines(structs.replace(REQUEST, provider=provider, headers=given))
    assert (told[1], [line for line in told if line.startswith(b"auth")]) == (b"host: alpha", expected)


@pytest.mark.parametrize(
    "header",
    [
        *((b"x", b"1\r\nx-evil: 1"), (b"x", b"1\nx-evil: 1"), (b"x", b"1\r"), (b"x", b"\0"), (b"x", b"1\r\n\r\nGET /")),
        *((b"x\r\ny", b"1"), (b"x: y\r\ncontent-length", b"1"), (b"x y", b"1"), (b"", b"1"), (b"x:", b"1")),
        *((b"transfer-encoding: chunked\r\nx", b"1"), (b"x\0", b"1"), (b"transfer-encoding ", b"chunked")),
    ],
)
def test_what_would_break_a_line_is_never_sent(header: tuple[bytes, bytes]) -> None:
    assert refusal(structs.replace(REQUEST, headers=(header,))) == (Fault.PROTOCOL, False)


@given(st.lists(st.tuples(st.binary(max_size=6), st.binary(max_size=12)), max_size=4))
def test_a_head_has_one_line_for_each_header_or_is_refused(headers: list[tuple[bytes, bytes]]) -> None:
    told = attempted(structs.replace(REQUEST, headers=tuple(headers)))
    joined = b"\r\n".join(told) if isinstance(told, list) else b""
    assert told is Fault.PROTOCOL or (
        joined.count(b"\r\n") == joined.count(b"\r") == joined.count(b"\n") == len(told) - 1 <= len(headers) + 4
    )


@pytest.mark.parametrize("method", ["get", "GET /x HTTP/1.1\r\nx:", ""])
def test_a_method_that_is_none_is_refused(method: str) -> None:
    assert refusal(structs.replace(REQUEST, method=method)) == (Fault.PROTOCOL, False)


@pytest.mark.parametrize("path", ["/a\r\nx: y", "/a b HTTP/1.1\r\n", "/a\0"])
def test_a_path_breaks_no_line(path: str) -> None:
    told = attempted(structs.replace(REQUEST, path=path))
    assert isinstance(told, list) or told is Fault.CONNECT
    assert not isinstance(told, list) or (told[0].count(b" "), told[1]) == (2, b"host: alpha")


def test_a_path_leads_to_no_other_host() -> None:
    provider = replace(ALPHA, base_url="http://alpha")
    assert refusal(structs.replace(REQUEST, provider=provider, path="@evil/x"))[0] is Fault.CONNECT


def test_what_is_remembered_is_bounded() -> None:
    heads = Heads(ALPHA)
    for number in range(2 * MAX_KEPT):
        heads.head(structs.replace(REQUEST, path=f"/{number}", headers=((b"x-%d" % number, b"1"),)))
    assert (len(heads._firsts), len(heads._names)) == (MAX_KEPT, MAX_KEPT)


BASES = [
    *(
        "http://alpha",
        "http://alpha/",
        "http://alpha/v1",
        "https://alpha:443/v1/",
        "https://alpha:8443",
        "http://a.b-c/x",
    ),
    *(
        "http://127.0.0.1:9/v1",
        "http://1.2.3/",
        "http://127.0.0.01/",
        "http://256.0.0.1/",
        "http://[::1]:9/v1",
        "http://ALPHA/V1",
        "http://alpha/v1?q=1",
        "http://u:p@alpha/v1",
    ),
    *("http://alpha/../v1", "http://alpha/a%20b", "http://alpha/a b/é", "http://xn--bcher-kva.example/", "http://a_b/"),
    *("http://bücher.example/v1", "http://straße.example", "http://alpha:080/", "http://alpha//v1", "http://alpha.:80"),
]


@settings(max_examples=300)
@given(base=st.sampled_from(BASES), path=PATHS, query=PAIRS)
def test_both_adapters_ask_for_the_same(base: str, path: str, query: list[tuple[str, str]]) -> None:
    provider = Provider(id="p", base_url=base, query=tuple(query))
    request = UpstreamRequest(provider, "GET", "/" + path, ())
    ours = attempted(request)
    with suppress(UpstreamFailed):
        theirs = outgoing(request)
        expected = [b"GET %b HTTP/1.1" % theirs.url.raw_path, b"host: " + theirs.headers.raw[0][1]]
        assert (ours[:2] if isinstance(ours, list) else ours) in (expected, Fault.CONNECT)  # it may be the stricter one
        return
    assert ours is Fault.CONNECT


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("https://a.example/v1", Origin("https", "a.example", 443)),
        ("http://A.example:8080", Origin("http", "a.example", 8080)),
        ("http://[::1]:9", Origin("http", "::1", 9)),
        ("https://bücher.example", Origin("https", "xn--bcher-kva.example", 443)),
    ],
)
def test_an_origin_is_scheme_host_and_port(url: str, origin: Origin) -> None:
    assert address_of(url, ()).origin == origin


@pytest.mark.parametrize(
    "url", ["", "alpha", "ftp://alpha", "http://", "http://a:99999", "http://a:0x1", "http://999.1.1.1/"]
)
def test_what_is_no_address_is_a_connect_fault(url: str) -> None:
    with pytest.raises(UpstreamFailed) as caught:
        address_of(url, ())
    assert (caught.value.fault, caught.value.body_sent) == (Fault.CONNECT, False)


def test_a_credential_in_a_url_is_not_shown() -> None:
    assert "s3cret" not in repr(address_of("http://u:s3cret@alpha/v1", ()))
