"""Fetching the model catalogue, from a real server on loopback: what is taken, what is refused, what stays."""

from __future__ import annotations

import asyncio
import gzip
from pathlib import Path

import pytest

from tests.fakes import FakeClock, settle
from tests.proxy.catalogue_desk import JSON, NOTHING, catalogue, desk, following, good, made_for, url_of
from tests.store.waiting import until
from tests.upstream.loopback import Answer
from troyproxy.errors import ConfigError, TroyError, UpstreamInvalid, UpstreamTimeout, UpstreamUnreachable
from troyproxy.proxy.catalogue_refresh import AGAIN_S, EVERY_S, LOOK_S, etag_of, request_for
from troyproxy.settings.catalogue_file import NAME
from troyproxy.settings.fetched_catalogue import MAX_BYTES
from troyproxy.upstream.http import HttpxUpstream

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    """A real loop: sockets and a thread take real time."""
    return "asyncio"


async def test_a_good_catalogue_is_in_force_when_the_fetch_returns(tmp_path: Path) -> None:
    async with desk(tmp_path, good()) as d:
        found = await d.refresh.refresh()
        assert (found.models, found.providers, found.changed, found.warnings) == (1, 1, 1, ())
        assert d.context() == 4321


async def test_the_request_asks_for_the_url_as_it_stands_with_no_credential(tmp_path: Path) -> None:
    async with desk(tmp_path, good()) as d:
        await d.refresh.refresh()
        [seen] = d.log.requests
        assert (seen.method, seen.target) == ("GET", "/api.json?a=b")
        assert {name for name, _ in seen.headers} == {b"host", b"accept", b"accept-encoding", b"user-agent"}


async def test_a_users_override_lies_over_what_is_fetched(tmp_path: Path) -> None:
    (tmp_path / "troyproxy.yaml").write_text('models: {"openai/gpt-brand-new": {context: 77}}')
    async with desk(tmp_path, good()) as d:
        await d.refresh.refresh()
        assert d.context() == 77


async def test_the_same_again_changes_nothing_and_makes_no_snapshot(tmp_path: Path) -> None:
    async with desk(tmp_path, good()) as d:
        await d.refresh.refresh()
        snapshot = d.snapshots.current
        assert (await d.refresh.refresh()).changed == 0
        assert d.snapshots.current is snapshot


async def test_a_tag_is_sent_back_and_a_304_keeps_what_is_there(tmp_path: Path) -> None:
    async with desk(tmp_path, good(catalogue(), (b"etag", b'W/"7"')), Answer(304, NOTHING)) as d:
        await d.refresh.refresh()
        d.clock.move(100)
        assert (await d.refresh.refresh()).models == 1
        assert dict(d.log.requests[1].headers)[b"if-none-match"] == b'W/"7"'
        assert (d.context(), d.refresh.page()["age_s"]) == (4321, 0.0)


async def test_a_compressed_catalogue_is_read(tmp_path: Path) -> None:
    async with desk(tmp_path, good(gzip.compress(catalogue()), (b"content-encoding", b"gzip"))) as d:
        assert (await d.refresh.refresh()).models == 1


BOMB = gzip.compress(b" " * (64 << 20))
REFUSED: list[tuple[str, Answer, type[TroyError], str]] = [
    ("too large", good(b" " * (MAX_BYTES + 1)), UpstreamInvalid, "larger than 8 MiB"),
    ("declared", good(b"", (b"content-length", b"9000000")), UpstreamInvalid, "larger than 8 MiB"),
    ("a bomb", good(BOMB, (b"content-encoding", b"gzip")), UpstreamInvalid, "larger than 8 MiB"),
    ("no gzip", good(b"\x1f\x8b broken", (b"content-encoding", b"gzip")), UpstreamUnreachable, "damaged"),
    ("unknown coding", good(b"..", (b"content-encoding", b"rot13")), UpstreamInvalid, "content-encoding"),
    ("html", good(b"<html></html>"), UpstreamInvalid, "not valid JSON"),
    ("half", good(catalogue()[:-9]), UpstreamInvalid, "not valid JSON"),
    ("shape", good(b'{"openai": {"models": [1]}}'), UpstreamInvalid, "shape"),
    ("empty", good(b"{}"), UpstreamInvalid, "no model"),
    ("status", Answer(500), UpstreamInvalid, "HTTP 500"),
    ("redirect", Answer(302, headers=((b"location", b"http://127.0.0.1:9/"),)), UpstreamInvalid, "not followed"),
    ("304 unasked", Answer(304, NOTHING), UpstreamInvalid, "HTTP 304"),
    ("cut", Answer(steps=(catalogue(),), cut=True), UpstreamUnreachable, "cannot be fetched"),
    ("gone", Answer(headless=True), UpstreamUnreachable, "cannot be fetched"),
]


@pytest.mark.parametrize(("answer", "kind", "why"), [r[1:] for r in REFUSED], ids=[r[0] for r in REFUSED])
async def test_anything_else_is_refused_with_the_reason_and_the_old_one_stays(
    tmp_path: Path, answer: Answer, kind: type[TroyError], why: str
) -> None:
    async with desk(tmp_path, good(), answer) as d:
        await d.refresh.refresh()
        with pytest.raises(kind, match=why) as refused:
            await d.refresh.refresh()
        assert (d.context(), d.refresh.page()["error"]) == (4321, str(refused.value))


async def test_a_server_that_drips_is_given_up_at_the_deadline(tmp_path: Path) -> None:
    async with desk(tmp_path, Answer(headers=JSON, steps=(b" ", None))) as d:
        d.refresh._deadline_s = 0.05
        with pytest.raises(UpstreamTimeout, match="did not come"):
            await d.refresh.refresh()
        await asyncio.wait_for(d.log.gone.wait(), 5)


async def test_a_redirect_is_not_followed(tmp_path: Path) -> None:
    async with desk(tmp_path, Answer(301, headers=((b"location", b"/other"),))) as d:
        with pytest.raises(UpstreamInvalid):
            await d.refresh.refresh()
        assert [seen.target for seen in d.log.requests] == ["/api.json?a=b"]


async def test_the_last_good_one_is_there_after_a_restart(tmp_path: Path) -> None:
    clock = FakeClock()
    async with desk(tmp_path, good(catalogue(), (b"etag", b'"7"')), clock=clock) as d:
        await d.refresh.refresh()
        again = made_for(tmp_path, url_of(d), HttpxUpstream(env={}), d.log, [], clock)
        await again.snapshots.reload(0)
        assert again.context() == 4321


async def test_a_damaged_file_is_ignored_with_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / NAME).write_bytes(b"nonsense")
    async with desk(tmp_path, good()) as d:
        assert d.snapshots.current.providers["openai"].models
        assert f"{tmp_path / NAME} is ignored" in caplog.text


async def test_a_disk_that_refuses_costs_no_more_than_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with desk(tmp_path, good()) as d:
        (tmp_path / NAME).mkdir()
        await d.refresh.refresh()
        assert d.context() == 4321
        assert "cannot be written" in caplog.text


async def test_a_configuration_that_is_broken_by_now_keeps_it_for_later(tmp_path: Path) -> None:
    async with desk(tmp_path, good()) as d:
        d.broken.append(ConfigError("a typo"))
        found = await d.refresh.refresh()
        assert found.warnings == ("kept, but not in force before the next reload: a typo",)
        d.broken.clear()
        await d.snapshots.reload()
        assert d.context() == 4321


async def test_it_is_fetched_at_the_start_and_once_a_day(tmp_path: Path) -> None:
    async with desk(tmp_path, good(), clock=FakeClock(manual=True)) as d, following(d):
        d.clock.move(EVERY_S - 10)  # it looks every second, which changes nothing until then
        await d.clock.advance(LOOK_S)
        assert len(d.log.requests) == 1
        d.clock.move(20)
        await d.clock.advance(LOOK_S)
        await until(lambda: len(d.log.requests) == 2)


async def test_a_failed_fetch_is_tried_again_sooner(tmp_path: Path) -> None:
    async with desk(tmp_path, Answer(500), good(), clock=FakeClock(manual=True)) as d, following(d):
        d.clock.move(AGAIN_S)
        await d.clock.advance(LOOK_S)
        await until(lambda: d.refresh.page()["models"] == 1)
        assert d.refresh.page()["error"] is None


async def test_an_order_of_another_process_fetches_at_once(tmp_path: Path) -> None:
    async with desk(tmp_path, good(), good(catalogue(8)), clock=FakeClock(manual=True)) as d, following(d):
        await d.orders.begin()
        revision = await d.orders.give("catalogue", {"by": "another"})
        await d.orders.catch_up(revision)
        await d.clock.advance(LOOK_S)
        await until(lambda: d.context() == 8)
        assert len(d.log.requests) == 2


async def test_ones_own_order_fetches_nothing(tmp_path: Path) -> None:
    async with desk(tmp_path, good(), clock=FakeClock(manual=True)) as d, following(d):
        await d.orders.begin()
        assert await d.refresh.order()
        await d.orders.catch_up(await d.store.control.revision())
        await d.clock.advance(LOOK_S)
        await settle()
        assert len(d.log.requests) == 1


async def test_an_order_that_cannot_be_given_is_told(tmp_path: Path) -> None:
    async with desk(tmp_path, good()) as d:
        d.store.control.down = True
        assert not await d.refresh.order()


@pytest.mark.parametrize(
    ("url", "base", "path"),
    [
        ("https://h/api.json", "https://h", "/api.json"),
        ("https://h", "https://h", "/"),
        ("http://[::1]:8/a/?x=1&y=%20", "http://[::1]:8", "/a/?x=1&y=%20"),
    ],
)
def test_the_url_is_asked_for_as_it_is_written(url: str, base: str, path: str) -> None:
    request = request_for(url)
    assert (request.provider.base_url, request.path) == (base, path)


@pytest.mark.parametrize(
    ("value", "tag"), [(b'"a"', '"a"'), (b"", None), (b'"\xe4"', None), (b'"' + b"x" * 600 + b'"', None)]
)
def test_a_tag_that_cannot_be_sent_back_is_none(value: bytes, tag: str | None) -> None:
    assert etag_of(((b"etag", value),)) == tag
