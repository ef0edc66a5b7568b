"""A fetched catalogue is taken whole or refused whole."""

from __future__ import annotations

import contextlib
import gzip
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troyproxy.catalog.models import Capabilities, Limits, Model, Price
from troyproxy.settings.builtin import Builtin, load_builtins
from troyproxy.settings.catalogue import Catalogue, models_dev_path
from troyproxy.settings.fetched_catalogue import MAX_BYTES, MAX_WARNINGS, CatalogueRefused, read_catalogue

ONE = {"p": Builtin(base_url="https://h", models_dev="vendor")}


def text(models: object, vendor: str = "vendor") -> bytes:
    return json.dumps({vendor: {"id": vendor, "models": models}}).encode()


def test_a_model_is_read_as_the_offline_catalogue_reads_it() -> None:
    facts = {"tool_call": True, "limit": {"context": 9, "output": 0}, "cost": {"input": 1, "output": 2}, "new": [1]}
    assert read_catalogue(text({"m": facts}), ONE).models == {
        "vendor": {"m": Model("m", Capabilities(tools=True), Limits(9, None), Price(1.0, 2.0))}
    }


def test_providers_that_are_not_built_in_are_passed_over() -> None:
    raw = json.dumps({"vendor": {"models": {"m": {}}}, "stranger": {"models": {"n": {}}}}).encode()
    assert list(read_catalogue(raw, ONE).models) == ["vendor"]


def test_its_size_is_the_number_of_models() -> None:
    assert read_catalogue(text({"a": {}, "b": {}}), ONE).size == 2


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (b"", "not valid JSON"),
        (b"<html>", "not valid JSON"),
        (text({"m": {}})[:-2], "not valid JSON"),
        (b"\xff\xfe{}", "not valid JSON"),
        (b"[" * 100_000, "shape"),
        (b'{"vendor": {"models": {"m": ' + b'{"x":' * 100_000, "not valid JSON"),
        (b"[]", "shape"),
        (b"null", "shape"),
        (b'{"vendor": {}}', "shape"),
        (b'{"vendor": {"models": []}}', "shape"),
        (b'{"vendor": {"models": {"m": {}}}, "stranger": 1}', "shape"),
        (text({"m": {"tool_call": "yes"}}), "shape"),
        (text({"m": {"limit": {"context": "many"}}}), "shape"),
        (b"{}", "no model of a built-in provider"),
        (text({}), "no model of a built-in provider"),
        (text({"m": {}}, "stranger"), "no model of a built-in provider"),
        (b" " * MAX_BYTES + b"{}", "larger than 8 MiB"),
    ],
)
def test_anything_else_is_refused_with_the_reason(raw: bytes, why: str) -> None:
    with pytest.raises(CatalogueRefused, match=why):
        read_catalogue(raw, ONE)


@pytest.mark.parametrize("value", ["-1", "1e300", "9999999999999"])
def test_a_limit_that_cannot_be_true_stays_unknown_with_a_warning(value: str) -> None:
    raw = b'{"vendor": {"models": {"m": {"limit": {"context": ' + value.encode() + b"}}}}}"
    found = read_catalogue(raw, ONE)
    assert (found.models["vendor"]["m"].limits, found.warnings) == (
        Limits(),
        ("vendor/m: its limits cannot be true and stay unknown",),
    )


@pytest.mark.parametrize("value", [-1, 1e9])
def test_a_price_that_cannot_be_true_stays_unknown_with_a_warning(value: float) -> None:
    found = read_catalogue(text({"m": {"cost": {"input": value, "output": 1}}}), ONE)
    assert (found.models["vendor"]["m"].price, found.warnings) == (
        Price(),
        ("vendor/m: its prices cannot be true and stay unknown",),
    )


@pytest.mark.parametrize("name", ["", "a\nb", "x" * 201])
def test_a_name_that_is_none_is_left_out_with_a_warning(name: str) -> None:
    found = read_catalogue(text({"m": {}, name: {}}), ONE)
    assert (list(found.models["vendor"]), len(found.warnings)) == (["m"], 1)


def test_many_warnings_end_in_their_number() -> None:
    models = {f"m{i}": {"limit": {"context": -1}} for i in range(MAX_WARNINGS + 5)}
    warnings = read_catalogue(text(models), ONE).warnings
    assert (len(warnings), warnings[-1]) == (MAX_WARNINGS + 1, "and 5 more like these")


def test_what_the_package_brings_would_be_taken_as_it_is() -> None:
    path, builtins = models_dev_path(), load_builtins()
    assert path is not None
    found = read_catalogue(gzip.decompress(path.read_bytes()), builtins)
    assert Catalogue(builtins, path, found.models)["openai"] == Catalogue(builtins, path)["openai"]


@given(st.binary(max_size=200))
def test_any_bytes_are_refused_or_taken(raw: bytes) -> None:
    size = 1
    with contextlib.suppress(CatalogueRefused):
        size = read_catalogue(raw, ONE).size
    assert size
