"""The rules of the house, as tests: layers, sizes, names, and an import that does nothing."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
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


Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Facts:
    """What the rules ask of one file. *long*, *silent*: functions that are too long, tests that assert nothing."""

    lines: int
    says: str | None
    banned: frozenset[str]
    long: tuple[str, ...]
    silent: tuple[str, ...]


def _lines(function: Function) -> int:
    return (function.end_lineno or function.lineno) - function.lineno + 1


def _asserts(function: Function) -> bool:
    source = ast.dump(function)
    return any(word in source for word in ("Assert(", "raises", "assert_", "check"))


@cache
def facts(path: Path) -> Facts:
    """Read *path* once for all rules."""
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    nodes = list(ast.walk(tree))
    functions = [node for node in nodes if isinstance(node, Function)]
    return Facts(
        text.count("\n") + 1,
        ast.get_docstring(tree),
        frozenset(node.attr for node in nodes if isinstance(node, ast.Attribute)) & BANNED_CALLS,
        tuple(f"{f.name}: {_lines(f)} lines" for f in functions if _lines(f) > 40),
        tuple(f.name for f in functions if f.name.startswith("test_") and not _asserts(f)),
    )


def test_the_import_contracts_hold() -> None:
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_file_is_short() -> None:
    assert {_id(path): facts(path).lines for path in FILES if facts(path).lines > 301} == {}


def test_a_function_is_shorter() -> None:
    assert {_id(path): facts(path).long for path in FILES if facts(path).long} == {}


def test_no_module_is_a_dump() -> None:
    assert [_id(path) for path in PACKAGE if path.stem in DUMPS] == []


def test_a_module_says_what_it_is_for() -> None:
    assert [_id(path) for path in PACKAGE if path.name != "__init__.py" and not facts(path).says] == []


def test_a_line_ends_at_cr_and_lf_only() -> None:
    assert {_id(path): facts(path).banned for path in PACKAGE if facts(path).banned} == {}


def test_a_test_asserts_something() -> None:
    tests = [path for path in FILES if path.name.startswith("test_")]
    assert {_id(path): facts(path).silent for path in tests if facts(path).silent} == {}


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
