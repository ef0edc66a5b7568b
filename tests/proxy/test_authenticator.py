from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from tests.fakes import FakeClock
from tests.proxy.door import OWN, STORED, WRONG, Desk, key_of, scope_of
from troyproxy.catalog.keys import Key
from troyproxy.errors import ConfigError, InvalidAPIKey, StoreUnavailable
from troyproxy.proxy import authenticator
from troyproxy.proxy.authenticator import (
    AGAIN_S,
    KNOWN_S,
    UNKNOWN_S,
    FixedKeys,
    presented_key,
)

pytestmark = pytest.mark.anyio


@pytest.fixture
def desk(clock: FakeClock) -> Desk:
    return Desk(clock)


@pytest.mark.parametrize(
    ("headers", "key"),
    [
        ({"authorization": "Bearer abc"}, b"abc"),
        ({"authorization": "bEARER  abc "}, b"abc"),
        ({"x_api_key": " abc "}, b"abc"),
        ({"authorization": "Bearer abc", "x_api_key": "def"}, b"abc"),
        ({"authorization": "Basic abc", "x_api_key": "def"}, None),
        ({"authorization": "Bearer "}, None),
        ({"authorization": ""}, None),
        ({"x_api_key": ""}, None),
        ({}, None),
    ],
)
def test_authorization_decides_alone(headers: dict[str, str], key: bytes | None) -> None:
    assert presented_key(tuple(scope_of(**headers)["headers"])) == key


async def test_a_key_of_the_file_needs_no_database(desk: Desk) -> None:
    assert (await desk.name(OWN), desk.keys.lookups) == ("own", 0)


async def test_a_key_of_the_database_is_looked_up_once(desk: Desk) -> None:
    assert ([await desk.name(STORED) for _ in range(3)], desk.keys.lookups) == (["stored"] * 3, 1)


async def test_it_is_looked_up_again_when_the_cache_is_old_or_dropped(desk: Desk) -> None:
    await desk.name(STORED)
    desk.clock.move(KNOWN_S + 1)
    await desk.name(STORED)
    desk.door.forget()
    await desk.name(STORED)
    assert desk.keys.lookups == 3


@pytest.mark.parametrize(
    "secret", ["", "short", "x" * 600, "not of the generated shape", "ключ-ключ-ключ", b"\xff" * 40]
)
async def test_a_malformed_key_is_no_database_work(desk: Desk, secret: str | bytes) -> None:
    assert (await desk.refuses(secret), desk.keys.lookups) == (True, 0)


async def test_a_wrong_key_is_remembered_for_a_moment(desk: Desk) -> None:
    for _ in range(3):
        await desk.refuses(WRONG)
    asked = desk.keys.lookups
    desk.clock.move(UNKNOWN_S + 1)
    await desk.refuses(WRONG)
    assert (asked, desk.keys.lookups) == (1, 2)


async def test_no_key_is_refused(desk: Desk) -> None:
    with pytest.raises(InvalidAPIKey):
        await desk.door.authenticate(scope_of())


async def test_a_revoked_key_is_refused_once_the_caches_are_dropped(desk: Desk) -> None:
    await desk.name(STORED)
    await desk.keys.revoke("stored", at=desk.clock.now())
    desk.door.forget()
    assert await desk.refuses(STORED)


async def test_an_expired_key_is_refused_although_it_is_cached(desk: Desk) -> None:
    desk.keys.held["stored"] = replace(desk.keys.held["stored"], expires_at=desk.clock.now() + 10)
    await desk.name(STORED)
    desk.clock.move(10)
    assert await desk.refuses(STORED)


async def test_a_known_key_goes_on_while_the_database_is_down(desk: Desk) -> None:
    await desk.name(STORED)
    desk.keys.down = True
    desk.clock.move(10 * KNOWN_S)
    assert [await desk.name(STORED) for _ in range(3)] == ["stored"] * 3


async def test_a_known_key_is_asked_for_once_in_a_while_during_an_outage(desk: Desk) -> None:
    await desk.name(STORED)
    desk.keys.down = True
    desk.clock.move(KNOWN_S)
    for _ in range(3):
        await desk.name(STORED)
    asked = desk.keys.lookups
    desk.clock.move(AGAIN_S)
    await desk.name(STORED)
    assert (asked, desk.keys.lookups) == (2, 3)


async def test_a_database_that_hangs_delays_one_request_of_a_known_key_and_not_for_long(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def hang(digest: bytes) -> Key | None:
        await asyncio.Event().wait()
        raise AssertionError(digest)

    await desk.name(STORED)
    desk.clock.move(KNOWN_S)
    monkeypatch.setattr(authenticator, "LOOK_S", 0.0)
    monkeypatch.setattr(desk.keys, "find", hang)
    assert [await desk.name(STORED) for _ in range(2)] == ["stored"] * 2


async def test_a_key_revoked_during_an_outage_is_refused_after_it(desk: Desk) -> None:
    await desk.name(STORED)
    desk.keys.down = True
    desk.clock.move(KNOWN_S)
    await desk.name(STORED)
    await desk.keys.revoke("stored", at=desk.clock.now())
    desk.keys.down = False
    desk.clock.move(AGAIN_S)
    assert await desk.refuses(STORED)


async def test_a_known_key_that_is_gone_after_an_outage_is_refused(desk: Desk) -> None:
    await desk.name(STORED)
    desk.clock.move(KNOWN_S)
    desk.keys.held.clear()
    assert await desk.refuses(STORED)


async def test_a_key_never_seen_is_neither_let_in_nor_called_wrong_while_the_database_is_down(desk: Desk) -> None:
    desk.keys.down = True
    for secret in (STORED, WRONG):
        with pytest.raises(StoreUnavailable):
            await desk.name(secret)
    desk.keys.down = False
    assert await desk.name(STORED) == "stored"


async def test_what_was_read_before_a_revocation_is_not_remembered_after_it(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    find = desk.keys.find

    async def overtaken(digest: bytes) -> Key | None:
        key = await find(digest)
        await desk.keys.revoke("stored", at=desk.clock.now())
        desk.door.forget()
        return key

    monkeypatch.setattr(desk.keys, "find", overtaken)
    await desk.name(STORED)
    monkeypatch.setattr(desk.keys, "find", find)
    assert await desk.refuses(STORED)


async def test_a_guard_has_keys_of_its_own() -> None:
    door = FixedKeys({"ci": "sixteen bytes and more"})
    key = await door.authenticate(scope_of(x_api_key="sixteen bytes and more"))
    assert key is not None
    assert key.name == "ci"


@pytest.mark.parametrize("headers", [{}, {"x_api_key": "another key altogether"}])
async def test_a_guard_refuses_others(headers: dict[str, str]) -> None:
    with pytest.raises(InvalidAPIKey):
        await FixedKeys({"ci": "sixteen bytes and more"}).authenticate(scope_of(**headers))


def test_a_guards_key_must_not_be_guessable() -> None:
    with pytest.raises(ConfigError, match="ci"):
        FixedKeys({"ci": "short"})


async def test_an_old_secret_works_until_its_grace_is_over_although_it_is_cached(desk: Desk) -> None:
    rotated = replace(
        key_of("stored", WRONG), previous_digest=key_of("stored", STORED).digest, previous_until=desk.clock.now() + 10
    )
    desk.keys.held["stored"] = rotated
    assert (await desk.name(STORED), await desk.name(WRONG)) == ("stored", "stored")
    desk.clock.move(10)
    assert await desk.refuses(STORED)
    assert (await desk.name(WRONG), desk.keys.lookups) == ("stored", 2)
