"""Client keys made, revoked and rotated while two gateway processes serve on one database."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.e2e.gateway import CHAT, ROOT, Gateway, chat, run_gateway
from tests.e2e.until import until
from tests.services import postgres

SOON_S: Final = 5.0
"""A second is promised; a machine that is busy with other tests may need more."""
SECRET_KEY: Final = "c2VjcmV0LWtleS1vZi10aGUtdGVzdHMtMzItYnl0ZXM="


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if request.param == "sqlite":
        yield f"sqlite+aiosqlite:///{tmp_path_factory.mktemp('shared')}/troy.db"
        return
    with postgres() as server:
        server.sql("CREATE DATABASE troy")
        url = server.url("troy")
        command = [sys.executable, "-m", "troyproxy", "db", "upgrade"]
        env = {"TROY_DATABASE_URL": url, "TROY_SECRET_KEY": SECRET_KEY, "PYTHONPATH": str(ROOT)}
        subprocess.run(command, cwd=ROOT, env=env, check=True, capture_output=True, timeout=60)
        yield url


def _instance(folder: Path, database: str) -> Any:  # noqa: ANN401 - as `run_gateway`
    return run_gateway(folder, {}, "--demo", TROY_DATABASE_URL=database, TROY_SECRET_KEY=SECRET_KEY)


@pytest.fixture(scope="module")
def one(database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    with _instance(tmp_path_factory.mktemp("one"), database) as gateway:
        yield gateway


@pytest.fixture(scope="module")
def other(one: Gateway, database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    del one  # it migrates a SQLite file
    with _instance(tmp_path_factory.mktemp("other"), database) as gateway:
        yield gateway


def make(gateway: Gateway, name: str, **fields: object) -> dict[str, Any]:
    """Make a key through the admin API."""
    answer = gateway.admin("POST", "/api/keys", {"name": name, **fields})
    assert answer.status == 201, answer.body
    found: dict[str, Any] = answer.json()
    return found


def opens(gateway: Gateway, secret: str, model: str = "demo/ok") -> int:
    """Return the status of a chat request with *secret*."""
    headers = [("authorization", f"Bearer {secret}"), ("content-type", "application/json")]
    return gateway.whole("POST", CHAT, json.dumps(chat(model)).encode(), headers).status


def test_a_new_key_works_at_once_where_it_was_made_and_soon_elsewhere(one: Gateway, other: Gateway) -> None:
    key = make(one, "fresh")
    assert opens(one, key["key"]) == 200
    until(lambda: opens(other, key["key"]) == 200, within_s=SOON_S)


def test_a_revoked_key_fails_at_once_where_it_was_revoked_and_soon_elsewhere(one: Gateway, other: Gateway) -> None:
    key = make(one, "ending")
    until(lambda: opens(other, key["key"]) == 200, within_s=SOON_S)
    assert opens(one, key["key"]) == 200
    assert one.admin("POST", f"/api/keys/{key['id']}/revoke").status == 200
    assert opens(one, key["key"]) == 401
    until(lambda: opens(other, key["key"]) == 401, within_s=SOON_S)


def test_a_rotated_key_works_by_its_new_secret_and_no_longer_by_the_old(one: Gateway, other: Gateway) -> None:
    key = make(one, "turning")
    until(lambda: opens(other, key["key"]) == 200, within_s=SOON_S)
    rotated = one.admin("POST", "/api/keys/turning/rotate", {}).json()
    assert (rotated["id"], opens(one, key["key"]), opens(one, rotated["key"])) == (key["id"], 401, 200)
    until(lambda: opens(other, key["key"]) == 401, within_s=SOON_S)
    assert opens(other, rotated["key"]) == 200


def test_with_a_grace_both_secrets_work_everywhere(one: Gateway, other: Gateway) -> None:
    key = make(one, "overlapping")
    rotated = one.admin("POST", "/api/keys/overlapping/rotate", {"grace_s": 600}).json()
    secrets = (key["key"], rotated["key"])
    assert [opens(one, secret) for secret in secrets] == [200, 200]
    until(lambda: {opens(other, secret) for secret in secrets} == {200}, within_s=SOON_S)


def test_a_narrowed_key_is_narrow_everywhere(one: Gateway, other: Gateway) -> None:
    key = make(one, "narrowed")
    until(lambda: opens(other, key["key"]) == 200, within_s=SOON_S)
    one.admin("PATCH", "/api/keys/narrowed", {"models": ["demo/chat"]})
    assert opens(one, key["key"]) == 403
    until(lambda: opens(other, key["key"]) == 403, within_s=SOON_S)
    assert opens(other, key["key"], "demo/chat") == 200


def test_no_secret_is_in_a_log(one: Gateway, other: Gateway) -> None:
    key = make(one, "quiet")
    opens(one, key["key"])
    until(lambda: opens(other, key["key"]) == 200, within_s=SOON_S)
    for gateway in (one, other):
        assert key["key"].removeprefix("sk-troy-") not in gateway.output()


def test_an_override_of_a_model_is_in_force_at_once_and_soon_elsewhere(one: Gateway, other: Gateway) -> None:
    answer = one.admin("PUT", "/api/models/demo/ok", {"context": 1234})
    assert answer.status == 201

    def seen(gateway: Gateway) -> bool:
        return bool(gateway.admin("GET", "/api/models/demo/ok").json()["effective"]["context"] == 1234)

    assert seen(one)
    until(lambda: seen(other), within_s=SOON_S)
