"""What the pages say can be followed: links, commands, configurations and deployment files, against the program."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
import yaml
from typer.core import TyperGroup

from troyproxy.cli.main import app
from troyproxy.resilience.breaker import diagram
from troyproxy.settings.builtin import load_builtins
from troyproxy.settings.load import read_document
from troyproxy.settings.parsers import PARSERS
from troyproxy.settings.report import Report
from troyproxy.version import VERSION

ROOT = Path(__file__).parent.parent
PAGES = {
    path.relative_to(ROOT).as_posix(): path for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
}
TEXTS = {name: path.read_text(encoding="utf-8") for name, path in PAGES.items()}
DEPLOY = sorted((ROOT / "deploy").rglob("*.y*ml"))
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[[^\]]+\]\(([^)\s]+)\)")
_COMMAND = re.compile(r"(?<![\w=-])troyproxy(?: (?!troyproxy)[a-z][^`]*)?$")
_WORDS = re.compile(r"`((?:troyproxy|\.venv/bin/troyproxy) [^`\n]*)`")


def _fences(language: str) -> Iterator[tuple[str, str]]:
    for name, text in TEXTS.items():
        yield from ((name, code) for kind, code in _FENCE.findall(text) if kind == language)


def _anchors(text: str) -> set[str]:
    """Return the anchors of a page, as the usual renderers make them of its headings."""
    heads = re.findall(r"^#+ (.+)$", _FENCE.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


LINKS = sorted({(name, link) for name, text in TEXTS.items() for link in _LINK.findall(_FENCE.sub("", text))})


@pytest.mark.parametrize(("page", "link"), [pair for pair in LINKS if "://" not in pair[1]])
def test_a_link_leads_somewhere(page: str, link: str) -> None:
    path, _, anchor = link.partition("#")
    target = (PAGES[page].parent / path).resolve() if path else PAGES[page]
    assert target.exists()
    assert not anchor or anchor in _anchors(target.read_text(encoding="utf-8"))


def test_every_page_is_reached_from_the_readme() -> None:
    linked = {(PAGES[page].parent / link.partition("#")[0]).resolve() for page, link in LINKS if "://" not in link}
    assert [name for name, path in PAGES.items() if name != "README.md" and path.resolve() not in linked] == []


# --- commands -------------------------------------------------------------------------------------------------------


def _command_lines() -> Iterator[str]:
    """Yield what the pages tell to type, from code blocks and from running text; a table's `a|b` is no command."""
    for text in TEXTS.values():
        yield from _WORDS.findall(_FENCE.sub("", text))
        for kind, code in _FENCE.findall(text):
            lines = code.replace("\\\n", " ").splitlines() if kind in {"", "sh"} else []
            yield from (found[0] for line in lines if (found := _COMMAND.search(line)))


def _plain(line: str) -> list[str]:
    """Return the words behind the program, with the placeholders of a synopsis filled in and its brackets gone."""
    words = shlex.split(re.sub(r"[\[\]]", "", line), comments=True)
    return [re.sub(r"^[A-Z]+$", "1", word) for word in words[1:]]


COMMANDS = sorted({line.partition("#")[0].strip() for line in _command_lines() if _plain(line) not in ([], ["1"])})


@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_in_the_docs_is_understood(line: str) -> None:
    command, words = typer.main.get_command(app), _plain(line)
    context = typer.Context(command, info_name="troyproxy")
    while isinstance(command, TyperGroup):
        name, found, words = command.resolve_command(context, words)
        assert found is not None
        command, context = found, typer.Context(found, info_name=name, parent=context)
    # Named without arguments, a command is only spoken of.
    assert not words or command.make_context(command.name, words, parent=context.parent).command is command


# --- configurations -------------------------------------------------------------------------------------------------


def _problems(raw: str) -> list[tuple[str, str]]:
    report = Report()
    read_document(raw.encode(), "docs", load_builtins(), report)
    return list(report.problems)


@pytest.mark.parametrize(("page", "code"), list(_fences("yaml")))
def test_a_configuration_in_the_docs_is_valid(page: str, code: str) -> None:
    assert _problems(code) == [], page


def _config_maps() -> list[str]:
    documents = [part for path in DEPLOY for part in yaml.safe_load_all(path.read_text(encoding="utf-8"))]
    return [text for part in documents if part.get("kind") == "ConfigMap" for text in part["data"].values()]


@pytest.mark.parametrize("text", _config_maps())
def test_a_configuration_in_deploy_is_valid(text: str) -> None:
    assert _problems(text) == []


@pytest.mark.parametrize("path", [*PAGES.values(), *(p for p in (ROOT / "deploy").rglob("*") if p.is_file())], ids=str)
def test_a_setting_that_is_named_exists(path: Path) -> None:
    named = set(re.findall(r"\bTROY_([A-Z][A-Z_]*[A-Z])\b(?!\*)", path.read_text(encoding="utf-8")))
    assert named - {name.upper() for name in PARSERS} - {"X", "BREAKER"} == set()


# --- drawn from the code ----------------------------------------------------------------------------------------------


def test_the_diagram_of_the_circuit_is_drawn_from_its_table() -> None:
    drawn = re.search(
        r"<!-- breaker -->\n```mermaid\n(.*?)```\n<!-- /breaker -->", TEXTS["docs/resilience.md"], re.DOTALL
    )
    assert drawn is not None
    assert drawn[1] == diagram()


def test_the_changelog_opens_with_the_version_of_the_program() -> None:
    first = re.search(r"^## \[?([0-9.]+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert first is not None
    assert first[1] == VERSION
