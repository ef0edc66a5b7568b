"""The admin API of a real process under schemathesis, from its own OpenAPI document: every check but those that
``schemathesis.toml`` switches off with a reason. The seed is fixed and the number of cases is, too, so two runs agree.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.e2e.gateway import ADMIN, Gateway, chat, run_gateway

SETTINGS: Final = Path(__file__).with_name("schemathesis.toml")
LONGEST_S: Final = 160
"""Some 40 s; a machine that is busy with other things needs longer, but a test that hangs is ended after 180 s."""
CONFIG: Final = {
    "providers": {
        "alpha": {
            "base_url": "http://127.0.0.1:9/v1",
            "accounts": [{"name": "a", "api_key": "secret-of-alpha"}],
            "models": {"m1": {}},
        }
    },
    "combos": {"filed": {"members": ["alpha/m1"]}},
}


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    with run_gateway(tmp_path_factory.mktemp("schemathesis"), CONFIG, "--demo") as running:
        _fill(running)
        yield running


def _fill(gateway: Gateway) -> None:
    """Leave something of everything, for the tester to find."""
    for path, body in (
        ("/api/combos", {"name": "stored", "members": ["demo/ok", "alpha/m1"]}),
        ("/api/providers", {"id": "own", "base_url": "http://127.0.0.1:9/v1", "models": {"m2": {}}}),
        ("/api/connections", {"provider": "own", "name": "first", "api_key": "secret-of-own"}),
        ("/api/keys", {"name": "laptop"}),
        ("/api/models", {"id": "alpha/m1", "tools": True}),
    ):
        made = gateway.admin("POST", path, body)
        assert made.status == 201, made.body
    gateway.post(chat("demo/ok"))
    gateway.post(chat("demo/fail-500"))


@pytest.fixture(scope="module")
def run(gateway: Gateway) -> subprocess.CompletedProcess[str]:
    """The one run that every test here looks at."""
    command = [sys.executable, "-m", "schemathesis.cli", "--config-file", str(SETTINGS), "run"]
    where = [f"http://127.0.0.1:{gateway.port}/api/openapi.json", "-H", f"authorization: Bearer {ADMIN}"]
    return subprocess.run(
        [*command, *where, "--seed", "20260101"],
        cwd=gateway.folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=LONGEST_S,
        check=False,
    )


def test_every_answer_is_one_that_the_document_names(run: subprocess.CompletedProcess[str]) -> None:
    assert run.returncode == 0, run.stdout[-20_000:] + run.stderr[-2_000:]


def test_every_operation_was_tried(run: subprocess.CompletedProcess[str], gateway: Gateway) -> None:
    paths = gateway.admin("GET", "/api/openapi.json").json()["paths"]
    there = sum(len(methods) for methods in paths.values()) - 1  # the document's own operation is left out
    tested = re.search(r"Tested: (\d+)", run.stdout)
    assert tested is not None, run.stdout[-2_000:]
    assert (int(tested[1]), there > 40) == (there, True)


def test_the_tester_was_never_shut_out(run: subprocess.CompletedProcess[str], gateway: Gateway) -> None:
    assert (gateway.admin("GET", "/api/status").status, "429" in run.stdout) == (200, False)


def test_the_process_came_through_without_a_bug(run: subprocess.CompletedProcess[str], gateway: Gateway) -> None:
    del run
    assert "Traceback" not in gateway.output()
