from __future__ import annotations

import hashlib
from dataclasses import replace

import pytest

from tests.fakes import FakeClock
from troyproxy.catalog.keys import Key
from troyproxy.errors import Conflict, NotFound
from troyproxy.store.store import SqlStore

pytestmark = pytest.mark.anyio

DIGEST = hashlib.sha256(b"sk-troy-1").digest()
CI = Key(
    id="k1",
    name="ci",
    digest=DIGEST,
    models=("daily", "auto/*"),
    provider="groq",
    limits={"requests_per_minute": 60, "budget_usd_per_day": 5.5},
    leak={"mode": "repair", "locked": True},
    expires_at=1_900_000_000.5,
)
OTHER = Key(id="k2", name="other", digest=hashlib.sha256(b"sk-troy-2").digest())


async def test_a_key_comes_back_as_it_was_stored(store: SqlStore, clock: FakeClock) -> None:
    stored = await store.keys.add(CI)
    assert stored == replace(CI, created_at=clock.now())
    assert await store.keys.list() == [stored]


async def test_a_key_is_found_by_its_digest_only(store: SqlStore) -> None:
    stored = await store.keys.add(CI)
    await store.keys.add(OTHER)
    assert await store.keys.find(DIGEST) == stored
    assert await store.keys.find(hashlib.sha256(b"sk-troy-3").digest()) is None


@pytest.mark.parametrize(
    "other", [replace(OTHER, name="CI"), replace(OTHER, id="k1"), replace(OTHER, digest=DIGEST)], ids=lambda key: key.id
)
async def test_name_id_and_secret_are_each_taken_once(store: SqlStore, other: Key) -> None:
    await store.keys.add(CI)
    with pytest.raises(Conflict):
        await store.keys.add(other)
    assert await store.control.revision() == 1


async def test_a_revoked_key_is_found_and_opens_nothing(store: SqlStore, clock: FakeClock) -> None:
    await store.keys.add(CI)
    revoked = await store.keys.revoke("k1", at=clock.now())
    found = await store.keys.find(DIGEST)
    assert found == revoked
    assert not revoked.valid(clock.now())


async def test_the_first_revocation_stays_and_each_bumps_the_revision(store: SqlStore) -> None:
    await store.keys.add(CI)
    await store.keys.revoke("k1", at=10.0)
    assert (await store.keys.revoke("k1", at=20.0)).revoked_at == 10.0
    assert await store.control.revision() == 3


async def test_revoking_what_is_not_there_is_not_found(store: SqlStore) -> None:
    with pytest.raises(NotFound):
        await store.keys.revoke("k9", at=1.0)
