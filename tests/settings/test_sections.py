"""The config file: what is accepted, and what every error says."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
import yaml

from troyproxy.catalog.combos import Member
from troyproxy.catalog.models import Price, ToolCalls
from troyproxy.catalog.naming import combo_id
from troyproxy.catalog.providers import NO_AUTH, X_API_KEY, Auth, EffortSpelling, Timeouts
from troyproxy.catalog.secret import Secret
from troyproxy.settings.builtin import load_builtins
from troyproxy.settings.document import (
    AcceptsEntry,
    AccountEntry,
    Credential,
    Document,
    KeyEntry,
    ModelEntry,
    ProviderEntry,
)
from troyproxy.settings.load import read_document
from troyproxy.settings.provider_shapes import ACCEPTS, ACCOUNT, MODEL, PROVIDER
from troyproxy.settings.report import Report
from troyproxy.settings.sections import DOCUMENT, KEY
from troyproxy.settings.shapes import Shape

EXAMPLE = Path(__file__).with_name("example.yaml").read_bytes()
BUILTINS = load_builtins()


def read(text: str) -> tuple[Document, Report]:
    """Return the document and what was reported."""
    report = Report()
    return read_document(text.encode(), "f.yaml", BUILTINS, report), report


def accepted(text: str) -> Document:
    """Return the document of a text without problems."""
    document, report = read(text)
    assert report.problems == []
    return document


def provider(text: str) -> ProviderEntry:
    """Return the entry of the custom provider p, with these fields."""
    return accepted(f"providers: {{p: {{base_url: http://h/v1, {text}}}}}").providers["p"]


def test_the_example_of_the_documentation_is_accepted() -> None:
    document = accepted(EXAMPLE.decode())
    assert list(document.providers) == ["groq", "openai", "local", "inproc"]


def test_an_empty_file_says_nothing() -> None:
    assert accepted("# nothing") == Document()


@pytest.mark.parametrize(
    ("shape", "entry"),
    [
        (MODEL, ModelEntry),
        (ACCOUNT, AccountEntry),
        (ACCEPTS, AcceptsEntry),
        (PROVIDER, ProviderEntry),
        (KEY, KeyEntry),
        (DOCUMENT, Document),
    ],
)
def test_the_keys_of_a_record_are_the_fields_of_its_entry(shape: Shape[object], entry: type) -> None:
    assert set(shape.fields) == {f.name for f in dataclasses.fields(entry)}


@pytest.mark.parametrize(
    ("text", "auth"),
    [("auth: none", NO_AUTH), ("auth: x-api-key", X_API_KEY), ("auth: {header: Api-Key}", Auth("api-key", ""))],
)
def test_auth_is_a_word_or_a_header(text: str, auth: Auth) -> None:
    assert provider(text).auth == auth


@pytest.mark.parametrize(
    "moment", ["-1", "1e300", "1" + "0" * 400, "253402300800", "'9999-12-31T23:59:59-12:00'", "'1969-12-31'", "soon"]
)
def test_a_moment_lies_between_1970_and_the_year_9999(moment: str) -> None:
    _, report = read(f"keys: [{{name: a, key: env:A, expires_at: {moment}}}]")
    assert [place for place, _ in report.problems] == ["keys[0].expires_at"]


def test_a_provider_takes_headers_query_timeouts_and_limits() -> None:
    entry = provider(
        "headers: {X-Team: search, x-n: 7}, query: {v: '2'}, timeouts: {connect_s: 2, idle_s: 1.5}, max_inflight: 3, "
        "leak: off, proxy: 'http://u:p@proxy:3128', accepts: {stream_options: false, effort: reasoning}"
    )
    assert entry == ProviderEntry(
        base_url="http://h/v1",
        headers={"x-team": "search", "x-n": "7"},
        query={"v": "2"},
        timeouts=Timeouts(connect_s=2.0, idle_s=1.5),
        max_inflight=3,
        leak="off",
        proxy="http://u:p@proxy:3128",
        accepts=AcceptsEntry(stream_options=False, effort=EffortSpelling.OBJECT),
    )


def test_models_may_be_a_list_of_names() -> None:
    assert provider("models: [a, b]").models == {"a": ModelEntry(), "b": ModelEntry()}


def test_a_model_is_described_in_full() -> None:
    text = "models: {m: {tools: on, context: 9, price: {input: 1}, tool_calls: drifts, efforts: [low], aliases: [x]}}"
    assert provider(text).models["m"] == ModelEntry(
        tools=True, context=9, price=Price(input=1.0), tool_calls=ToolCalls.DRIFTS, efforts=("low",), aliases=("x",)
    )


def test_an_account_is_described_in_full() -> None:
    account = provider(
        "accounts: [{name: a, api_key: env:A, models: [m-*], tier: pro, priority: 1, quota: {tokens: 5, per: day}, "
        "quota_reset_interval_s: 60, max_inflight: 2, token_expires_at: 2030-01-01T00:00:00Z, active: false}]"
    ).accounts[0]
    assert account == AccountEntry(
        name="a",
        api_key=Credential(env="A"),
        models=("m-*",),
        tier="pro",
        priority=1,
        quota={"tokens": 5, "per": "day"},
        quota_reset_interval_s=60.0,
        max_inflight=2,
        token_expires_at=1893456000.0,
        active=False,
    )


@pytest.mark.parametrize("moment", ["1893456000", "2030-01-01", "2030-01-01 00:00:00", "'2030-01-01T01:00:00+01:00'"])
def test_a_moment_is_unix_seconds_or_a_date_in_utc(moment: str) -> None:
    account = provider(f"accounts: [{{name: a, api_key: env:A, token_expires_at: {moment}}}]").accounts[0]
    assert account.token_expires_at == 1893456000.0


@pytest.mark.parametrize(
    ("member", "expected"),
    [
        ("openai/gpt-4o", Member(model="openai/gpt-4o")),
        ("combo/backup", Member(combo="backup")),
        ("{combo: backup, weight: 0}", Member(combo="backup", weight=0)),
        ("{model: openai/gpt-4o, account: a, weight: 2.5}", Member("openai/gpt-4o", account="a", weight=2.5)),
        ("{model: combo/backup}", Member(combo="backup")),
    ],
)
def test_a_member_is_a_text_or_a_mapping(member: str, expected: Member) -> None:
    assert accepted(f"combos: {{c: {{members: [{member}]}}}}").combos["c"].members == (expected,)


def test_a_combo_gets_its_name_and_an_id() -> None:
    combos = accepted(
        "combos: {'Auto Coder': {members: [a/b]}, x: {id: y, members: [a/b]}, z: {members: [a/b]}}"
    ).combos
    assert [(c.name, c.id) for c in combos.values()] == [("Auto Coder", combo_id("Auto Coder")), ("x", "y"), ("z", "z")]


def test_members_may_be_empty_for_strategy_auto_only() -> None:
    assert accepted("combos: {c: {strategy: auto}}").combos["c"].members == ()


def test_a_key_of_the_file_may_be_any_text_of_sixteen_bytes() -> None:
    key = accepted("keys: [{name: k, key: 'pässwörd mit 16'}]").keys[0]
    assert key.key == Credential(literal=Secret("pässwörd mit 16"))


@pytest.mark.parametrize(
    ("text", "budgets"),
    [("effort: {budgets: {low: 3000, max: 64000}}", {"low": 3000, "max": 64000}), ("effort: {}", {}), ("", {})],
)
def test_the_file_has_a_table_of_thinking_budgets(text: str, budgets: dict[str, int]) -> None:
    assert accepted(text or "# nothing").effort == budgets


def test_a_key_may_lock_the_leak_mode() -> None:
    assert accepted("keys: [{name: k, key: env:K, leak: {mode: off, locked: true}}]").keys[0].leak == {
        "mode": "off",
        "locked": True,
    }


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("{auth: off}", "auth", False),
        ("{trace: 1}", "trace", True),
        ("{leak: repair}", "leak", "repair"),
        ("{cors_origins: [https://a.example]}", "cors_origins", ("https://a.example",)),
        ("{keepalive_s: 2.5}", "keepalive_s", 2.5),
        ("{admin_token: env:T}", "admin_token", Credential(env="T")),
    ],
)
def test_a_setting_of_the_file_is_read_as_in_the_environment(text: str, name: str, value: object) -> None:
    assert accepted(f"settings: {text}").settings == {name: value}


P = "providers: {p: {base_url: http://h/v1, "
WRONG: list[list[str]] = yaml.safe_load(Path(__file__).with_name("wrong.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize(("text", "place", "message"), WRONG)
def test_an_error_names_its_path_and_what_is_allowed_and_hides_secrets(text: str, place: str, message: str) -> None:
    report = read(text)[1]
    assert [p for p, _ in report.problems] == [place]
    assert message in report.problems[0][1]
    assert "hush" not in report.problems[0][1]


def test_all_errors_are_found_in_one_pass() -> None:
    text = "providers: {p: {base_url: 5, max_inflight: 0}}\ncombos: {c: {members: [5]}}\nsettings: {nope: 1}\nkeys: 5"
    places = {place for place, _ in read(text)[1].problems}
    assert places == {
        "providers.p.base_url",
        "providers.p.max_inflight",
        "combos.c.members[0]",
        "settings.nope",
        "keys",
    }


@pytest.mark.parametrize(
    ("text", "warning"),
    [
        (
            P + "accounts: [{name: a, api_key: sk-hush}]}}",
            "providers.p.accounts[0].api_key: a secret stands in the file",
        ),
        (P + "}}", "providers.p: has no account"),
        ("keys: [{name: k, key: hush-hush-hush-hush}]", "keys[0].key: a secret stands in the file"),
    ],
)
def test_what_is_doubtful_is_a_warning(text: str, warning: str) -> None:
    report = read(text)[1]
    assert report.problems == []
    assert [w for w in report.warnings if w.startswith(warning)] == report.warnings
    assert "hush" not in report.warnings[0]


@pytest.mark.parametrize(
    "text", [P + "auth: none}}", P + "auth: none, accounts: [{name: a}]}}", "providers: {p: {app: 'a:b'}}"]
)
def test_a_provider_without_credential_needs_no_account(text: str) -> None:
    report = read(text)[1]
    assert (report.problems, report.warnings) == ([], [])
