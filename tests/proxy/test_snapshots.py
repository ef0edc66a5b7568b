from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from tests.fake_store import FakeControl
from tests.fakes import FakeClock, settle
from tests.proxy.rig import ALPHA, provider, snapshot
from troyproxy.catalog.providers import NO_AUTH, Provider
from troyproxy.catalog.secret import Secret
from troyproxy.catalog.snapshot import Snapshot
from troyproxy.errors import ConfigError, StoreUnavailable
from troyproxy.proxy.snapshots import POLL_S, SnapshotKeeper, changed_accounts

pytestmark = pytest.mark.anyio


class Builder:
    """Builds the configured picture, or fails as told."""

    def __init__(self) -> None:
        self.error: Exception | None = None
        self.built: list[int] = []

    async def build(self, revision: int) -> Snapshot:
        self.built.append(revision)
        if self.error is not None:
            raise self.error
        return replace(snapshot(ALPHA), revision=revision)


class Desk:
    def __init__(self) -> None:
        self.builder, self.control, self.clock = Builder(), FakeControl(), FakeClock(manual=True)
        self.heard: list[tuple[int, int]] = []
        self.keeper = SnapshotKeeper(self.builder.build, control=self.control, clock=self.clock, on_change=[self._hear])

    def _hear(self, before: Snapshot, after: Snapshot) -> None:
        self.heard.append((before.revision, after.revision))


@pytest.fixture
def desk() -> Desk:
    return Desk()


async def test_a_reload_swaps_the_picture_whole_and_tells(desk: Desk) -> None:
    await desk.keeper.reload(5)
    assert (desk.keeper.current.revision, desk.heard) == (5, [(0, 5)])


async def test_a_reload_without_a_revision_keeps_it(desk: Desk) -> None:
    await desk.keeper.reload(5)
    await desk.keeper.reload()
    assert desk.builder.built == [5, 5]


async def test_a_picture_is_known_to_be_the_newest_while_the_control_row_says_so(desk: Desk) -> None:
    await desk.keeper.reload(0)
    desk.clock.move(60)
    await desk.keeper.look()
    assert desk.keeper.checked_at == desk.clock.now()


@pytest.mark.parametrize("error", [ConfigError("typo"), StoreUnavailable("down")])
async def test_a_picture_that_cannot_follow_grows_old(desk: Desk, error: Exception) -> None:
    await desk.keeper.reload(0)
    loaded = desk.clock.now()
    desk.builder.error, desk.control.at = error, 3
    for _ in range(2):
        desk.clock.move(60)
        await desk.keeper.look()
    assert desk.keeper.checked_at == loaded


async def test_after_a_refused_reload_of_the_same_revision_the_picture_is_not_the_newest(desk: Desk) -> None:
    await desk.keeper.reload(0)
    loaded, desk.builder.error = desk.clock.now(), ConfigError("typo")
    desk.clock.move(60)
    with pytest.raises(ConfigError):
        await desk.keeper.reload()
    await desk.keeper.look()
    assert desk.keeper.checked_at == loaded


async def test_an_invalid_configuration_keeps_the_old_picture_and_the_error(desk: Desk) -> None:
    await desk.keeper.reload(1)
    desk.builder.error = ConfigError("typo")
    with pytest.raises(ConfigError):
        await desk.keeper.reload(2)
    assert (desk.keeper.current.revision, desk.keeper.error, desk.heard) == (1, "typo", [(0, 1)])


async def test_who_keeps_what_is_no_part_of_the_picture_hears_of_a_refusal(desk: Desk) -> None:
    refusals: list[str] = []
    keeper = SnapshotKeeper(
        desk.builder.build,
        control=desk.control,
        clock=desk.clock,
        on_change=[],
        on_refused=lambda: refusals.append("refused"),
    )
    await keeper.reload(1)
    desk.builder.error = ConfigError("typo")
    with pytest.raises(ConfigError):
        await keeper.reload(2)
    assert refusals == ["refused"]


async def test_a_good_reload_forgets_the_error(desk: Desk) -> None:
    desk.builder.error = ConfigError("typo")
    with pytest.raises(ConfigError):
        await desk.keeper.reload(1)
    desk.builder.error = None
    await desk.keeper.reload(1)
    assert desk.keeper.error is None


async def _following(desk: Desk, seconds: float) -> None:
    task = asyncio.get_running_loop().create_task(desk.keeper.follow())
    await settle()
    await desk.clock.advance(seconds)
    task.cancel()
    await asyncio.wait({task})
    assert task.cancelled()


async def test_a_moved_control_row_is_followed_within_a_poll(desk: Desk) -> None:
    await desk.control.bump()
    await _following(desk, POLL_S)
    assert desk.keeper.current.revision == 1


@pytest.mark.parametrize("before_s", [0.0, 0.1, 0.49, 0.5, 0.51, 0.99])
async def test_a_write_is_followed_within_a_second_whenever_it_comes(desk: Desk, before_s: float) -> None:
    task = asyncio.get_running_loop().create_task(desk.keeper.follow())
    await settle()
    await desk.clock.advance(before_s)
    await desk.control.bump()
    await desk.clock.advance(1.0)
    task.cancel()
    await asyncio.wait({task})
    assert desk.keeper.current.revision == 1


async def test_a_control_row_that_stands_still_builds_nothing(desk: Desk) -> None:
    await _following(desk, 10 * POLL_S)
    assert desk.builder.built == []


async def test_a_refused_revision_is_tried_and_told_once(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    await desk.control.bump()
    desk.builder.error = ConfigError("typo")
    await _following(desk, 10 * POLL_S)
    assert (desk.builder.built, len(caplog.messages), desk.keeper.error) == ([1], 1, "typo")


async def test_the_next_revision_is_tried_again(desk: Desk) -> None:
    await desk.control.bump()
    desk.builder.error = ConfigError("typo")
    await _following(desk, POLL_S)
    desk.builder.error = None
    await desk.control.bump()
    await _following(desk, POLL_S)
    assert desk.keeper.current.revision == 2


async def test_a_reload_by_hand_after_a_refusal_catches_up_with_the_row(desk: Desk) -> None:
    await desk.control.bump()
    desk.builder.error = ConfigError("typo")
    await _following(desk, POLL_S)
    desk.builder.error = None
    await desk.keeper.reload()
    await _following(desk, POLL_S)
    assert desk.keeper.current.revision == 1


async def test_a_database_that_is_down_changes_nothing_and_ends_nothing(desk: Desk) -> None:
    await desk.control.bump()
    desk.control.down = True
    await _following(desk, 3 * POLL_S)
    desk.control.down = False
    await _following(desk, POLL_S)
    assert desk.keeper.current.revision == 1


async def test_a_database_that_goes_down_while_building_is_tried_again(desk: Desk) -> None:
    await desk.control.bump()
    desk.builder.error = StoreUnavailable("down")
    await _following(desk, 2 * POLL_S)
    assert (desk.builder.built, desk.keeper.error) == ([1, 1], None)


# --- what changed ---


def _changed(before: Provider, after: Provider | None) -> list[tuple[str, str]]:
    return list(changed_accounts(snapshot(before), snapshot(*([after] if after else []))))


TWO = provider("alpha", "m1", accounts="AB")


def test_nothing_changed_names_nobody() -> None:
    assert _changed(TWO, TWO) == []


def test_a_new_credential_is_a_changed_account() -> None:
    first = replace(TWO.accounts[0], api_key=Secret("another-secret"))
    assert _changed(TWO, replace(TWO, accounts=(first, TWO.accounts[1]))) == [("alpha", "alpha#A")]


def test_an_account_that_is_gone_is_a_changed_one() -> None:
    assert _changed(TWO, replace(TWO, accounts=TWO.accounts[:1])) == [("alpha", "alpha#B")]


def test_another_address_changes_every_account() -> None:
    assert len(_changed(TWO, replace(TWO, base_url="https://other.example"))) == 2


def test_a_provider_that_is_gone_changes_every_account() -> None:
    assert len(_changed(TWO, None)) == 2


def test_a_keyless_provider_that_moved_has_a_changed_account_too() -> None:
    local = Provider("local", base_url="http://a", auth=NO_AUTH)
    assert (_changed(local, local), _changed(local, replace(local, base_url="http://b"))) == (
        [],
        [("local", "local#keyless")],
    )
