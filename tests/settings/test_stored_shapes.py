"""Providers and connections as they may be written through the API."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troyproxy.catalog.providers import X_API_KEY
from troyproxy.settings.report import Report
from troyproxy.settings.stored_shapes import LONGEST_KEY, LONGEST_VALUE, read_connection, read_provider

SECRET = "sk-upstream-0123456789"
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
FIELDS = [
    "base_url",
    "aliases",
    "auth",
    "headers",
    "query",
    "ca_file",
    "proxy",
    "timeouts",
    "accepts",
    "models",
    "leak",
]
OF_CONNECTIONS = [
    "name",
    "api_key",
    "models",
    "priority",
    "quota",
    "token_expires_at",
    "active",
    "max_inflight",
    "tier",
]


def problems_of_provider(**raw: object) -> list[tuple[str, str]]:
    report = Report()
    read_provider(raw, report)
    return report.problems


def problems_of_connection(**raw: object) -> list[tuple[str, str]]:
    report = Report()
    read_connection({"name": "a", **raw}, "", report)
    return report.problems


def test_a_provider_is_read_as_the_file_has_it() -> None:
    report = Report()
    entry = read_provider(
        {"base_url": "http://h/v1/", "auth": "x-api-key", "headers": {"X-Team": "s"}, "models": ["m"], "app": None},
        report,
    )
    assert report.problems == []
    assert entry is not None
    assert (entry.base_url, entry.auth, dict(entry.headers), list(entry.models)) == (
        "http://h/v1",
        X_API_KEY,
        {"x-team": "s"},
        ["m"],
    )


@pytest.mark.parametrize("field", ["app", "accounts"])
def test_what_is_for_the_file_only_is_refused(field: str) -> None:
    assert [place for place, _ in problems_of_provider(base_url="http://h", **{field: "x:y"})] == [field]


@pytest.mark.parametrize(
    "name",
    [
        "Authorization",
        "proxy-authorization",
        "x-api-key",
        "api-key",
        "apikey",
        "x-goog-api-key",
        "Cookie",
        "x-auth",
        "x-auth-token",
        "x-amz-security-token",
        "x-secret",
        "key",
        "x-key",
        "client_secret",
        "x-password",
        "sig",
    ],
)
def test_a_credential_stands_in_no_fixed_header_and_no_parameter(name: str) -> None:
    assert "carries a credential; give it as api_key" in problems_of_provider(headers={name: "v"})[0][1]
    assert "carries a credential; give it as api_key" in problems_of_provider(query={name: "v"})[0][1]


@pytest.mark.parametrize("name", ["x-team", "x-author", "monkey", "x-keyboard", "openai-organization", "x-design"])
def test_other_names_are_no_credentials(name: str) -> None:
    assert problems_of_provider(headers={name: "v"}) == []


@pytest.mark.parametrize("value", ["Bearer abc", "basic dXNlcg==", "Token x", SECRET])
def test_a_value_that_looks_like_a_credential_is_refused_and_not_shown(value: str) -> None:
    [(place, message)] = problems_of_provider(headers={"x-team": value})
    assert place == "headers.x-team"
    assert value not in message


def test_a_reference_is_for_the_file_only() -> None:
    assert "for the config file only" in problems_of_provider(headers={"x-team": "env:TEAM"})[0][1]
    assert "for the config file only" in problems_of_connection(api_key="env:KEY")[0][1]


def test_a_fixed_value_has_an_end() -> None:
    assert problems_of_provider(query={"v": "x" * LONGEST_VALUE}) == []
    assert problems_of_provider(query={"v": "x" * (LONGEST_VALUE + 1)}) != []


def test_a_proxy_carries_no_credential() -> None:
    assert problems_of_provider(proxy="http://proxy.example:3128") == []
    [(place, message)] = problems_of_provider(proxy="http://user:hunter2@proxy.example")
    assert (place, "hunter2" in message) == ("proxy", False)


@pytest.mark.parametrize(
    "key", ["", " sk", "sk ", "sk\n", "sk\x00x", "schlüssel", "\ud800", "x" * (LONGEST_KEY + 1), 7, ["sk"], {"a": "sk"}]
)
def test_a_key_is_bounded_printable_ascii_and_never_shown(key: object) -> None:
    [(place, message)] = problems_of_connection(api_key=key)
    assert place == "api_key"
    assert "this value is not allowed" in message


def test_a_long_token_is_a_key() -> None:
    report = Report()
    entry = read_connection({"name": "a", "api_key": "x" * LONGEST_KEY}, "", report)
    assert report.problems == []
    assert entry is not None
    assert entry.api_key is not None
    assert entry.api_key.literal is not None


@pytest.mark.parametrize(
    "quota", [{"requests": 1, "per": "day"}, {"tokens": 5, "per": "minute"}, {"usd": 0.5, "per": "month"}]
)
def test_a_quota_counts_requests_tokens_or_money(quota: dict[str, object]) -> None:
    assert problems_of_connection(quota=quota) == []


@pytest.mark.parametrize(
    "quota",
    [
        {},
        {"per": "day"},
        {"usd": 1},
        {"usd": 0, "per": "day"},
        {"requests": 1.5, "per": "day"},
        {"usd": 1, "per": "year"},
    ],
)
def test_any_other_quota_is_refused(quota: dict[str, object]) -> None:
    assert problems_of_connection(quota=quota) != []


@given(st.sampled_from(FIELDS), ANY_JSON)
def test_a_provider_may_be_anything_and_is_read_or_refused(field: str, value: object) -> None:
    report = Report()
    entry = read_provider({field: value}, report)
    assert (entry is None) == bool(report.problems)


@given(st.sampled_from(OF_CONNECTIONS), ANY_JSON)
def test_a_connection_may_be_anything_and_is_read_or_refused(field: str, value: object) -> None:
    report = Report()
    entry = read_connection({"name": "a", field: value}, "", report)
    assert (entry is None) == bool(report.problems)
