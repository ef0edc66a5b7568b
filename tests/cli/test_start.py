"""What every way of serving begins with."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fake_store import FakeKeys, FakeStore
from troyproxy.catalog.keys import Key
from troyproxy.cli.start import Start
from troyproxy.errors import StoreUnavailable
from troyproxy.settings.load import load

pytestmark = pytest.mark.anyio


def start(folder: Path, *, worker: str = "main", auth: str = "on") -> Start:
    options = {"auth": auth, "database_url": f"sqlite+aiosqlite:///{folder}/troy.db"}
    return Start(lambda: load({}, folder=folder, options=options), demo=False, worker=worker)


class Unreadable(FakeKeys):
    async def list(self) -> list[Key]:
        raise StoreUnavailable("down")


@pytest.fixture
def down() -> FakeStore:
    store = FakeStore()
    store.keys = Unreadable()
    return store


async def test_a_key_of_the_file_opens_the_door(tmp_path: Path, down: FakeStore) -> None:
    key = Key(id="k", name="k", digest=b"d")
    assert await start(tmp_path).somebody_can_call({b"d": key}, down)


async def test_an_open_door_needs_no_key(tmp_path: Path, down: FakeStore) -> None:
    assert await start(tmp_path, auth="off").somebody_can_call({}, down)


async def test_nobody_can_call_without_any_key(tmp_path: Path) -> None:
    assert not await start(tmp_path).somebody_can_call({}, FakeStore())


async def test_a_database_that_cannot_be_asked_is_believed_to_have_a_key(tmp_path: Path, down: FakeStore) -> None:
    assert await start(tmp_path).somebody_can_call({}, down)


@pytest.mark.parametrize(("worker", "end"), [("main", ":31337"), ("worker-2", ":31337/worker-2")])
async def test_a_worker_has_a_journal_name_of_its_own(tmp_path: Path, worker: str, end: str) -> None:
    assert start(tmp_path, worker=worker).store().events._source.endswith(end)
