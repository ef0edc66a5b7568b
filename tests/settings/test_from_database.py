"""What the database adds to the providers of file and environment."""

from __future__ import annotations

from pathlib import Path

import pytest

from troyproxy.catalog.combos import Combo, Member
from troyproxy.catalog.providers import NO_AUTH, X_API_KEY, Account, EffortSpelling, Origin, Provider, StoredProvider
from troyproxy.catalog.secret import Secret
from troyproxy.catalog.snapshot import Snapshot
from troyproxy.settings.assemble import Stored, assemble
from troyproxy.settings.load import load

URL = "http://127.0.0.1:8000/v1"


def snapshot(
    folder: Path,
    *rows: StoredProvider,
    accounts: tuple[Account, ...] = (),
    text: str = "",
    env: dict[str, str] | None = None,
    combos: tuple[Combo, ...] = (),
    demo: Provider | None = None,
) -> Snapshot:
    """Return the snapshot of a file, an environment and a database."""
    (folder / "troyproxy.yaml").write_text(text, encoding="utf-8")
    stored = Stored(providers=rows, accounts=accounts, combos=combos, demo=demo)
    return assemble(load(env or {}, folder=folder), stored, now=100.0)


def account(provider: str, name: str = "a", key: str | None = "sk-key-4711") -> Account:
    secret = None if key is None else Secret(key)
    return Account(f"{provider}#{name}", provider, name, secret, origin=Origin.DATABASE)


def test_a_provider_of_ones_own_is_configured_by_its_row(tmp_path: Path) -> None:
    config = {"base_url": URL, "auth": "x-api-key", "headers": {"x-team": "search"}, "query": {"v": 1}, "leak": "off"}
    found = snapshot(tmp_path, StoredProvider("local", config), accounts=(account("local"),)).providers["local"]
    assert (found.base_url, found.auth, found.leak) == (URL, X_API_KEY, "off")
    assert (found.headers, found.query) == ((("x-team", "search"),), (("v", "1"),))
    assert ([a.id for a in found.accounts], found.origin) == (["local#a"], Origin.DATABASE)


def test_a_row_lies_over_what_is_built_in(tmp_path: Path) -> None:
    found = snapshot(tmp_path, StoredProvider("openrouter", {"default_model": "x/y"})).providers["openrouter"]
    assert (found.base_url, found.default_model) == ("https://openrouter.ai/api/v1", "x/y")
    assert found.accepts.effort is EffortSpelling.OBJECT


def test_its_models_are_declared_or_lie_over_the_catalogue(tmp_path: Path) -> None:
    own = StoredProvider("local", {"base_url": URL, "auth": "none", "models": {"m": {"tools": True}}})
    known = StoredProvider("groq", {"models": {"llama-3.3-70b-versatile": {"context": 7}}})
    found = snapshot(tmp_path, own, known).providers
    assert (list(found["local"].models), found["local"].declared) == (["m"], True)
    assert found["groq"].model("llama-3.3-70b-versatile").limits.context == 7
    assert (len(found["groq"].models) > 1, found["groq"].declared) == (True, False)


def test_those_of_the_database_come_after_file_and_environment_and_before_the_demo(tmp_path: Path) -> None:
    rows = (StoredProvider("zeta", {"base_url": URL}), StoredProvider("beta", {"base_url": URL}))
    found = snapshot(
        tmp_path,
        *rows,
        accounts=(account("xai"),),
        text="providers: {ollama: {}}",
        env={"OPENAI_API_KEY": "k"},
        demo=Provider("demo", auth=NO_AUTH, app="demo"),
    )
    assert list(found.providers) == ["ollama", "openai", "zeta", "beta", "xai", "demo"]


def test_what_the_file_or_environment_configures_is_theirs(tmp_path: Path) -> None:
    rows = (StoredProvider("groq", {"default_model": "x"}), StoredProvider("openai", {"default_model": "x"}))
    found = snapshot(tmp_path, *rows, text="providers: {groq: {}}", env={"OPENAI_API_KEY": "k"})
    assert [p.origin for p in found.providers.values()] == [Origin.FILE, Origin.ENVIRONMENT]
    assert "provider groq: the one in the database is hidden by the file one" in found.warnings
    assert "provider openai: the one in the database is hidden by the environment one" in found.warnings


def test_its_connections_join_the_one_that_hides_it_if_the_keys_go_to_the_same_place(tmp_path: Path) -> None:
    row = StoredProvider("groq", {"default_model": "x"})
    found = snapshot(tmp_path, row, accounts=(account("groq"),), env={"GROQ_API_KEY": "k"})
    assert [a.name for a in found.providers["groq"].accounts] == ["env", "a"]


@pytest.mark.parametrize(
    "config",
    [
        {"base_url": URL},
        {"auth": "x-api-key"},
        {"headers": {"x-a": "b"}},
        {"proxy": "http://127.0.0.1:3128"},
        {"ca_file": "/etc/ssl/ours.pem"},
    ],
)
def test_a_key_that_was_given_for_another_target_is_not_used(tmp_path: Path, config: dict[str, object]) -> None:
    row = StoredProvider("groq", config)
    found = snapshot(tmp_path, row, accounts=(account("groq"),), env={"GROQ_API_KEY": "k"})
    assert [a.name for a in found.providers["groq"].accounts] == ["env"]
    assert "connection groq#a: was given for the provider in the database; it is left out" in found.warnings


def test_a_row_that_cannot_be_read_is_left_out_with_the_keys_that_were_given_for_it(tmp_path: Path) -> None:
    row = StoredProvider("groq", {"base_url": URL, "colour": "red"})
    found = snapshot(tmp_path, row, accounts=(account("groq"),))
    assert "groq" not in found.providers
    assert any(w.startswith("provider groq: colour: is unknown") for w in found.warnings)


def test_a_row_that_is_no_built_in_provider_any_more_is_left_out(tmp_path: Path) -> None:
    found = snapshot(tmp_path, StoredProvider("bygone", {}))
    assert "bygone" not in found.providers
    assert any(w.startswith("provider bygone: base_url: is required") for w in found.warnings)


def test_a_connection_configures_a_built_in_provider_as_a_key_in_the_environment_does(tmp_path: Path) -> None:
    found = snapshot(tmp_path, accounts=(account("groq"),)).providers["groq"]
    assert (found.base_url, [a.name for a in found.accounts]) == ("https://api.groq.com/openai/v1", ["a"])


def test_a_connection_of_nobody_is_left_out(tmp_path: Path) -> None:
    found = snapshot(tmp_path, accounts=(account("nowhere"),))
    assert "connection nowhere#a: there is no provider nowhere; it is left out" in found.warnings


def test_a_connection_that_the_file_has_too_is_hidden(tmp_path: Path) -> None:
    text = "providers: {groq: {accounts: [{name: a, api_key: file-secret}]}}"
    found = snapshot(tmp_path, accounts=(account("groq"),), text=text)
    assert [a.origin for a in found.providers["groq"].accounts] == [Origin.FILE]
    assert any(w.startswith("connection groq#a: is hidden") for w in found.warnings)


def test_a_connection_without_the_key_that_its_provider_needs_is_left_out(tmp_path: Path) -> None:
    found = snapshot(tmp_path, accounts=(account("groq", key=None),))
    assert found.providers["groq"].accounts == ()
    assert "connection groq#a: has no api_key; it is left out" in found.warnings


def test_a_connection_needs_no_key_where_none_is_sent(tmp_path: Path) -> None:
    row = StoredProvider("local", {"base_url": URL, "auth": "none"})
    found = snapshot(tmp_path, row, accounts=(account("local", key=None),))
    assert [a.name for a in found.providers["local"].accounts] == ["a"]


def test_an_alias_that_means_another_provider_already_is_left_out(tmp_path: Path) -> None:
    row = StoredProvider("local", {"base_url": URL, "auth": "none", "aliases": ["mine", "gemini"]})
    found = snapshot(tmp_path, row, env={"GEMINI_API_KEY": "k"})
    assert (found.provider_names["gemini"], found.provider_names["mine"]) == ("google", "local")
    assert "provider local: the alias gemini means google; it is left out" in found.warnings


def test_a_provider_of_the_database_never_makes_the_file_wrong(tmp_path: Path) -> None:
    row = StoredProvider("team", {"base_url": URL, "auth": "none"})
    found = snapshot(tmp_path, row, text="combos: {team/one: {members: [openai/gpt-4o]}}")
    assert "team/one" in found.combos
    assert 'combos["team/one"]: the name reads as a model of the provider team' in found.warnings


def test_a_stored_combo_that_reads_as_its_model_is_a_warning(tmp_path: Path) -> None:
    row = StoredProvider("team", {"base_url": URL, "auth": "none"})
    combo = Combo("x", "team/one", members=(Member("team/m"),), origin=Origin.DATABASE)
    found = snapshot(tmp_path, row, combos=(combo,))
    assert 'combos["team/one"]: the name reads as a model of the provider team' in found.warnings
