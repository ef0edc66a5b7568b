"""The rules of the house, as tests: layers, sizes, names, and an import that does nothing."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FILES = sorted(path for folder in ("troyproxy", "tests", "alembic") for path in (ROOT / folder).rglob("*.py"))
PACKAGE = [path for path in FILES if path.is_relative_to(ROOT / "troyproxy")]
DUMPS = {"utils", "util", "helpers", "common", "misc", "types"}
BANNED_CALLS = {"splitlines", "iter_lines"}  # both split on U+2028, which JSON may contain

IMPORT_DOES_NOTHING = """
import sys

def hook(event, args):
    writes = event == "open" and isinstance(args[1], str) and set("wax+") & set(args[1])
    if writes or event.startswith(("socket.", "subprocess.", "os.mkdir", "os.remove", "os.rename", "sqlite3.")):
        if event not in ("socket.__new__", "socket.gethostname"):
            raise RuntimeError(f"import does I/O: {event} {args!r}")

sys.dont_write_bytecode = True
sys.addaudithook(hook)
import threading
before = threading.active_count()
import MODULE
assert threading.active_count() == before, "import starts a thread"
"""


def _id(path: Path) -> str:
    return str(path.relative_to(ROOT))


def _functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def _lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return (function.end_lineno or function.lineno) - function.lineno + 1


def test_the_import_contracts_hold() -> None:
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("path", FILES, ids=_id)
def test_a_file_is_short_and_its_functions_are_shorter(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").split("\n")) <= 301
    assert {f.name: _lines(f) for f in _functions(path) if _lines(f) > 40} == {}


def test_no_module_is_a_dump() -> None:
    assert [_id(path) for path in PACKAGE if path.stem in DUMPS] == []


@pytest.mark.parametrize("path", [path for path in PACKAGE if path.name != "__init__.py"], ids=_id)
def test_a_module_says_what_it_is_for(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize("path", PACKAGE, ids=_id)
def test_a_line_ends_at_cr_and_lf_only(path: Path) -> None:
    tree = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    assert [node.attr for node in tree if isinstance(node, ast.Attribute) and node.attr in BANNED_CALLS] == []


@pytest.mark.parametrize("path", [path for path in FILES if path.name.startswith("test_")], ids=_id)
def test_a_test_asserts_something(path: Path) -> None:
    silent = []
    for function in _functions(path):
        if function.name.startswith("test_"):
            source = ast.dump(function)
            if not any(word in source for word in ("Assert(", "raises", "assert_", "check")):
                silent.append(function.name)
    assert silent == []


@pytest.mark.parametrize("module", ["troyproxy", "troyproxy.app", "troyproxy.cli"])
def test_an_import_does_nothing(module: str) -> None:
    code = IMPORT_DOES_NOTHING.replace("MODULE", module)
    plain = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=plain, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_importing_the_package_loads_nothing_heavy() -> None:
    code = (
        "import sys, troyproxy; print([m for m in ('httpx', 'sqlalchemy', 'starlette', 'typer') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_tree_mirrors_the_package() -> None:
    folders = {path.name for path in (ROOT / "troyproxy").iterdir() if (path / "__init__.py").exists()}
    tested = {path.name for path in (ROOT / "tests").iterdir() if path.is_dir() and any(path.glob("test_*.py"))}
    assert folders - tested == set()
