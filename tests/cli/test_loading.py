"""What a start does not load: each of these costs time and memory, and most gateways never use it."""

from __future__ import annotations

import subprocess
import sys

import pytest

UNUSED = (
    "alembic",
    "aiohttp",
    "cryptography",
    "httpx",
    "opentelemetry",
    "redis",
    "rich",
    "sqlalchemy.dialects.postgresql",
)
ASKED = "import sys, troyproxy.cli.main, troyproxy.cli.worker; print(*sys.modules)"


@pytest.fixture(scope="module")
def loaded() -> set[str]:
    done = subprocess.run([sys.executable, "-c", ASKED], check=True, capture_output=True, text=True, timeout=60)
    return set(done.stdout.split())


@pytest.mark.parametrize("name", UNUSED)
def test_the_command_line_and_a_worker_do_not_load(name: str, loaded: set[str]) -> None:
    assert "troyproxy.app" in loaded
    assert name not in loaded
