"""docs/api.md is a tour that works: every curl is run, top to bottom, and every route has one."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.e2e.gateway import ADMIN, Gateway, run_gateway
from tests.e2e.pages import Answer, Block, differences, missing_pieces, run_session, shell_blocks
from troyproxy.api.routing_table import RoutingTable
from troyproxy.app import create_app
from troyproxy.settings.values import Settings

README: Final = Path(__file__).parents[2] / "README.md"
PAGE: Final = README.parent / "docs" / "api.md"
BLOCKS: Final = shell_blocks(PAGE.read_text(encoding="utf-8"))
TABLE: Final = create_app(Settings()).table
CALLS: Final = sorted({call for block in BLOCKS for call in block.calls})


@pytest.fixture(scope="module")
def gateway(folder: Path) -> Iterator[Gateway]:
    with run_gateway(folder, {}, "--demo") as running:
        yield running


@pytest.fixture(scope="module")
def answers(gateway: Gateway) -> list[Answer]:
    if shutil.which("curl") is None:
        pytest.skip("needs curl (Debian package curl)")
    key = (gateway.folder / "data" / "demo.key").read_text(encoding="ascii").strip()
    return run_session(
        BLOCKS, gateway.folder, {"TROY": gateway.base_url.removesuffix("/v1"), "KEY": key, "ADMIN": ADMIN}
    )


def _id(block: Block) -> str:
    return " ".join(block.calls[-1])


@pytest.mark.parametrize("at", range(len(BLOCKS)), ids=[f"{at}-{_id(block)}" for at, block in enumerate(BLOCKS)])
def test_a_curl_answers_as_the_page_says(gateway: Gateway, answers: list[Answer], at: int) -> None:
    block, answer = BLOCKS[at], answers[at]
    assert answer.status == block.status, answer.body or (gateway.folder / "answers" / "errors").read_text()
    if block.kind == "json":
        assert differences(json.loads(block.shown), json.loads(answer.body)) == []
    if block.kind == "text":
        assert missing_pieces(block.shown, answer.body) == []


def _served_by(method: str, path: str) -> tuple[str, str] | None:
    """Return the route that serves a call: an exact path, else the first template, as the table looks for it."""
    found = [route for route in TABLE.routes if RoutingTable([route]).find(method, path)[0] is not None]
    first = min(found, key=lambda route: "{" in route.path, default=None)
    return None if first is None else (first.method, first.path)


@pytest.mark.parametrize(("method", "path"), CALLS)
def test_a_curl_names_a_route_that_exists(method: str, path: str) -> None:
    assert _served_by(method, path) is not None


@pytest.mark.parametrize(
    ("method", "path"), sorted({(route.method, route.path) for route in TABLE.routes if route.method != "OPTIONS"})
)
def test_every_route_has_a_curl(method: str, path: str) -> None:
    assert (method, path) in {_served_by(*call) for call in CALLS}, "docs/api.md has no curl for it"


def _in_short(path: str) -> str:
    """Return a route as the README lists it: a rest of the path as ``*``, what the admin API has below an entry not."""
    if path.startswith("/api/"):
        return path.partition("/{id")[0]
    return path.replace("{path:path}", "*").replace(":path", "")


def test_the_readme_lists_the_routes_that_there_are() -> None:
    listed = re.search(r"<!-- routes -->\n(.*?)<!-- /routes -->", README.read_text(encoding="utf-8"), re.DOTALL)
    assert listed is not None
    assert set(re.findall(r"`(/[^`]*)`", listed[1])) == {_in_short(route.path) for route in TABLE.routes}
