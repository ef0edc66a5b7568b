"""What is declared is locked: every requirement of pyproject.toml, at a version it allows, with hashes."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
LOCKS = ("requirements.lock", "requirements-dev.lock")
PIN = re.compile(r"^([a-z0-9._-]+)==([^ ;]+)(?: ;[^\\]*)? \\$", re.MULTILINE)


def _text(lock: str) -> str:
    return (ROOT / lock).read_text(encoding="utf-8")


def _pins(lock: str) -> dict[str, str]:
    return {canonicalize_name(name): version for name, version in PIN.findall(_text(lock))}


def _declared(*, dev: bool) -> list[str]:
    if dev:
        return list(PROJECT["dependency-groups"]["dev"])
    extras = PROJECT["project"]["optional-dependencies"].values()
    return [*PROJECT["project"]["dependencies"], *PROJECT["build-system"]["requires"], *(r for e in extras for r in e)]


def _imported(folder: str) -> Iterator[str]:
    for path in (ROOT / folder).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Import):
                yield from (alias.name.partition(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                yield (node.module or "").partition(".")[0]


@pytest.mark.parametrize(
    ("folder", "locks"),
    [("troyproxy", LOCKS[:1]), ("alembic", LOCKS[:1]), ("tests", LOCKS)],
    ids=str,
)
def test_every_library_that_is_imported_is_locked(folder: str, locks: tuple[str, ...]) -> None:
    pins = {name for lock in locks for name in _pins(lock)}
    known = packages_distributions()
    outside = set(_imported(folder)) - sys.stdlib_module_names - {"troyproxy", "tests"}
    assert {name for name in outside if pins.isdisjoint(map(canonicalize_name, known.get(name, ())))} == set()


@pytest.mark.parametrize(("lock", "dev"), [(LOCKS[0], False), (LOCKS[1], True)])
def test_every_requirement_is_locked_at_a_version_it_allows(lock: str, dev: bool) -> None:
    pins = _pins(lock)
    wanted = [Requirement(line) for line in _declared(dev=dev)]
    drift = [
        str(r) for r in wanted if not r.specifier.contains(pins.get(canonicalize_name(r.name), ""), prereleases=True)
    ]
    assert drift == [], "run `make lock`"


def test_the_two_locks_agree() -> None:
    runtime, dev = (_pins(lock) for lock in LOCKS)
    assert {name for name in runtime.keys() & dev.keys() if runtime[name] != dev[name]} == set()


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_names_no_index_host_or_path(lock: str) -> None:
    lines = [line for line in _text(lock).split("\n") if not line.lstrip().startswith("#")]
    assert [line for line in lines if re.search(r"://|file:|^\s*-(?!-hash=)|^\S*/| @ ", line)] == []


@pytest.mark.parametrize("lock", LOCKS)
def test_every_pin_has_hashes(lock: str) -> None:
    assert len(_pins(lock)) == len(re.findall(r"^[a-z0-9]", _text(lock), re.MULTILINE))
    assert _text(lock).count("--hash=sha256:") > len(_pins(lock))
