from __future__ import annotations

import hashlib
from dataclasses import replace

import pytest

from tests.fakes import FakeClock
from troyproxy.catalog.keys import Key
from troyproxy.errors import Conflict, NotFound, PreconditionFailed
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
SECOND = hashlib.sha256(b"sk-troy-second").digest()
OTHER = Key(id="k2", name="other", digest=hashlib.sha256(b"sk-troy-2").digest())


async def test_a_key_comes_back_as_it_was_stored(store: SqlStore, clock: FakeClock) -> None:
    stored = await store.keys.add(CI)
    assert stored == replace(CI, created_at=clock.now(), version=1)
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


async def test_what_is_not_there_is_not_found(store: SqlStore) -> None:
    with pytest.raises(NotFound):
        await store.keys.revoke("k9", at=1.0)
    with pytest.raises(NotFound):
        await store.keys.replace(replace(CI, id="k9"))
    with pytest.raises(NotFound):
        await store.keys.rotate("k9", SECOND)
    with pytest.raises(NotFound):
        await store.keys.remove("k9")


async def test_settings_are_replaced_one_version_later_and_nothing_else(store: SqlStore) -> None:
    stored = await store.keys.add(CI)
    changed = await store.keys.replace(Key(id="k1", name="new", digest=b"another", expires_at=5.0))
    assert changed == Key(id="k1", name="new", digest=DIGEST, expires_at=5.0, created_at=stored.created_at, version=2)
    assert await store.keys.list() == [changed]


@pytest.mark.parametrize(("version", "refused"), [(None, False), (1, False), (2, True)])
async def test_a_write_may_name_the_version_that_it_expects(
    store: SqlStore, version: int | None, refused: bool
) -> None:
    await store.keys.add(CI)
    if refused:
        with pytest.raises(PreconditionFailed):
            await store.keys.replace(CI, expected_version=version)
        with pytest.raises(PreconditionFailed):
            await store.keys.rotate("k1", SECOND, expected_version=version)
    else:
        await store.keys.replace(CI, expected_version=version)
    assert [key.version for key in await store.keys.list()] == [1 if refused else 2]


async def test_a_name_that_is_taken_cannot_be_given(store: SqlStore) -> None:
    await store.keys.add(CI)
    await store.keys.add(OTHER)
    with pytest.raises(Conflict):
        await store.keys.replace(replace(OTHER, name="CI"))


async def test_a_revoked_key_is_neither_changed_nor_rotated(store: SqlStore) -> None:
    await store.keys.add(CI)
    await store.keys.revoke("k1", at=10.0)
    with pytest.raises(Conflict, match="revoked"):
        await store.keys.replace(CI)
    with pytest.raises(Conflict, match="revoked"):
        await store.keys.rotate("k1", SECOND)


async def test_a_rotated_key_is_found_by_its_new_secret_only(store: SqlStore) -> None:
    stored = await store.keys.add(CI)
    rotated = await store.keys.rotate("k1", SECOND)
    assert rotated == replace(stored, digest=SECOND, version=2)
    assert (await store.keys.find(SECOND), await store.keys.find(DIGEST)) == (rotated, None)


async def test_the_old_secret_is_found_as_long_as_it_is_kept(store: SqlStore) -> None:
    await store.keys.add(CI)
    rotated = await store.keys.rotate("k1", SECOND, old_until=50.0)
    assert (rotated.previous_digest, rotated.previous_until) == (DIGEST, 50.0)
    assert (await store.keys.find(SECOND), await store.keys.find(DIGEST)) == (rotated, rotated)


async def test_a_second_rotation_ends_the_secret_before_the_last(store: SqlStore) -> None:
    third = hashlib.sha256(b"sk-troy-third").digest()
    await store.keys.add(CI)
    await store.keys.rotate("k1", SECOND, old_until=50.0)
    await store.keys.rotate("k1", third, old_until=60.0)
    assert await store.keys.find(DIGEST) is None
    assert (await store.keys.find(SECOND)) == (await store.keys.find(third))


async def test_a_removed_key_is_gone_and_its_name_is_free(store: SqlStore) -> None:
    await store.keys.add(CI)
    await store.keys.remove("k1")
    assert await store.keys.find(DIGEST) is None
    assert (await store.keys.add(replace(OTHER, name="ci"))).name == "ci"


async def test_every_write_bumps_the_revision(store: SqlStore) -> None:
    await store.keys.add(CI)
    await store.keys.replace(CI)
    await store.keys.rotate("k1", SECOND)
    await store.keys.remove("k1")
    assert await store.control.revision() == 4
