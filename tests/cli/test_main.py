from __future__ import annotations

from collections.abc import Iterator

import pytest
import typer

from tests.cli.conftest import Shell
from troyproxy.cli.main import app
from troyproxy.version import VERSION


def _commands(command: object, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    children: dict[str, object] = getattr(command, "commands", {})
    for name, child in children.items():
        yield from _commands(child, (*path, name))
    if not children:
        yield path


COMMANDS = list(_commands(typer.main.get_command(app)))


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_has_help_with_an_example(shell: Shell, command: tuple[str, ...]) -> None:
    shown = shell(*command, "--help")
    assert shown.status == 0
    assert "Example:\n" in shown.out
    assert f"troyproxy {' '.join(command)}" in shown.out.split("Example:")[1]


def test_the_version_is_printed(shell: Shell) -> None:
    assert shell("version").out == f"{VERSION}\n"
    assert shell("version", "--json").json() == {"version": VERSION}


@pytest.mark.parametrize(
    "words", [("nonsense",), ("keys", "create"), ("serve", "--port", "70000"), ("version", "--nonsense"), ("keys",), ()]
)
def test_a_usage_error_has_status_2(shell: Shell, words: tuple[str, ...]) -> None:
    assert shell(*words).status == 2


@pytest.mark.parametrize(
    "words",
    [
        ("serve",),
        ("config", "show"),
        ("config", "check"),
        ("db", "current"),
        ("keys", "list"),
        ("combos", "list"),
        ("providers", "list"),
        ("explain", "demo"),
    ],
    ids=" ".join,
)
def test_a_wrong_setting_is_one_line_with_the_nearest_name(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.setenv("TROY_PROT", "1")
    done = shell(*words)
    assert (done.status, done.out) == (1, "")
    assert done.err == "troyproxy: TROY_PROT: is an unknown setting (did you mean TROY_PORT?)\n"


def test_a_config_file_that_is_not_there_is_one_line(shell: Shell) -> None:
    done = shell("combos", "list", "--config", "nowhere.yaml")
    assert done.status == 1
    assert done.err == "troyproxy: nowhere.yaml: the config file cannot be read (No such file or directory)\n"


def test_the_dotenv_file_of_the_folder_is_read(shell: Shell) -> None:
    shell.write(".env", "TROY_PORT=4242\n")
    rows = {row["setting"]: row for row in shell("config", "show", "--json").json()}
    assert (rows["port"]["value"], rows["port"]["origin"]) == ("4242", ".env")
