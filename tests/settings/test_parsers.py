"""The texts of settings and what they become."""

from __future__ import annotations

import dataclasses

import pytest

from troyproxy.catalog.secret import Secret
from troyproxy.settings.parsers import PARSERS, split_list
from troyproxy.settings.show import shown_value
from troyproxy.settings.values import Settings

FIELDS = {f.name: f.default for f in dataclasses.fields(Settings)}


def refuses(name: str, text: str) -> bool:
    """Tell whether the parser of a setting raises ValueError, with whatever text: `Rule.allowed` is what people see."""
    try:
        PARSERS[name].parse(text)
    except ValueError:
        return True
    return False


def test_there_is_a_parser_for_every_field_in_the_same_order() -> None:
    assert list(PARSERS) == list(FIELDS)


@pytest.mark.parametrize("name", [n for n, v in FIELDS.items() if v is not None])
def test_a_default_is_what_its_own_text_means(name: str) -> None:
    text = str(FIELDS[name]) if name == "database_url" else shown_value(name, FIELDS[name])
    assert PARSERS[name].parse(text) == FIELDS[name]


@pytest.mark.parametrize("name", PARSERS)
def test_every_setting_is_described_in_one_line(name: str) -> None:
    rule = PARSERS[name]
    assert rule.doc
    assert rule.allowed
    assert "\n" not in rule.doc + rule.allowed


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("port", "0", 0),
        ("stream_idle_ms", "1000", 1000),
        ("keepalive_s", "0", 0.0),
        ("keepalive_s", "2.5", 2.5),
        ("breaker_ratio", "1", 1.0),
        ("auth", "off", False),
        ("auth", "FALSE", False),
        ("trace", "1", True),
        ("trace", "yes", True),
        ("log", "WARN", "warning"),
        ("log", "debug, json", "debug,json"),
        ("leak", "off", "off"),
        ("leak", "auto", "auto"),
        ("leak", "Failover", "failover"),
        ("expose", "ID", "id"),
        ("default_provider", "", None),
        ("default_effort", "", None),
        ("default_effort", "xhigh", "xhigh"),
        ("metrics_port", "", None),
        ("metrics_port", "9100", 9100),
        ("admin_token", "tok", Secret("tok")),
        ("cors_origins", "", ()),
        ("cors_origins", "https://a.example/, http://b:8080", ("https://a.example", "http://b:8080")),
        ("cors_origins", "*", ("*",)),
        ("trusted_proxies", "10.0.0.0/8,::1", ("10.0.0.0/8", "::1")),
        ("trusted_proxies", "*", ("*",)),
        ("root_path", "/llm/v2/", "/llm/v2"),
        ("database_url", "postgresql+asyncpg://u:p@h/d", "postgresql+asyncpg://u:p@h/d"),
        ("redis_url", "", None),
        ("model_catalog_url", "", None),
        ("model_catalog_url", "https://models.dev/api.json?k=v", "https://models.dev/api.json?k=v"),
        ("model_catalog_url", "http://127.0.0.1:8080/c", "http://127.0.0.1:8080/c"),
        ("model_catalog_url", "http://[::1]/c", "http://[::1]/c"),
        ("redis_url", "rediss://u:p@h:6380/1", "rediss://u:p@h:6380/1"),
    ],
)
def test_an_allowed_text_becomes_its_value(name: str, text: str, value: object) -> None:
    assert PARSERS[name].parse(text) == value


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("port", "65536"),
        ("port", "-1"),
        ("port", "1_000"),
        ("port", "٣"),
        ("port", ""),
        ("stream_idle_ms", "999"),
        ("upstream_timeout_ms", "999"),
        ("max_attempts", "0"),
        ("max_attempts", "9" * 5000),
        ("keepalive_s", "nan"),
        ("keepalive_s", "-1"),
        ("breaker_ratio", "1.5"),
        ("auth", "maybe"),
        ("log", "loud"),
        ("log", "info,xml"),
        ("leak", "mend"),
        ("transport", "quick"),
        ("default_provider", "a b"),
        ("default_effort", "HIGH"),
        ("default_effort", "ultra"),
        ("admin_token", ""),
        ("admin_token", "two words"),
        ("host", ""),
        ("cors_origins", "app.example"),
        ("cors_origins", "https://a.example/path"),
        ("cors_origins", "https://u@a.example"),
        ("cors_origins", "https://a.example?q"),
        ("trusted_proxies", "proxy.example"),
        ("root_path", "llm"),
        ("root_path", "/a b"),
        ("database_url", "data/troy.db"),
        ("redis_url", "http://h:6379"),
        ("model_catalog_url", "http://models.dev/api.json"),
        ("model_catalog_url", "http://127.evil.example/"),
        ("model_catalog_url", "https://u:p@models.dev/"),
        ("model_catalog_url", "https://models.dev/#x"),
        ("model_catalog_url", "https://models.dev:port/"),
        ("model_catalog_url", "https:///api.json"),
        ("model_catalog_url", "file:///etc/passwd"),
        ("model_catalog_url", "models.dev"),
        ("redis_url", "redis://h:6379/0 "),
    ],
)
def test_any_other_text_is_refused(name: str, text: str) -> None:
    assert refuses(name, text)


def test_a_list_is_split_at_commas_without_blanks_and_empty_items() -> None:
    assert split_list(" a, b ,,c") == ("a", "b", "c")


@pytest.mark.parametrize(("log", "level", "form"), [("info", "info", None), ("debug,json", "debug", "json")])
def test_level_and_form_of_the_log_are_read_apart(log: str, level: str, form: str | None) -> None:
    settings = Settings(log=log)
    assert (settings.log_level, settings.log_form) == (level, form)


def test_no_secret_is_in_the_repr_of_the_settings() -> None:
    settings = Settings(
        database_url="postgresql://u:hush@h/d",
        redis_url="redis://:hush@h",
        secret_key=Secret("hush"),
        metrics_token=Secret("hush"),
    )
    assert "hush" not in repr(settings)
