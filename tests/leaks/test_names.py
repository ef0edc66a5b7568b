from __future__ import annotations

import pytest

from troyproxy.leaks.names import begins_name, is_declared, plain, spelling

NAMES = frozenset({"dim_lamp", "tools.read", "Send", "send", "a-b"})


@pytest.mark.parametrize(
    "raw",
    ["dim_lamp", "functions.dim_lamp", "functions.dim_lamp:0", "default_api.dim_lamp", "dim_lamp:", " dim_lamp "],
)
def test_decoration_is_taken_off(raw: str) -> None:
    assert is_declared(raw, NAMES)


@pytest.mark.parametrize("raw", ["dim_lamp.dim_lamp", "DIM-LAMP", "tools.read", "a_b", "send"])
def test_doubling_case_and_dashes_are_forgiven_when_one_name_is_meant(raw: str) -> None:
    assert is_declared(raw, NAMES)


@pytest.mark.parametrize("raw", ["", "dim", "dim_lamps", "SEND", "functions.", ":0"])
def test_another_name_is_not_declared(raw: str) -> None:
    assert not is_declared(raw, NAMES)


def test_a_name_with_a_colon_and_a_word_stays_itself() -> None:
    assert plain("ns:tool") == "ns:tool"


@pytest.mark.parametrize(
    ("raw", "name"),
    [
        ("functions.dim_lamp:0", "dim_lamp"),
        ('"dim_lamp"', "dim_lamp"),
        ("Dim-Lamp", "dim_lamp"),
        ("tools.read", "tools.read"),
        ("dim_lamp<|channel|>commentary", "dim_lamp"),
        ("default_api:dim_lamp", "dim_lamp"),
        ("SEND", None),
        ("other", None),
    ],
)
def test_a_name_is_spelled_as_it_was_declared(raw: str, name: str | None) -> None:
    assert spelling(raw, NAMES) == name


@pytest.mark.parametrize(
    ("raw", "begins"), [("dim", True), ("functions.di", True), ("func", True), ("DIM-", True), ("lamp", False)]
)
def test_a_beginning_of_a_name_is_known(raw: str, begins: bool) -> None:
    assert begins_name(raw, NAMES) is begins
