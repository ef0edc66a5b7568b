"""What exists is documented, and what is documented exists: the README's tables against the code.

``python -m tests.test_completeness`` prints the tables of settings and metrics, to paste them in.
"""

from __future__ import annotations

import ast
import dataclasses
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

from troyproxy import errors
from troyproxy.catalog.combos import STRATEGY_NAMES
from troyproxy.cli.main import app
from troyproxy.resilience.classes import ErrorClass
from troyproxy.routing.eligibility import SkipReason
from troyproxy.routing.members import AUTO
from troyproxy.routing.strategies import STRATEGIES
from troyproxy.settings.parsers import PARSERS
from troyproxy.settings.values import Settings
from troyproxy.telemetry.declared import DECLARED

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
DEFAULTS = {
    "config": "`troyproxy.yaml` if present",
    "secret_key": "generated for SQLite, else required",
    "admin_token": "generated",
    "log": "`info`, human on a terminal, else JSON",
}


def _page(name: str) -> str:
    return (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")


def _section(name: str) -> str:
    found = re.search(rf"<!-- {name} -->\n(.*?)<!-- /{name} -->", README, re.DOTALL)
    assert found, f"README.md has no section {name}"
    return found[1]


def _rows(name: str) -> list[list[str]]:
    lines = [line.strip().strip("|") for line in _section(name).split("\n") if line.startswith("|")]
    return [[cell.strip() for cell in line.split(" | ")] for line in lines[2:]]


def _shown(name: str, value: object) -> str:
    if name in DEFAULTS:
        return DEFAULTS[name]
    if isinstance(value, bool):
        return "`on`" if value else "`off`"
    if isinstance(value, tuple):
        value = ",".join(value)
    if isinstance(value, float):
        value = f"{value:g}"
    return "unset" if value is None or value == "" else f"`{value}`"


def _settings_table() -> list[list[str]]:
    default = {f.name: f.default for f in dataclasses.fields(Settings)}
    return [[f"`TROY_{name.upper()}`", _shown(name, default[name]), rule.doc] for name, rule in PARSERS.items()]


def _metrics_table() -> list[list[str]]:
    return [[f"`{name}`", row.kind, ", ".join(row.labels) or "none", row.help] for name, row in DECLARED.items()]


def _tree(root: type[errors.TroyError]) -> set[type[errors.TroyError]]:
    """Return the errors of `troyproxy.errors`; what the command line adds for itself reaches no client."""
    children = (child for child in root.__subclasses__() if child.__module__ == errors.__name__)
    return {root}.union(*(_tree(child) for child in children))


ERRORS = sorted(_tree(errors.TroyError), key=lambda error: error.__name__)


def test_the_settings_table_is_that_of_the_code() -> None:
    assert _rows("settings") == _settings_table()


def test_the_error_table_is_the_error_tree() -> None:
    tree = _tree(errors.TroyError) - {errors.ConfigError}
    expected = sorted({(str(error.status), f"`{error.code}`") for error in tree})
    assert sorted((row[0], row[1]) for row in _rows("errors")) == expected


@pytest.mark.parametrize("error", ERRORS)
def test_the_tree_in_the_docstring_names_every_error(error: type[errors.TroyError]) -> None:
    assert error.__name__ in (errors.__doc__ or "")


def test_every_dependency_has_its_sentence() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    declared = [
        *project["dependencies"],
        *(line for extra in project["optional-dependencies"].values() for line in extra),
    ]
    names = {re.split(r"[\[<>=~!; ]", line)[0].lower() for line in declared}
    assert sorted(row[0].lower() for row in _rows("dependencies") if row[1]) == sorted(names)


def test_the_strategy_table_is_that_of_the_code() -> None:
    table = README.split("| strategy | order |")[1].split("\n\n")[0]
    named = re.findall(r"^\| `([a-z0-9-]+)` \| ", table, re.MULTILINE)
    assert sorted(named) == sorted(STRATEGY_NAMES) == sorted([*STRATEGIES, AUTO])


@pytest.mark.parametrize("name", STRATEGY_NAMES)
def test_a_strategy_is_explained(name: str) -> None:
    assert f"`{name}`" in _page("strategies")


def _header_names() -> Iterator[str]:
    """Yield every header name of ours that stands in the program as a value."""
    for path in (ROOT / "troyproxy").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes):
                text = node.value if isinstance(node.value, str) else node.value.decode("latin-1")
                if re.fullmatch(r"x-troy(-[a-z]+)+|x-should-retry", text):
                    yield text


def test_the_header_table_is_that_of_the_code() -> None:
    assert sorted(row[0].strip("`") for row in _rows("headers")) == sorted(set(_header_names()))


def test_every_reason_to_skip_is_documented() -> None:
    assert [reason for reason in SkipReason if f"`{reason}`" not in _page("routing")] == []


def test_every_error_class_is_documented() -> None:
    rows = re.findall(r"^\| `([a-z]+)` \| ", _page("resilience"), re.MULTILINE)
    assert sorted(rows) == sorted(ErrorClass)


def test_the_metrics_table_is_what_telemetry_declares() -> None:
    assert _rows("metrics") == _metrics_table()


def _commands(command: object, path: str) -> list[str]:
    children: dict[str, object] = getattr(command, "commands", {})
    return [found for name, child in children.items() for found in _commands(child, f"{path} {name}")] or [path]


def test_the_command_table_is_that_of_the_command_line() -> None:
    found = _commands(typer.main.get_command(app), "troyproxy")
    assert sorted(row[0].strip("`") for row in _rows("commands")) == sorted(found)


@pytest.mark.parametrize("link", sorted(set(re.findall(r"\]\(([^)#:]+)\)", README))))
def test_a_link_leads_somewhere(link: str) -> None:
    assert (ROOT / link).exists()


@pytest.mark.parametrize("path", sorted(set(re.findall(r"`((?:troyproxy|deploy|alembic)/[\w/.]*)`", README))))
def test_a_path_in_the_module_map_exists(path: str) -> None:
    assert (ROOT / path).exists()


def _markdown(head: str, rows: list[list[str]]) -> str:
    columns = head.count("|") - 1
    return "\n".join([head, "|" + "---|" * columns, *(f"| {' | '.join(row)} |" for row in rows)]) + "\n"


if __name__ == "__main__":
    sys.stdout.write(_markdown("| variable | default | meaning |", _settings_table()) + "\n")
    sys.stdout.write(_markdown("| metric | type | labels | meaning |", _metrics_table()))
