from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.proxy.rig import provider, snapshot
from troyproxy.catalog.providers import Account, Provider
from troyproxy.catalog.secret import Secret
from troyproxy.proxy.masking import discreet, masked, secrets_of

SECRET = "sk-up-A/12345+67890abcd"


def _provider(secret: str = SECRET, **given: object) -> Provider:
    account = Account("alpha#A", "alpha", "A", Secret(secret))
    return Provider("alpha", accounts=(account,), **given)  # type: ignore[arg-type]  # fields by name


def _masked(text: str, of: Provider | None = None) -> str:
    of = of or _provider()
    return masked(text.encode(), snapshot(of), of).decode()


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        (f"bad key {SECRET} for you", "bad key *** for you"),
        ("bad key sk-up-A/****abcd", "bad key ***"),
        ("bad key sk-********abcd", "bad key ***"),
        ("bad key sk-••••abcd", "bad key ***"),
        ("bad key sk-\\u2022\\u2022\\u2022abcd", "bad key ***"),
        ("ends in **abcd", "ends in ***"),
        ('"sk-up-A\\/12345\\u002b67890abcd"', '"***"'),
        ("sk-up-A%2F12345%2B67890abcd", "***"),
        ("a task-force... said abcd of sk-other", "a task-force... said abcd of sk-other"),
    ],
)
def test_a_secret_is_masked_however_it_is_shown(text: str, clean: str) -> None:
    assert _masked(text) == clean


@given(st.text(st.characters(codec="utf-8", exclude_characters="*"), min_size=6, max_size=30))
def test_any_secret_is_masked_in_json_of_either_spelling(secret: str) -> None:
    for ascii_only in (True, False):
        text = json.dumps({"message": f"<{secret}>"}, ensure_ascii=ascii_only)
        # json writes quotes, backslashes and controls in its own way; what is left must still be JSON.
        if not any(char in '"\\' or ord(char) < 32 for char in secret):
            assert json.loads(_masked(text, _provider(secret)))["message"] == "<***>"


def spelt(secret: str, how: str) -> str:
    """Return *secret* with every character escaped."""
    return "".join(how % ord(char) for char in secret)


@pytest.mark.parametrize("how", ["\\u%04x", "\\u%04X", "%%%02x", "%%%02X"])
@pytest.mark.parametrize("around", ["{}", '{{"m": "key {} is wrong"}}', "?key={}&v=1", "a%20b {}%20c \\u00e4"])
def test_a_secret_that_is_escaped_letter_by_letter_is_masked(how: str, around: str) -> None:
    text = around.format(spelt(SECRET, how))
    assert _masked(text) == around.format("***")


def test_a_secret_that_is_escaped_here_and_there_is_masked() -> None:
    text = "".join(f"%{ord(char):02x}" if at % 3 == 0 else char for at, char in enumerate(SECRET))
    assert _masked(f"<{text}>") == "<***>"


def test_the_head_of_a_secret_that_is_escaped_is_masked_with_its_stars() -> None:
    assert _masked(spelt(SECRET[:8], "%%%02x") + "****") == "***"


def test_escapes_that_hide_no_secret_stay_as_they_are() -> None:
    text = r"\u0041\u0042 %41%42 \u4e2d%20 100% \\u00 " + spelt("sk-other-words", "%%%02x")
    assert _masked(text) == text


def test_other_providers_secrets_are_masked_too() -> None:
    alpha, beta = provider("alpha"), provider("beta")
    text = masked(b"key sk-up-beta-A-1234567890abcd", snapshot(alpha, beta), alpha)
    assert text == b"key ***"


def test_credentials_in_fixed_headers_query_and_address_are_secrets() -> None:
    of = _provider(
        base_url="https://me:pass%20word@host/v1",
        headers=(("x-auth-token", "header-secret"), ("anthropic-version", "2023-06-01")),
        query=(("api_key", "query-secret"), ("api-version", "2024-02-15")),
    )
    assert set(secrets_of(snapshot(of))) == {SECRET, "header-secret", "query-secret", "pass word"}


def test_a_bearer_in_a_fixed_header_is_masked_without_its_scheme() -> None:
    assert "header-secret" in secrets_of(snapshot(_provider(headers=(("authorization", "Bearer header-secret"),))))


def test_what_is_too_short_to_be_a_secret_is_left_alone() -> None:
    assert _masked("five", _provider("five")) == "five"


def test_an_account_without_a_key_has_no_secret() -> None:
    assert secrets_of(snapshot(Provider("alpha", accounts=(Account("alpha#A", "alpha", "A"),)))) == []


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("POST http://10.0.0.5:9/v1?key=S failed", "POST https://*** failed"),
        ('"http:\\/\\/10.0.0.5:9\\/v1?key=S"', '"https://***"'),
        ("http://u:p@10.0.0.5:9/x", "https://***"),
        ("dial tcp 10.0.0.5:9: refused", "dial tcp ***: refused"),
        ("see https://docs.example/errors", "see https://docs.example/errors"),
        ("version 110.0.0.5:91", "version 110.0.0.5:91"),
    ],
)
def test_the_upstreams_address_is_masked(text: str, clean: str) -> None:
    assert _masked(text, _provider(base_url="http://10.0.0.5:9/v1")) == clean


def test_a_public_host_alone_is_no_secret_but_its_url_is() -> None:
    of = _provider(base_url="https://api.vendor.example/v1")
    assert _masked("api.vendor.example: https://api.vendor.example/v1/x?k=1", of) == "api.vendor.example: https://***"


def test_a_v6_address_is_masked() -> None:
    assert _masked("to http://[::1]:80/v1", _provider(base_url="http://[::1]:80/v1")) == "to https://***"


@pytest.mark.parametrize("base_url", ["", "http://[bad", "http://host:port/", "nonsense"])
def test_an_address_that_is_none_masks_nothing(base_url: str) -> None:
    assert _masked("host nonsense", _provider(base_url=base_url)) == "host nonsense"


@pytest.mark.parametrize(
    "filler", ["x", "*", ".", "sk-", "sk-up-A/", "http://", "https:\\/\\/10.0.0.5", "abcd", "**ab"]
)
def test_a_megabyte_of_near_misses_takes_linear_time(filler: str) -> None:
    of = _provider(base_url="http://10.0.0.5:9/v1")
    text = filler * (1_000_000 // len(filler))
    assert len(_masked(text, of)) <= 2 * len(text)


def test_a_header_that_repeats_the_credential_is_not_told() -> None:
    headers = ((b"x-request-id", b"r-" + SECRET.encode()), (b"request-id", b"r1"))
    assert discreet(headers, Secret(SECRET)) == ((b"request-id", b"r1"),)


@pytest.mark.parametrize("shown", [b"sk-up-A/...abcd", b"sk-****abcd", b"r-**abcd", b"sk-up-A%2F12345%2B67890abcd"])
def test_a_header_that_shows_a_part_of_the_credential_is_not_told(shown: bytes) -> None:
    headers = ((b"x-request-id", b"r-" + shown), (b"request-id", b"sk-other-abcd"))
    assert discreet(headers, Secret(SECRET)) == ((b"request-id", b"sk-other-abcd"),)


@pytest.mark.parametrize("secret", [None, Secret(""), Secret("another-key")])
def test_any_other_header_is(secret: Secret | None) -> None:
    headers = ((b"x-request-id", b"r-" + SECRET.encode()),)
    assert discreet(headers, secret) == headers
