from __future__ import annotations

from dataclasses import replace

import pytest

from tests.fakes import FakeClock
from troyproxy.catalog.combos import Combo, Member
from troyproxy.catalog.providers import Origin
from troyproxy.errors import Conflict, NotFound, PreconditionFailed, ValidationFailed
from troyproxy.store.store import SqlStore

pytestmark = pytest.mark.anyio

DAILY = Combo(
    id="daily",
    name="Täglich",
    strategy="weighted",
    members=(Member("groq/llama"), Member("openai/gpt-4o", account="a", weight=3.5), Member(combo="backup")),
    config={"sticky": 1, "auto": {"weights": {"cost": 0.5}, "candidatePool": ["openai"]}},
)


async def test_a_combo_comes_back_as_it_was_stored(store: SqlStore, clock: FakeClock) -> None:
    stored = await store.combos.add(DAILY)
    assert stored == replace(DAILY, created_at=clock.now(), origin=Origin.DATABASE)
    assert await store.combos.list() == [stored]


async def test_combos_are_listed_oldest_first_with_their_own_members(store: SqlStore, clock: FakeClock) -> None:
    first = await store.combos.add(replace(DAILY, id="z", name="z"))
    clock.move(1)
    second = await store.combos.add(replace(DAILY, id="a", name="a", members=(Member("x/y"),)))
    assert await store.combos.list() == [first, second]


async def test_a_combo_may_be_without_members(store: SqlStore) -> None:
    stored = await store.combos.add(Combo(id="auto-coder", name="Auto Coder", strategy="auto"))
    assert (await store.combos.list())[0] == stored


@pytest.mark.parametrize(
    ("combo_id", "name"),
    [
        ("daily", "other"),
        ("other", "Täglich"),
        ("other", "tÄGLICH"),
        ("other", "Ta\u0308glich"),
        ("other", "Daily"),
        ("täglich", "other"),
        ("Täglich", "other"),
    ],
)
async def test_names_and_ids_share_one_namespace_without_case(store: SqlStore, combo_id: str, name: str) -> None:
    await store.combos.add(DAILY)
    with pytest.raises(Conflict):
        await store.combos.add(Combo(id=combo_id, name=name))
    assert len(await store.combos.list()) == 1


async def test_replacing_keeps_the_birth_and_raises_the_version(store: SqlStore, clock: FakeClock) -> None:
    stored = await store.combos.add(DAILY)
    clock.move(9)
    changed = await store.combos.replace(replace(DAILY, name="TÄGLICH", members=(Member("x/y"),)), expected_version=1)
    assert changed == replace(stored, name="TÄGLICH", members=(Member("x/y"),), version=2)
    assert await store.combos.list() == [changed]


async def test_replacing_may_go_on_without_a_version(store: SqlStore) -> None:
    await store.combos.add(DAILY)
    assert (await store.combos.replace(DAILY)).version == 2


async def test_replacing_another_version_is_refused_and_changes_nothing(store: SqlStore) -> None:
    stored = await store.combos.add(DAILY)
    with pytest.raises(PreconditionFailed, match="version 1, not 7"):
        await store.combos.replace(replace(DAILY, strategy="random"), expected_version=7)
    assert await store.combos.list() == [stored]


async def test_replacing_what_is_not_there_is_not_found(store: SqlStore) -> None:
    with pytest.raises(NotFound):
        await store.combos.replace(DAILY)


async def test_a_rename_to_a_taken_name_is_a_conflict(store: SqlStore) -> None:
    await store.combos.add(DAILY)
    other = await store.combos.add(Combo(id="other", name="other"))
    with pytest.raises(Conflict):
        await store.combos.replace(replace(other, name="täglich"))


async def test_a_removed_combo_frees_its_name_and_members(store: SqlStore) -> None:
    await store.combos.add(DAILY)
    await store.combos.remove("daily")
    assert await store.combos.list() == []
    assert (await store.combos.add(replace(DAILY, members=()))).members == ()
    assert (await store.combos.list())[0].members == ()


async def test_removing_what_is_not_there_is_not_found(store: SqlStore) -> None:
    with pytest.raises(NotFound):
        await store.combos.remove("daily")


async def test_every_change_bumps_the_revision_and_a_failed_one_does_not(store: SqlStore) -> None:
    await store.combos.add(DAILY)
    await store.combos.replace(DAILY)
    with pytest.raises(Conflict):
        await store.combos.add(DAILY)
    await store.combos.remove("daily")
    with pytest.raises(NotFound):
        await store.combos.remove("daily")
    assert await store.control.revision() == 3


async def test_text_that_no_database_takes_is_a_validation_error(store: SqlStore) -> None:
    with pytest.raises(ValidationFailed):
        await store.combos.add(Combo(id="x", name="lone \ud800"))
