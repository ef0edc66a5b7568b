"""docs/clients.md: its programs run as they stand against a gateway in demo mode, and print what the page shows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.e2e.gateway import KEY, Gateway, run_gateway
from tests.e2e.node import FOLDER, run_javascript
from tests.e2e.pages import missing_pieces

PAGE: Final = (Path(__file__).parents[2] / "docs" / "clients.md").read_text(encoding="utf-8")
RUN_S: Final = 60.0
PROGRAM: Final = re.compile(
    r"^## (?P<title>[^\n]+)\n(?:(?!^## ).)*?^```(?P<language>python|javascript)\n(?P<code>.*?)^```\n\n"
    r"```text\n(?P<shown>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
PROGRAMS: Final = [match.groupdict() for match in PROGRAM.finditer(PAGE)]


@pytest.fixture(scope="module")
def gateway(folder: Path) -> Iterator[Gateway]:
    with run_gateway(folder, {}, "--demo") as running:
        yield running


def _printed(language: str, code: str, env: dict[str, str], folder: Path) -> str:
    if language == "javascript":
        program = FOLDER / "node_modules" / ".page.mjs"  # below the packages that it imports
        return run_javascript(program, env, code)
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **env},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=RUN_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program["title"])
def test_a_program_of_the_page_prints_what_the_page_shows(gateway: Gateway, program: dict[str, str]) -> None:
    env = {"OPENAI_BASE_URL": gateway.base_url, "OPENAI_API_KEY": KEY}
    printed = _printed(program["language"], program["code"], env, gateway.folder)
    assert missing_pieces(program["shown"], printed) == []


def test_every_program_of_the_page_is_run() -> None:
    assert len(PROGRAMS) == len(re.findall(r"^```(?:python|javascript)$", PAGE, re.MULTILINE))


@pytest.mark.parametrize("path", ["/v1/responses", "/v1/messages", "/v1/chat/ui"])
def test_a_route_that_the_page_says_is_missing_is_missing(gateway: Gateway, path: str) -> None:
    assert gateway.post({"model": "demo"}, path).status == 404
