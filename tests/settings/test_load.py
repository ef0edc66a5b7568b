"""Sources of settings, their order, and what is said when they are wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from troyproxy.catalog.secret import Secret
from troyproxy.errors import ConfigError
from troyproxy.settings.load import load
from troyproxy.settings.parsers import PARSERS
from troyproxy.settings.values import Settings


def write(folder: Path, text: str, name: str = "troyproxy.yaml") -> Path:
    """Write a file and return its path."""
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_without_anything_everything_is_default(tmp_path: Path) -> None:
    loaded = load({}, folder=tmp_path)
    assert (loaded.settings, loaded.path, loaded.warnings) == (Settings(), None, ())


def test_each_source_beats_the_one_below_it(tmp_path: Path) -> None:
    write(tmp_path, "settings: {port: 1, max_attempts: 1, metrics_models: 1, shutdown_s: 1}")
    dotenv = write(tmp_path, "TROY_PORT=2\nTROY_MAX_ATTEMPTS=2\nTROY_METRICS_MODELS=2\n", ".env")
    env = {"TROY_PORT": "3", "TROY_MAX_ATTEMPTS": "3"}
    s = load(env, dotenv=dotenv, options={"port": 4}, folder=tmp_path).settings
    assert (s.port, s.max_attempts, s.metrics_models, s.shutdown_s) == (4, 3, 2, 1.0)


def test_where_a_setting_came_from_is_kept(tmp_path: Path) -> None:
    write(tmp_path, "settings: {max_attempts: 5}")
    dotenv = write(tmp_path, "TROY_LOG=debug", ".env")
    origins = load({"TROY_PORT": "3"}, dotenv=dotenv, options={"auth": "off"}, folder=tmp_path).provenance
    picked = {n: origins[n] for n in ("max_attempts", "log", "port", "auth", "host")}
    assert picked == {
        "max_attempts": "file",
        "log": ".env",
        "port": "environment",
        "auth": "option",
        "host": "default",
    }


def test_every_setting_has_a_provenance(tmp_path: Path) -> None:
    assert list(load({}, folder=tmp_path).provenance) == list(PARSERS)


def test_an_option_may_be_a_value_or_a_text(tmp_path: Path) -> None:
    s = load({}, options={"auth": False, "port": "7", "cors_origins": ["https://a.example"]}, folder=tmp_path).settings
    assert (s.auth, s.port, s.cors_origins) == (False, 7, ("https://a.example",))


def test_the_file_may_be_named_by_the_environment(tmp_path: Path) -> None:
    write(tmp_path, "settings: {port: 5}", "other.yaml")
    loaded = load({"TROY_CONFIG": "other.yaml"}, folder=tmp_path)
    assert (loaded.settings.port, loaded.settings.config) == (5, "other.yaml")


def test_the_file_given_by_the_caller_goes_first(tmp_path: Path) -> None:
    path = write(tmp_path, "settings: {port: 5}", "mine.yaml")
    assert load({"TROY_CONFIG": "other.yaml"}, config=path, folder=tmp_path).path == path


def test_a_file_that_is_named_must_exist(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nosuch\.yaml: the config file cannot be read"):
        load({"TROY_CONFIG": "nosuch.yaml"}, folder=tmp_path)


@pytest.mark.parametrize(
    ("env", "value"),
    [
        ({"AI_PROVIDER": "groq"}, "groq"),
        ({"AI_PROVIDER": "groq", "TROY_DEFAULT_PROVIDER": "openai"}, "openai"),
        ({"AI_PROVIDER": ""}, None),
        ({"AI_PROVIDER": "", "TROY_DEFAULT_PROVIDER": ""}, None),
    ],
)
def test_the_default_provider_has_a_second_variable(tmp_path: Path, env: dict[str, str], value: str | None) -> None:
    assert load(env, folder=tmp_path).settings.default_provider == value


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("TROY_STREM_IDLE_MS", "did you mean TROY_STREAM_IDLE_MS?"),
        ("TROY_USAGE_YEARS", "is an unknown setting"),
        ("TROY_", "is an unknown setting"),
    ],
)
def test_an_unknown_variable_stops_the_start_and_is_named(tmp_path: Path, name: str, hint: str) -> None:
    with pytest.raises(ConfigError, match=f"^{name}: is an unknown setting") as caught:
        load({name: "hush"}, folder=tmp_path)
    assert hint in str(caught.value)
    assert "hush" not in str(caught.value)


def test_an_unknown_variable_in_the_dotenv_file_stops_the_start(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="TROY_NOPE"):
        load({}, dotenv=write(tmp_path, "TROY_NOPE=1", ".env"), folder=tmp_path)


def test_a_bad_value_is_named_with_what_is_allowed(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match=r'^TROY_PORT: "http" is not allowed; allowed: a whole number from 0 to 65535$'
    ):
        load({"TROY_PORT": "http"}, folder=tmp_path)


@pytest.mark.parametrize("value", ["", "hush hush"])
def test_a_bad_secret_is_not_shown(tmp_path: Path, value: str) -> None:
    with pytest.raises(ConfigError, match=r"^TROY_ADMIN_TOKEN: this value is not allowed"):
        load({"TROY_ADMIN_TOKEN": value}, folder=tmp_path)


def test_problems_of_all_sources_are_said_at_once(tmp_path: Path) -> None:
    write(tmp_path, "settings: {nope: 1}\ncombos: 5")
    dotenv = write(tmp_path, "TROY_TRACE=perhaps", ".env")
    with pytest.raises(ConfigError) as caught:
        load({"TROY_PORT": "x"}, dotenv=dotenv, options={"auth": [1]}, folder=tmp_path)
    assert isinstance(caught.value.details, list)
    places = [d["field"] for d in caught.value.details]
    assert places == ["TROY_TRACE", "TROY_PORT", "TROY_AUTH", "settings.nope", "combos"]


def test_the_environment_lies_over_the_dotenv_file_for_keys_too(tmp_path: Path) -> None:
    dotenv = write(tmp_path, "A_KEY=file\nB_KEY=file", ".env")
    env = load({"A_KEY": "env"}, dotenv=dotenv, folder=tmp_path).env
    assert (env["A_KEY"], env["B_KEY"]) == ("env", "file")


def test_a_secret_setting_may_refer_to_the_environment(tmp_path: Path) -> None:
    write(tmp_path, "settings: {metrics_token: env:TOKEN}")
    assert load({"TOKEN": "hush"}, folder=tmp_path).settings.metrics_token == Secret("hush")


def test_a_reference_to_an_unset_variable_leaves_the_default_with_a_warning(tmp_path: Path) -> None:
    write(tmp_path, "settings: {metrics_token: env:TOKEN}")
    loaded = load({}, folder=tmp_path)
    assert loaded.warnings == ("settings.metrics_token: the variable TOKEN is not set",)
    assert loaded.provenance["metrics_token"] == "default"


def test_a_reference_to_a_bad_value_is_an_error_without_the_value(tmp_path: Path) -> None:
    write(tmp_path, "settings: {metrics_token: env:TOKEN}")
    with pytest.raises(ConfigError, match=r"^troyproxy\.yaml: settings\.metrics_token: the value of TOKEN is not"):
        load({"TOKEN": "hush hush"}, folder=tmp_path)


def test_a_literal_secret_setting_is_taken_with_a_warning(tmp_path: Path) -> None:
    write(tmp_path, "settings: {metrics_token: hush, database_url: 'sqlite+aiosqlite:///x.db'}")
    loaded = load({}, folder=tmp_path)
    assert loaded.settings.metrics_token == Secret("hush")
    assert loaded.warnings == ("settings.metrics_token: a secret stands in the file; better: env:NAME",)


def test_unreadable_yaml_names_the_file_and_line(tmp_path: Path) -> None:
    write(tmp_path, "a: 1\na: 2")
    with pytest.raises(ConfigError, match=r"^troyproxy\.yaml: line 2, column 1"):
        load({}, folder=tmp_path)


def test_no_secret_is_in_the_repr_of_a_configuration(tmp_path: Path) -> None:
    write(tmp_path, "settings: {admin_token: hush}\nproviders: {openai: {accounts: [{name: a, api_key: hush}]}}")
    assert "hush" not in repr(load({"OPENAI_API_KEY": "hush"}, folder=tmp_path))


def test_a_problem_in_the_file_names_the_file(tmp_path: Path) -> None:
    write(tmp_path, "settings: {port: 99999}")
    with pytest.raises(ConfigError, match=r"^troyproxy\.yaml: settings\.port: "):
        load({}, folder=tmp_path)


def test_problems_of_one_file_name_it_once(tmp_path: Path) -> None:
    write(tmp_path, "settings: {port: 99999, trace: maybe}")
    with pytest.raises(ConfigError, match=r"^troyproxy\.yaml: 2 problems\n  settings\.port: .*\n  settings\.trace: "):
        load({}, folder=tmp_path)


def test_problems_of_variables_and_file_are_told_apart(tmp_path: Path) -> None:
    write(tmp_path, "settings: {port: 99999}")
    told = r"^configuration: 2 problems\n  TROY_TRACE: .*\n  troyproxy\.yaml: settings\.port: "
    with pytest.raises(ConfigError, match=told):
        load({"TROY_TRACE": "maybe"}, folder=tmp_path)
