"""The snapshot that a configuration gives."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from troyproxy.catalog.combos import Combo, Member
from troyproxy.catalog.models import Capabilities, Limits, Model, ToolCalls
from troyproxy.catalog.providers import NO_AUTH, Account, Origin, Provider
from troyproxy.catalog.secret import Secret
from troyproxy.catalog.snapshot import Snapshot
from troyproxy.errors import ConfigError
from troyproxy.routing.effort_spelling import BUDGETS
from troyproxy.settings.assemble import Stored, assemble
from troyproxy.settings.load import load

EXAMPLE = Path(__file__).with_name("example.yaml").read_text(encoding="utf-8")
EXAMPLE_ENV = {"GROQ_API_KEY": "gk", "OPENAI_API_KEY": "a", "OPENAI_KEY_B": "b", "CI_KEY": "sixteen bytes ok"}


def snapshot(folder: Path, text: str = "", env: dict[str, str] | None = None, stored: Stored | None = None) -> Snapshot:
    """Return the snapshot of a file and an environment."""
    (folder / "troyproxy.yaml").write_text(text, encoding="utf-8")
    return assemble(load(env or {}, folder=folder), stored, now=100.0, revision=3)


def test_the_example_of_the_documentation_loads(tmp_path: Path) -> None:
    found = snapshot(tmp_path, EXAMPLE, EXAMPLE_ENV)
    assert list(found.providers) == ["groq", "openai", "local", "inproc"]
    assert list(found.combos) == ["daily", "backup"]
    assert found.combos["daily"].members == (
        Member(model="groq/llama-4-maverick"),
        Member(model="openai/gpt-4o", account="team-a", weight=3),
        Member(combo="backup"),
    )


def test_the_example_warns_of_nothing(tmp_path: Path) -> None:
    assert snapshot(tmp_path, EXAMPLE, EXAMPLE_ENV).warnings == ()


def test_the_options_of_the_leak_guard_are_in_the_snapshot(tmp_path: Path) -> None:
    assert snapshot(tmp_path, EXAMPLE, EXAMPLE_ENV).leak == {"scope": "anywhere", "echo_check": True}


def test_the_snapshot_says_when_and_of_what_it_is(tmp_path: Path) -> None:
    found = snapshot(tmp_path)
    assert (found.loaded_at, found.revision) == (100.0, 3)


def test_providers_come_from_file_environment_database_and_demo_in_this_order(tmp_path: Path) -> None:
    stored = Stored(accounts=[Account("xai#a", "xai", "a")], demo=Provider("demo", auth=NO_AUTH))
    env = {"OPENAI_API_KEY": "k", "GROQ_API_KEY": "k"}
    found = snapshot(tmp_path, "providers: {ollama: {}, groq: {}}", env, stored)
    origins = [(p.id, p.origin) for p in found.providers.values()]
    assert origins[:4] == [
        ("ollama", Origin.FILE),
        ("groq", Origin.FILE),
        ("openai", Origin.ENVIRONMENT),
        ("xai", Origin.DATABASE),
    ]
    assert list(found.providers)[4] == "demo"


def test_a_keyless_built_in_is_there_only_if_the_file_names_it(tmp_path: Path) -> None:
    assert "ollama" not in snapshot(tmp_path).providers
    assert snapshot(tmp_path, "providers: {ollama: }").providers["ollama"].keyless


def test_a_built_in_in_the_file_takes_its_keys_from_the_environment(tmp_path: Path) -> None:
    found = snapshot(tmp_path, "providers: {groq: {}}", {"GROQ_API_KEY": "a", "GROQ_API_KEY_2": "b"})
    assert [a.id for a in found.providers["groq"].accounts] == ["groq#env", "groq#env-2"]


def test_accounts_that_the_file_lists_are_all_there_are(tmp_path: Path) -> None:
    text = "providers: {groq: {accounts: [{name: a, api_key: env:MINE}]}}"
    found = snapshot(tmp_path, text, {"GROQ_API_KEY": "x", "MINE": "y"})
    assert [a.name for a in found.providers["groq"].accounts] == ["a"]


def test_a_built_in_without_any_key_is_there_with_a_warning(tmp_path: Path) -> None:
    found = snapshot(tmp_path, "providers: {google: {}}")
    assert found.providers["google"].accounts == ()
    wanted = "providers.google: has no account: none of GOOGLE_GENERATIVE_AI_API_KEY, GEMINI_API_KEY is set"
    assert found.warnings == (wanted,)


def test_a_built_in_keeps_what_the_file_does_not_change(tmp_path: Path) -> None:
    text = (
        "providers: {mistral: {base_url: 'http://h/v1/', max_inflight: 2, aliases: [m], accepts: {effort: thinking}}}"
    )
    provider = snapshot(tmp_path, text, {"MISTRAL_API_KEY": "k"}).providers["mistral"]
    assert (provider.base_url, provider.max_inflight, provider.aliases) == ("http://h/v1", 2, ("m",))
    assert (provider.accepts.stream_options, provider.default_model) == (False, "mistral-large-latest")


def test_a_built_in_made_keyless_gets_no_account(tmp_path: Path) -> None:
    provider = snapshot(tmp_path, "providers: {openai: {auth: none}}", {"OPENAI_API_KEY": "k"}).providers["openai"]
    assert (provider.keyless, provider.accounts) == (True, ())


def test_an_app_is_a_keyless_provider_without_url(tmp_path: Path) -> None:
    provider = snapshot(tmp_path, "providers: {openai: {app: 'a.b:c'}}").providers["openai"]
    assert (provider.app, provider.base_url, provider.keyless) == ("a.b:c", "", True)


def test_fixed_headers_and_query_may_refer_to_the_environment(tmp_path: Path) -> None:
    text = "providers: {ollama: {headers: {x-a: env:A, x-b: env:B, x-c: c}, query: {v: env:A}}}"
    found = snapshot(tmp_path, text, {"A": "1"})
    assert found.providers["ollama"].headers == (("x-a", "1"), ("x-c", "c"))
    assert found.providers["ollama"].query == (("v", "1"),)
    assert found.warnings == ("providers.ollama.headers.x-b: the variable B is not set; it is left out",)


def test_accounts_of_the_database_join_those_of_the_file(tmp_path: Path) -> None:
    stored = Stored(accounts=[Account("groq#b", "groq", "b", Secret("x"), origin=Origin.DATABASE)])
    found = snapshot(tmp_path, "providers: {groq: {}}", {"GROQ_API_KEY": "a"}, stored)
    assert [a.id for a in found.providers["groq"].accounts] == ["groq#env", "groq#b"]


@pytest.mark.parametrize(
    ("account", "warning"),
    [
        (Account("nosuch#a", "nosuch", "a"), "connection nosuch#a: there is no provider nosuch; it is left out"),
        (Account("groq#env", "groq", "env"), "connection groq#env: is hidden by an account of this name"),
    ],
)
def test_an_account_of_the_database_that_fits_nowhere_is_a_warning(
    tmp_path: Path, account: Account, warning: str
) -> None:
    found = snapshot(tmp_path, "", {"GROQ_API_KEY": "a"}, Stored(accounts=[account]))
    assert found.warnings[0].startswith(warning)
    assert [a.id for a in found.providers["groq"].accounts] == ["groq#env"]


def test_the_default_effort_and_the_table_of_budgets_are_in_the_picture(tmp_path: Path) -> None:
    found = snapshot(tmp_path, "settings: {default_effort: low}\neffort: {budgets: {high: 20000}}")
    assert (found.default_effort, found.effort_budgets) == ("low", {**BUDGETS, "high": 20000})


def test_models_of_a_built_in_come_from_the_catalogue(tmp_path: Path) -> None:
    provider = snapshot(tmp_path, "", {"OPENAI_API_KEY": "k"}).providers["openai"]
    assert provider.model("gpt-4o").capabilities.vision is True
    assert provider.declared is False


def test_the_catalogue_is_there_for_providers_that_are_not_configured(tmp_path: Path) -> None:
    assert "gpt-4o" in snapshot(tmp_path).catalog["openai"]


def test_overrides_lie_over_each_other_from_catalogue_to_database(tmp_path: Path) -> None:
    text = """
        providers: {openai: {models: {gpt-4o: {vision: false, context: 1, output: 1, aliases: [four]}}}}
        models: {"openai/gpt-4o": {context: 2, output: 2}}
    """
    stored = Stored(overrides={"openai/gpt-4o": Model("openai/gpt-4o", limits=Limits(output=3))})
    model = snapshot(tmp_path, text, {"OPENAI_API_KEY": "k"}, stored).providers["openai"].model("four")
    assert (model.id, model.limits, model.capabilities.vision) == ("gpt-4o", Limits(2, 3), False)
    assert model.capabilities.tools is True


def test_an_override_may_name_alias_of_provider_and_model(tmp_path: Path) -> None:
    text = "providers: {p: {base_url: http://h, auth: none, aliases: [q], models: {m: {aliases: [mm]}}}}"
    found = snapshot(tmp_path, text + "\nmodels: {q/mm: {tools: true}}")
    assert found.providers["p"].models["m"].capabilities == Capabilities(tools=True)
    assert list(found.providers["p"].models) == ["m"]


def test_a_model_that_the_catalogue_does_not_know_still_belongs_to_its_family(tmp_path: Path) -> None:
    found = snapshot(tmp_path, "models: {groq/llama-9: {context: 5}}", {"GROQ_API_KEY": "k"})
    model = found.providers["groq"].models["llama-9"]
    assert (model.limits.context, model.tool_calls) == (5, ToolCalls.DRIFTS)


@pytest.mark.parametrize("spec", ["nosuch/m", "nosuch", "openai"])
def test_an_override_of_nothing_is_a_warning(tmp_path: Path, spec: str) -> None:
    warnings = snapshot(tmp_path, f"models: {{{spec}: {{tools: true}}}}").warnings
    assert "names no configured provider's model" in warnings[0]


def test_an_override_of_a_built_in_that_is_not_connected_waits_silently(tmp_path: Path) -> None:
    assert snapshot(tmp_path, "models: {openai/gpt-4o: {tools: true}}").warnings == ()


@pytest.mark.parametrize("text", ["providers: {p: {base_url: http://h, auth: none, models: [m]}}"])
def test_the_list_of_a_custom_provider_is_what_it_declares(tmp_path: Path, text: str) -> None:
    provider = snapshot(tmp_path, text).providers["p"]
    assert (list(provider.models), provider.declared) == (["m"], True)


def test_a_custom_provider_without_a_list_declares_nothing(tmp_path: Path) -> None:
    provider = snapshot(tmp_path, "providers: {p: {base_url: http://h, auth: none}}").providers["p"]
    assert (dict(provider.models), provider.declared) == ({}, False)


def test_the_demo_provider_keeps_its_own_models_and_its_combo_joins(tmp_path: Path) -> None:
    demo = Provider("demo", auth=NO_AUTH, models={"ok": Model("ok")}, declared=True)
    stored = Stored(
        demo=demo, demo_combo=Combo("demo", "demo", members=(Member(model="demo/ok"),), origin=Origin.BUILTIN)
    )
    found = snapshot(tmp_path, "", {}, stored)
    assert found.providers["demo"] == demo
    assert list(found.combos) == ["demo"]


def test_a_combo_of_the_file_beats_one_of_the_database(tmp_path: Path) -> None:
    stored = Stored(combos=[Combo("c", "c", members=(Member(model="ollama/b"),), origin=Origin.DATABASE)])
    found = snapshot(tmp_path, "providers: {ollama: {}}\ncombos: {c: {members: [ollama/a]}}", {}, stored)
    assert found.combos["c"].members == (Member(model="ollama/a"),)
    assert "hidden by the file combo" in found.warnings[0]


def test_a_ring_in_the_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^troyproxy\.yaml: combos\.a: the combos form a ring: a → a$"):
        snapshot(tmp_path, "combos: {a: {members: [a]}}")


@pytest.mark.parametrize(("name", "expected"), [("openai", "openai"), ("Gemini", "google"), ("nosuch", None)])
def test_the_default_provider_is_kept_by_its_id(tmp_path: Path, name: str, expected: str | None) -> None:
    env = {"OPENAI_API_KEY": "k", "GEMINI_API_KEY": "k", "AI_PROVIDER": name}
    assert snapshot(tmp_path, "", env).default_provider == expected


def test_an_unknown_default_provider_is_a_warning(tmp_path: Path) -> None:
    warnings = snapshot(tmp_path, "", {"AI_PROVIDER": "nosuch"}).warnings
    assert warnings == ("default_provider: nosuch is no configured provider; it is ignored",)


KEY = "key with 16 byte"


@pytest.mark.parametrize("text", [f"keys: [{{name: k, key: {KEY}}}]", "keys: [{name: k, key: env:K}]"])
def test_a_key_of_the_file_is_kept_by_its_hash_only(tmp_path: Path, text: str) -> None:
    found = snapshot(tmp_path, text, {"K": KEY})
    key = found.keys[hashlib.sha256(KEY.encode()).digest()]
    assert (key.id, key.name, key.origin) == ("file:k", "k", Origin.FILE)
    assert KEY not in repr(found)


def test_a_key_carries_what_it_may_do(tmp_path: Path) -> None:
    text = (
        "keys: [{name: k, key: env:K, models: [daily], provider: groq, limits: {tokens_per_minute: 5}, expires_at: 9}]"
    )
    key = next(iter(snapshot(tmp_path, text, {"K": KEY, "GROQ_API_KEY": "g"}).keys.values()))
    assert (key.models, key.provider, dict(key.limits), key.expires_at) == (
        ("daily",),
        "groq",
        {"tokens_per_minute": 5.0},
        9.0,
    )


def test_a_key_whose_variable_is_not_set_is_left_out_with_a_warning(tmp_path: Path) -> None:
    found = snapshot(tmp_path, "keys: [{name: k, key: env:K}]")
    assert found.keys == {}
    assert found.warnings == ("keys[0].key: the variable K is not set; the key k is left out",)


@pytest.mark.parametrize("value", ["", "too short", "x" * 513])
def test_a_key_of_the_wrong_length_refuses_the_start(tmp_path: Path, value: str) -> None:
    with pytest.raises(ConfigError, match=r"^troyproxy\.yaml: keys\[0\]\.key: the value of K has not 16 to 512 bytes$"):
        snapshot(tmp_path, "keys: [{name: k, key: env:K}]", {"K": value})


def test_two_keys_with_one_secret_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^troyproxy\.yaml: keys\[1\]\.key: is the same secret as that of a$"):
        snapshot(tmp_path, "keys: [{name: a, key: env:K}, {name: b, key: env:K}]", {"K": KEY})


def test_a_key_that_prefers_an_unknown_provider_is_a_warning(tmp_path: Path) -> None:
    found = snapshot(tmp_path, "keys: [{name: k, key: env:K, provider: nosuch}]", {"K": KEY})
    assert found.warnings == ("keys[0].provider: nosuch is no configured provider",)


def test_no_upstream_key_is_in_the_repr_of_a_snapshot(tmp_path: Path) -> None:
    text = "providers: {groq: {accounts: [{name: a, api_key: hush-literal}]}}"
    assert "hush" not in repr(snapshot(tmp_path, text, {"OPENAI_API_KEY": "hush-env"}))
