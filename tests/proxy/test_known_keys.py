"""Keys that were let in a moment ago are let in at once, as long as nothing can have changed about them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.fakes import FakeClock
from tests.proxy.door import OWN, STORED, WRONG, Desk, key_of, scope_of
from troyproxy.catalog.snapshot import build
from troyproxy.proxy import authenticator
from troyproxy.proxy.authenticator import KNOWN_S, digest_of
from troyproxy.proxy.call import Call, raw_headers

pytestmark = pytest.mark.anyio


@pytest.fixture
def desk(clock: FakeClock) -> Desk:
    return Desk(clock)


def known(desk: Desk, secret: str | None) -> str | None:
    """Return the name of the key that *secret* is known to be at once."""
    headers = raw_headers(scope_of() if secret is None else scope_of(authorization=f"Bearer {secret}"))
    call = Call("r", desk.clock.now(), 0.0, "/", headers=headers, snapshot=desk.snapshot)
    key = desk.door.known(call)
    return None if key is None else key.name


@pytest.mark.parametrize("secret", [OWN, STORED])
async def test_a_key_is_known_after_it_was_let_in(desk: Desk, secret: str) -> None:
    before, name = known(desk, secret), await desk.name(secret)
    assert (before, known(desk, secret)) == (None, name)


@pytest.mark.parametrize("secret", [None, "", "x" * 600, WRONG])
async def test_nobody_else_is_known(desk: Desk, secret: str | None) -> None:
    await desk.name(STORED)
    assert known(desk, secret) is None


async def test_a_wrong_key_is_not_known_after_it_was_refused(desk: Desk) -> None:
    await desk.refuses(WRONG)
    assert known(desk, WRONG) is None


@pytest.mark.parametrize("secret", [OWN, STORED])
async def test_nobody_is_known_once_keys_were_written(desk: Desk, secret: str) -> None:
    await desk.name(secret)
    desk.door.forget()
    assert known(desk, secret) is None


@pytest.mark.parametrize("secret", [OWN, STORED])
async def test_nobody_is_known_under_another_snapshot(desk: Desk, secret: str) -> None:
    await desk.name(secret)
    desk.snapshot = build([])
    assert known(desk, secret) is None


async def test_a_key_of_the_database_is_known_for_as_long_as_it_need_not_be_looked_up(desk: Desk) -> None:
    await desk.name(STORED)
    desk.clock.move(KNOWN_S - 1)
    soon = known(desk, STORED)
    desk.clock.move(1)
    assert (soon, known(desk, STORED)) == ("stored", None)


async def test_a_key_that_was_looked_up_while_keys_were_written_is_good_for_one_request(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    find = desk.keys.find

    async def found_meanwhile(digest: bytes) -> object:
        key = await find(digest)
        desk.door.forget()
        return key

    monkeypatch.setattr(desk.keys, "find", found_meanwhile)
    assert (await desk.name(STORED), known(desk, STORED)) == ("stored", None)


async def test_an_expired_key_is_not_known(desk: Desk) -> None:
    desk.keys.held["stored"] = replace(desk.keys.held["stored"], expires_at=desk.clock.now() + 10)
    await desk.name(STORED)
    desk.clock.move(9)
    soon = known(desk, STORED)
    desk.clock.move(1)
    assert (soon, known(desk, STORED)) == ("stored", None)


async def test_an_old_secret_is_not_known_when_its_time_is_over(desk: Desk) -> None:
    until = desk.clock.now() + 10
    new = replace(key_of("own", "a new secret of the file"), previous_digest=digest_of(OWN.encode()))
    desk.snapshot = replace(
        desk.snapshot, keys=dict.fromkeys((new.digest, digest_of(OWN.encode())), replace(new, previous_until=until))
    )
    await desk.name(OWN)
    soon = known(desk, OWN)
    desk.clock.move(10)
    assert (soon, known(desk, OWN)) == ("own", None)


async def test_what_is_known_is_bounded(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(authenticator, "KNOWN_BOUND", 1)
    await desk.name(OWN)
    await desk.name(STORED)
    assert (known(desk, OWN), known(desk, STORED)) == (None, "stored")
