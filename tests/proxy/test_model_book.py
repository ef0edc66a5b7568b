"""Overrides of the model catalogue as an operator writes them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.fake_store import FakeStore
from tests.proxy.rig import model, provider
from troyproxy.catalog.models import Limits, Model, Override
from troyproxy.catalog.providers import Origin
from troyproxy.catalog.snapshot import Snapshot, build
from troyproxy.errors import Conflict, NotFound, PreconditionFailed
from troyproxy.proxy.model_book import Known, ModelBook, as_written

pytestmark = pytest.mark.anyio

ALPHA = provider("alpha", replace(model("m1", context=10), aliases=("one",)), "m2", aliases=("first",))
LONELY = provider("lonely", "m3", accounts="")
FILED = Model("m2", limits=Limits(context=5))


class Desk:
    def __init__(self) -> None:
        self.store = FakeStore()
        catalogue = {"alpha": {"m1": Model("m1")}}
        files = {"first/m2": FILED, "no spec": FILED}
        self.snapshot = build([ALPHA, LONELY], catalog=catalogue, file_models=files)
        self.book = ModelBook(self.store, self._current, file="troyproxy.yaml")

    def _current(self) -> Snapshot:
        return self.snapshot

    def told(self, known: Known) -> dict[str, object]:
        return as_written(known, self.snapshot)


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest.mark.parametrize("spelling", ["alpha/m1", "first/m1", "ALPHA/m1", "alpha/one", "first/one"])
async def test_a_model_has_one_override_however_it_is_spelt(desk: Desk, spelling: str) -> None:
    known, _ = await desk.book.create({"id": spelling, "context": 7})
    assert (known.spec, known.written.limits.context) == ("alpha/m1", 7)
    assert await desk.book.find(spelling) == known
    with pytest.raises(Conflict):
        await desk.book.create({"id": "alpha/m1"})


async def test_one_that_was_stored_under_an_alias_is_found_and_changed_there(desk: Desk) -> None:
    await desk.store.models.add(Override("first/m1", Model("m1")))
    changed, _ = await desk.book.change("alpha/m1", {"context": 7})
    assert (changed.spec, changed.version) == ("first/m1", 2)


async def test_what_is_stored_lies_over_the_file(desk: Desk) -> None:
    assert (await desk.book.find("alpha/m2")).origin is Origin.FILE
    await desk.store.models.add(Override("alpha/m2", Model("m2")))
    assert (await desk.book.find("alpha/m2")).origin is Origin.DATABASE


async def test_the_file_is_named_to_who_would_change_it(desk: Desk) -> None:
    with pytest.raises(Conflict, match=r"alpha/m2.*belongs to troyproxy\.yaml"):
        await desk.book.replace("alpha/m2", {})


async def test_only_overrides_are_listed_unless_all_is_wanted(desk: Desk) -> None:
    assert [known.spec for known in await desk.book.entries()] == ["alpha/m2"]
    assert [known.spec for known in await desk.book.entries(every=True)] == ["alpha/m1", "alpha/m2"]


@pytest.mark.parametrize(
    ("spec", "origin"), [("alpha/m1", "catalogue"), ("alpha/m2", "file"), ("lonely/m3", "builtin")]
)
async def test_it_is_told_where_the_model_comes_from(desk: Desk, spec: str, origin: str) -> None:
    assert desk.told(await desk.book.find(spec))["origin"] == origin


async def test_of_an_override_without_a_provider_nothing_is_in_effect(desk: Desk) -> None:
    known, warnings = await desk.book.create({"id": "later/m"})
    assert (desk.told(known)["effective"], len(warnings)) == (None, 1)


async def test_replacing_and_removing_heed_an_expected_version(desk: Desk) -> None:
    await desk.book.replace("alpha/m1", {"context": 7})
    for attempt in (desk.book.replace("alpha/m1", {}, 7), desk.book.remove("alpha/m1", 7)):
        with pytest.raises(PreconditionFailed):
            await attempt
    assert (await desk.book.remove("alpha/m1", 1)).written.limits.context == 7


async def test_a_removed_override_has_no_version(desk: Desk) -> None:
    await desk.book.replace("alpha/m1", {})
    assert await desk.book.version("alpha/m1") == 1
    await desk.book.remove("alpha/m1")
    assert await desk.book.version("alpha/m1") is None


@pytest.mark.parametrize("name", ["alpha/ghost", "ghost/m1", "m1", ""])
async def test_a_model_that_nobody_knows_is_not_found(desk: Desk, name: str) -> None:
    with pytest.raises(NotFound):
        await desk.book.find(name)
