"""The first minute: an empty folder, no provider key, and the printed line works as it stands."""

from __future__ import annotations

import re
import shutil
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.client import CLIENT_S
from tests.e2e.gateway import Gateway, running
from tests.e2e.until import until


@pytest.fixture(scope="module")
def gateway(folder: Path) -> Iterator[Gateway]:
    fresh = Gateway(folder)
    with running(fresh):
        yield fresh


def printed(gateway: Gateway) -> str:
    """Return the curl line."""
    found = until(lambda: re.search(r"curl -i? ?.*http://127\.0\.0\.1:\d+/v1/.*", gateway.output()))
    assert found is not None
    return found[0]


def run(line: str, folder: Path) -> str:
    """Run a shell line and return what it prints."""
    if shutil.which("curl") is None:
        pytest.skip("needs curl (Debian package curl)")
    done = subprocess.run(
        ["/bin/sh", "-c", line], cwd=folder, capture_output=True, text=True, timeout=CLIENT_S, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_printed_line_answers_through_the_demo_combo_and_shows_the_failover(gateway: Gateway) -> None:
    answer = run(printed(gateway), gateway.folder)
    assert re.match(r"HTTP/1\.1 200 ", answer)
    assert re.search(r"(?mi)^x-troy-combo: demo\r?$", answer)
    assert '"choices"' in answer
    trail = re.search(r"(?mi)^x-troy-trail: (.*?)\r?$", answer)
    assert trail is not None
    assert trail[1] == "demo/fail-429-retry-1#demo-keyless=rate,demo/chat#demo-keyless=ok"
    assert re.search(r"(?mi)^x-troy-attempts: 2\r?$", answer)


def test_the_generated_secrets_are_files_that_only_their_owner_reads(gateway: Gateway) -> None:
    data = gateway.folder / "data"
    assert stat.S_IMODE(data.stat().st_mode) == 0o700
    modes = {name: stat.S_IMODE((data / name).stat().st_mode) for name in ("secret.key", "admin.token", "demo.key")}
    assert set(modes.values()) == {0o600}


def test_no_secret_is_in_the_output_when_it_is_no_terminal(gateway: Gateway) -> None:
    text = gateway.output()
    for name in ("secret.key", "admin.token", "demo.key"):
        assert gateway.folder.joinpath("data", name).read_text(encoding="ascii").strip() not in text
