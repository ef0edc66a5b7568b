"""Client keys as an operator writes them."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace

import pytest

from tests.fake_store import FakeStore
from tests.fakes import FakeClock
from tests.proxy.rig import ALPHA
from troyproxy.catalog.keys import Key
from troyproxy.catalog.providers import Origin
from troyproxy.catalog.snapshot import Snapshot, build
from troyproxy.errors import Conflict, NotFound, PreconditionFailed, ValidationFailed
from troyproxy.proxy.authenticator import digest_of
from troyproxy.proxy.key_book import KeyBook, WrittenKey
from troyproxy.proxy.rewriting import TRIES

pytestmark = pytest.mark.anyio

FILED = Key(id="file:filed", name="filed", digest=digest_of(b"filed"), origin=Origin.FILE)
DEMO = Key(id="demo", name="demo", digest=digest_of(b"demo"), origin=Origin.BUILTIN)


class Desk:
    def __init__(self) -> None:
        self.clock, self.store = FakeClock(), FakeStore()
        self.snapshot = build([ALPHA], keys=[FILED, DEMO])
        self.book = KeyBook(self.store, self._current, self.clock, file="troyproxy.yaml")

    def _current(self) -> Snapshot:
        return self.snapshot

    async def made(self, **fields: object) -> WrittenKey:
        return await self.book.create({"name": "ci", **fields})


@pytest.fixture
def desk() -> Desk:
    return Desk()


def secret_of(written: WrittenKey) -> str:
    assert written.secret is not None
    return written.secret.reveal()


def fields_of(error: ValidationFailed) -> list[str]:
    assert isinstance(error.details, list)
    return [detail["field"] for detail in error.details]


async def test_a_new_key_has_a_secret_of_the_generated_shape_and_its_hash_is_stored(desk: Desk) -> None:
    made = await desk.made()
    assert re.fullmatch("sk-troy-[0-9a-f]{48}", secret_of(made))
    assert made.key.digest == digest_of(secret_of(made).encode())
    assert re.fullmatch("key_[0-9a-f]{16}", made.key.id)


async def test_the_secret_is_in_no_repr(desk: Desk) -> None:
    made = await desk.made()
    assert secret_of(made) not in repr(made)


async def test_keys_of_file_and_database_are_listed_by_id(desk: Desk) -> None:
    made = await desk.made()
    assert await desk.book.entries() == [DEMO, FILED, made.key]


async def test_a_key_goes_by_id_or_name_in_any_case(desk: Desk) -> None:
    made = await desk.made()
    assert [await desk.book.find(name) for name in (made.key.id, "ci", "CI")] == [made.key] * 3


async def test_the_id_comes_before_another_keys_name(desk: Desk) -> None:
    made = await desk.made()
    await desk.store.keys.add(Key(id="k", name=made.key.id, digest=b"k"))
    assert (await desk.book.find(made.key.id)).name == "ci"


async def test_of_two_keys_of_one_name_the_one_that_can_be_changed_is_meant(desk: Desk) -> None:
    await desk.store.keys.add(Key(id="zz", name="Filed", digest=b"k"))
    assert (await desk.book.revoke("filed")).key.id == "zz"


async def test_what_is_not_there_is_not_found(desk: Desk) -> None:
    for attempt in (desk.book.find, desk.book.revoke, desk.book.rotate, desk.book.remove):
        with pytest.raises(NotFound, match="no key 'ghost'"):
            await attempt("ghost")


@pytest.mark.parametrize("name", ["ci", "CI", "filed", "FILED", "demo", "file:filed"])
async def test_a_name_is_taken_once_in_any_case(desk: Desk, name: str) -> None:
    await desk.made()
    with pytest.raises((Conflict, ValidationFailed)):
        await desk.book.create({"name": name})


async def test_a_key_may_not_be_called_by_another_keys_id(desk: Desk) -> None:
    made = await desk.made()
    with pytest.raises(Conflict):
        await desk.book.create({"name": made.key.id})


async def test_a_key_of_the_file_belongs_to_the_file(desk: Desk) -> None:
    for attempt in (
        desk.book.revoke("filed"),
        desk.book.rotate("filed"),
        desk.book.remove("filed"),
        desk.book.change("filed", {}),
        desk.book.replace("filed", {}),
    ):
        with pytest.raises(Conflict, match=r"belongs to troyproxy\.yaml"):
            await attempt


async def test_a_key_of_the_caller_is_built_in(desk: Desk) -> None:
    with pytest.raises(Conflict, match="is built in"):
        await desk.book.revoke("demo")


async def test_changing_keeps_what_is_not_given(desk: Desk) -> None:
    made = await desk.made(models=["daily"], provider="alpha", limits={"requests_per_minute": 6})
    changed = await desk.book.change("ci", {"models": ["auto/*"], "expires_at": desk.clock.now() + 9})
    assert changed.key == replace(made.key, models=("auto/*",), expires_at=desk.clock.now() + 9, version=2)
    assert changed.secret is None


async def test_null_takes_a_setting_away(desk: Desk) -> None:
    await desk.made(provider="alpha", expires_at=desk.clock.now() + 9)
    changed = await desk.book.change("ci", {"provider": None, "expires_at": None, "name": None})
    assert (changed.key.provider, changed.key.expires_at, changed.key.name) == (None, None, "ci")


async def test_replacing_takes_away_what_is_not_given_but_the_name(desk: Desk) -> None:
    made = await desk.made(models=["daily"], limits={"budget_usd_per_day": 0})
    replaced = await desk.book.replace(made.key.id, {"provider": "alpha"})
    assert (replaced.key.name, replaced.key.models, dict(replaced.key.limits)) == ("ci", (), {})
    assert replaced.key.digest == made.key.digest


async def test_a_key_may_be_renamed_but_not_to_a_name_in_use(desk: Desk) -> None:
    await desk.made()
    await desk.book.create({"name": "other"})
    assert (await desk.book.change("ci", {"name": "CI"})).key.name == "CI"
    with pytest.raises(Conflict):
        await desk.book.change("ci", {"name": "Other"})


async def test_the_id_stays(desk: Desk) -> None:
    made = await desk.made()
    await desk.book.change("ci", {"id": made.key.id})
    with pytest.raises(ValidationFailed) as caught:
        await desk.book.change("ci", {"id": "another"})
    assert fields_of(caught.value) == ["id"]


def overtaken(desk: Desk, key: Key, times: int) -> None:
    """Have another process write between reading and writing, so many *times*."""
    listed, left = desk.store.keys.list, iter(range(times))

    async def overtake() -> list[Key]:
        found = await listed()
        if next(left, None) is not None:
            await desk.store.keys.replace(replace(key, models=("theirs",)))
        return found

    desk.store.keys.list = overtake  # type: ignore[method-assign]  # the other process


async def test_a_change_is_made_anew_on_what_another_process_wrote_meanwhile(desk: Desk) -> None:
    made = await desk.made()
    overtaken(desk, made.key, 3)
    changed = await desk.book.change("ci", {"provider": "alpha"})
    assert (changed.key.models, changed.key.provider, changed.key.version) == (("theirs",), "alpha", 5)


async def test_a_change_of_a_named_version_is_refused_when_another_process_was_faster(desk: Desk) -> None:
    made = await desk.made()
    overtaken(desk, made.key, 1)
    with pytest.raises(PreconditionFailed):
        await desk.book.change("ci", {"models": ["x"]}, 1)


async def test_a_change_that_others_never_let_through_is_a_conflict(desk: Desk) -> None:
    made = await desk.made()
    overtaken(desk, made.key, TRIES)
    with pytest.raises(Conflict, match="others keep changing it"):
        await desk.book.change("ci", {"models": ["x"]})


async def test_a_rotation_that_names_no_version_takes_its_turn_behind_another_processes_write(desk: Desk) -> None:
    made = await desk.made()
    overtaken(desk, made.key, 1)
    assert (await desk.book.rotate("ci")).key.models == ("theirs",)


async def test_edits_at_once_in_one_process_take_turns(desk: Desk) -> None:
    await desk.made()
    await asyncio.gather(*(desk.book.change("ci", {"models": [f"m{n}"]}) for n in range(5)))
    assert (await desk.book.find("ci")).version == 6


async def test_revoking_is_for_good_and_twice_is_no_error(desk: Desk) -> None:
    await desk.made()
    first = await desk.book.revoke("ci")
    desk.clock.move(10)
    assert (await desk.book.revoke("ci")).key.revoked_at == first.key.revoked_at
    for attempt in (desk.book.change("ci", {}), desk.book.rotate("ci")):
        with pytest.raises(Conflict):
            await attempt


async def test_rotating_makes_another_secret_for_the_same_key(desk: Desk) -> None:
    made = await desk.made(models=["daily"])
    rotated = await desk.book.rotate("ci")
    assert rotated.key == replace(made.key, digest=digest_of(secret_of(rotated).encode()), version=2)
    assert secret_of(rotated) != secret_of(made)


async def test_the_old_secret_works_for_the_grace_and_no_longer(desk: Desk) -> None:
    made = await desk.made()
    rotated = (await desk.book.rotate("ci", {"grace_s": 60})).key
    now = desk.clock.now()
    assert rotated.digests(now + 59) == (rotated.digest, made.key.digest)
    assert rotated.digests(now + 60) == (rotated.digest,)


@pytest.mark.parametrize("raw", [{"grace_s": -1}, {"grace_s": 1e9}, {"grace_s": "1"}, {"grace": 1}])
async def test_a_grace_is_a_number_of_seconds_up_to_thirty_days(desk: Desk, raw: dict[str, object]) -> None:
    await desk.made()
    with pytest.raises(ValidationFailed) as caught:
        await desk.book.rotate("ci", raw)
    assert fields_of(caught.value) == list(raw)


async def test_removing_ends_a_key(desk: Desk) -> None:
    made = await desk.made()
    assert await desk.book.remove("ci") == made.key
    assert desk.store.keys.held == {}


async def test_revoking_and_removing_heed_an_expected_version(desk: Desk) -> None:
    await desk.made()
    for attempt in (desk.book.revoke("ci", 7), desk.book.remove("ci", 7)):
        with pytest.raises(PreconditionFailed):
            await attempt
    assert (await desk.book.remove("ci", 1)).name == "ci"


async def test_what_is_odd_about_a_key_is_told(desk: Desk) -> None:
    made = await desk.made(provider="nowhere", expires_at=1)
    assert [warning.split()[0] for warning in made.warnings] == ["nowhere", "the"]


@pytest.mark.parametrize(
    ("raw", "field"),
    [
        ({"name": ""}, "name"),
        ({"name": "a b"}, "name"),
        ({"name": 7}, "name"),
        ({"models": "daily"}, "models"),
        ({"models": [""]}, "models[0]"),
        ({"models": ["x" * 501]}, "models[0]"),
        ({"models": ["x"] * 101}, "models"),
        ({"models": [7]}, "models[0]"),
        ({"provider": "Not An Id"}, "provider"),
        ({"limits": []}, "limits"),
        ({"limits": {"requests": 1}}, "limits.requests"),
        ({"limits": {"requests_per_minute": 0}}, "limits.requests_per_minute"),
        ({"limits": {"tokens_per_minute": True}}, "limits.tokens_per_minute"),
        ({"limits": {"tokens_per_minute": 10**400}}, "limits.tokens_per_minute"),
        ({"limits": {"budget_usd_per_day": -0.01}}, "limits.budget_usd_per_day"),
        ({"limits": {"budget_usd_per_month": float("nan")}}, "limits.budget_usd_per_month"),
        ({"leak": {"mode": "loud"}}, "leak.mode"),
        ({"leak": {"locked": 1}}, "leak.locked"),
        ({"leak": {"limits": {"call": 1}}}, "leak.limits.call"),
        ({"expires_at": "soon"}, "expires_at"),
        ({"expires_at": -1}, "expires_at"),
        ({"key": "sk-troy-" + "0" * 48}, "key"),
        ({"id": "chosen"}, "id"),
        ({"colour": "red"}, "colour"),
    ],
)
async def test_what_is_not_valid_names_the_field(desk: Desk, raw: dict[str, object], field: str) -> None:
    with pytest.raises(ValidationFailed) as caught:
        await desk.made(**raw)
    assert fields_of(caught.value) == [field]


async def test_a_secret_that_a_caller_sends_is_not_repeated(desk: Desk) -> None:
    with pytest.raises(ValidationFailed) as caught:
        await desk.made(key="sk-troy-0123")
    assert "0123" not in str(caught.value.envelope())
