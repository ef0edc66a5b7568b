from __future__ import annotations

import asyncio
import json
import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from tests.cli.conftest import Result, Shell
from tests.services import free_port, redis
from troyproxy.app import sql_store
from troyproxy.catalog.providers import Account
from troyproxy.catalog.secret import Secret
from troyproxy.cli.examination import BUILT_AT, ahead, clock_finding
from troyproxy.proxy.clock import SystemClock
from troyproxy.settings.load import load
from troyproxy.settings.values import Settings


@contextmanager
def _provider(date: str | None = None) -> Iterator[str]:
    """Serve 401 to everything, as a provider without a key does, and yield the base URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            assert self.path == "/v1/models"
            assert "authorization" not in self.headers
            self.send_response_only(401)
            self.send_header("date", date or self.date_time_string())
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *args: object) -> None:
            """Stay silent."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/v1"
        finally:
            server.shutdown()
            thread.join()


def _findings(done: Result) -> dict[str, Any]:
    return {finding["what"]: finding for finding in json.loads(done.out)}


def test_a_fresh_folder_is_well_and_stays_empty(shell: Shell) -> None:
    done = shell("doctor")
    assert done.status == 0
    assert re.search(r"ok +database +\S+troy\.db is not there yet", done.out)
    assert list(shell.folder.iterdir()) == []


def test_an_upgraded_database_is_well(shell: Shell) -> None:
    shell("db", "upgrade")
    found = _findings(shell("doctor", "--json"))
    assert (found["database"]["ok"], found["migrations"]["ok"]) == (True, True)


def test_a_database_behind_names_the_remedy(shell: Shell) -> None:
    shell("db", "current")
    done = shell("doctor", "--json")
    assert _findings(done)["migrations"]["remedy"] == "troyproxy db upgrade"
    assert (done.status, done.err) == (1, "troyproxy: not well: migrations\n")


def test_a_database_that_is_none_fails(shell: Shell) -> None:
    (shell.folder / "data").mkdir()
    (shell.folder / "data" / "troy.db").write_bytes(b"this is no database" * 100)
    done = shell("doctor", "--json")
    assert (done.status, _findings(done)["database"]["ok"]) == (1, False)


def test_a_wrong_configuration_is_a_finding(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TROY_PROT", "1")
    done = shell("doctor", "--json")
    assert (done.status, list(_findings(done))) == (1, ["configuration"])


def test_a_provider_that_answers_anything_is_reachable(shell: Shell) -> None:
    with _provider() as url:
        shell.write("troyproxy.yaml", f"providers: {{local: {{base_url: '{url}', auth: none}}}}\n")
        found = _findings(shell("doctor", "--json"))
    assert found["provider local"]["found"].endswith("answers (HTTP 401)")
    assert found["clock"]["found"] == "agrees with the providers"


def test_a_provider_without_a_key_is_a_finding(shell: Shell) -> None:
    with _provider() as url:
        shell.write("troyproxy.yaml", f"providers: {{local: {{base_url: '{url}'}}}}\n")
        found = _findings(shell("doctor", "--json"))
    assert found["provider local"]["found"].endswith("answers, but there is no key")


def test_a_clock_that_is_off_is_a_finding(shell: Shell) -> None:
    with _provider("Thu, 01 Jan 2099 00:00:00 GMT") as url:
        shell.write("troyproxy.yaml", f"providers: {{local: {{base_url: '{url}', auth: none}}}}\n")
        done = shell("doctor", "--json")
    assert (done.status, _findings(done)["clock"]["ok"]) == (1, False)


def test_a_provider_that_nobody_reaches_fails(shell: Shell) -> None:
    shell.write("troyproxy.yaml", "providers: {local: {base_url: 'http://127.0.0.1:1/v1', auth: none}}\n")
    done = shell("doctor")
    assert done.status == 1
    assert re.search(r"FAILED +provider local +http://127\.0\.0\.1:1/v1: ", done.out)


def test_an_app_of_this_process_needs_no_network(shell: Shell) -> None:
    shell.write("troyproxy.yaml", "providers: {local: {app: 'some.where:app'}}\n")
    assert _findings(shell("doctor", "--json"))["provider local"]["found"] == "app some.where:app in this process"


def test_connections_that_the_secret_key_does_not_open_are_a_finding(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TROY_SECRET_KEY", "0" * 43 + "=")
    shell("db", "upgrade")
    asyncio.run(_store_a_connection(load(os.environ).settings))
    assert "connections" not in _findings(shell("doctor", "--json"))
    monkeypatch.setenv("TROY_SECRET_KEY", "1" * 42 + "0=")
    assert _findings(shell("doctor", "--json"))["connections"]["remedy"] == (
        "set the TROY_SECRET_KEY that encrypted them"
    )


def test_a_secret_key_that_is_none_is_one_finding_among_others(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    shell("db", "upgrade")
    monkeypatch.setenv("TROY_SECRET_KEY", "short")
    found = _findings(shell("doctor", "--json"))
    assert ("is not a key" in str(found["connections"]["found"]), found["clock"]["ok"]) == (True, True)


async def _store_a_connection(settings: Settings) -> None:
    store = sql_store(settings, SystemClock())
    try:
        await store.connections.add(Account(id="x#a", provider="x", name="a", api_key=Secret("a key of somebody")))
    finally:
        await store.stop()


@pytest.mark.parametrize(
    ("now", "offsets", "ok", "found"),
    [
        (BUILT_AT - 1, [], False, "is before 2026"),
        (BUILT_AT, [], True, "is plausible; no provider to compare it with"),
        (BUILT_AT, [1.0, -2.0, 5000.0], True, "agrees with the providers"),
        (BUILT_AT, [120.0], False, "is 120 s behind the providers"),
        (BUILT_AT, [-120.0], False, "is 120 s ahead of the providers"),
    ],
)
def test_the_clock_is_judged_by_the_median_provider(now: float, offsets: list[float], ok: bool, found: str) -> None:
    finding = clock_finding(now, offsets)
    assert (finding.ok, finding.found) == (ok, found)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        (((b"date", b"Thu, 01 Jan 1970 00:01:00 GMT"),), 60.0),
        (((b"date", b"nonsense"),), None),
        ((), None),
    ],
)
def test_the_date_of_an_answer_tells_the_time(headers: tuple[tuple[bytes, bytes], ...], seconds: float | None) -> None:
    assert ahead(headers, 0.0) == seconds


def test_a_redis_that_answers_is_well_and_its_password_is_not_shown(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    with redis(password="hush-hush") as server:
        monkeypatch.setenv("TROY_REDIS_URL", server.url)
        done = shell("doctor", "--json")
    assert _findings(done)["redis"]["ok"]
    assert "hush-hush" not in done.out


def test_a_redis_that_is_not_there_is_told_with_the_remedy(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TROY_REDIS_URL", f"redis://:hush-hush@127.0.0.1:{free_port()}/0")
    done = shell("doctor", "--json")
    found = _findings(done)["redis"]
    assert (done.status, found["ok"], "TROY_REDIS_URL" in found["remedy"]) == (1, False, True)
    assert "hush-hush" not in done.out


def test_without_a_redis_nothing_is_said_of_it(shell: Shell) -> None:
    assert "redis" not in _findings(shell("doctor", "--json"))
