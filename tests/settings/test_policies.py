from __future__ import annotations

from pathlib import Path

import pytest

from troyproxy.catalog.snapshot import Snapshot
from troyproxy.errors import ConfigError
from troyproxy.settings.assemble import assemble
from troyproxy.settings.policies import load_policy

FILE = """
providers:
  groq: {}
  openai:
    accounts:
      - {name: a, api_key: env:KEY_A}
      - {name: b, api_key: sk-literal-0123456789abcdef}
combos: {daily: {members: [groq/llama-3.3-70b-versatile, openai/gpt-4o]}}
settings: {breaker_failures: 7}
keys: [{name: ci, key: env:CI_KEY}]
"""


def policy(folder: Path, text: str = FILE, **env: str) -> Snapshot:
    path = folder / "a.yaml"
    path.write_text(text, encoding="utf-8")
    return assemble(load_policy(path, env), now=0.0)


def test_accounts_exist_whose_keys_are_missing(tmp_path: Path) -> None:
    made = policy(tmp_path)
    assert [account.name for account in made.providers["openai"].accounts] == ["a", "b"]
    assert [account.name for account in made.providers["groq"].accounts] == ["env"]
    assert [key.name for key in made.keys.values()] == ["ci"]


def test_keys_in_the_environment_make_accounts_as_they_do_for_serve(tmp_path: Path) -> None:
    made = policy(tmp_path, GROQ_API_KEY_2="gsk_0123456789", GROQ_API_KEY="gsk_9876543210", XAI_API_KEY="xai-01234567")
    assert [account.name for account in made.providers["groq"].accounts] == ["env", "env-2"]
    assert "xai" in made.providers


def test_settings_of_the_environment_do_not_count(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(FILE, encoding="utf-8")
    env = {"TROY_BREAKER_FAILURES": "2", "AI_PROVIDER": "groq", "TROY_NONSENSE": "1"}
    settings = load_policy(path, env).settings
    assert (settings.breaker_failures, settings.default_provider) == (7, None)


@pytest.mark.parametrize("text", ["providers: [", "providers: {groq: {nonsense: 1}}", None])
def test_a_bad_file_is_named(tmp_path: Path, text: str | None) -> None:
    path = tmp_path / "bad.yaml"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=r"bad\.yaml"):
        load_policy(path, {})


def test_a_reference_that_stands_in_for_nothing_else_is_no_account(tmp_path: Path) -> None:
    made = policy(tmp_path, "providers: {local: {base_url: 'http://127.0.0.1:1/v1', auth: none, models: {m: {}}}}\n")
    assert made.providers["local"].accounts == ()
