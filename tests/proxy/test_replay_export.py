from __future__ import annotations

import pytest
from msgspec.structs import replace

from tests.fake_usage import FakeRequests
from tests.fakes import FakeUsageSink
from tests.proxy.replaying import attempt
from troyproxy.accounting.records import UsageRow
from troyproxy.catalog.keys import Key
from troyproxy.proxy.replay import export as module
from troyproxy.proxy.replay.export import Export
from troyproxy.proxy.replay.trace import TracedKey, TracedRequest, read_trace

ROW = UsageRow(
    request_id="r",
    at=100.0,
    route="/v1/chat/completions",
    key_id="k1",
    key_name="ci",
    requested_model="daily",
    combo="daily",
    strategy="fallback",
    stream=False,
    status=200,
    outcome="ok",
    attempts=(attempt("alpha/m1#A"),),
)


async def exported(*rows: UsageRow, since: float = 0.0, now: float = 1e9) -> tuple[Export, list[TracedRequest]]:
    sink = FakeUsageSink()
    for row in rows:
        sink.record(row)
    keys = {"k1": Key("k1", "ci", b"digest", ("daily",), "alpha")}
    made = Export(FakeRequests(sink), keys, since, now)
    lines = [line async for line in made.lines()]
    return made, list(read_trace(lines, "t"))


def rows(count: int) -> list[UsageRow]:
    return [replace(ROW, request_id=f"r{n:03}", at=100.0 + n // 3) for n in range(count)]


@pytest.mark.anyio
async def test_all_pages_are_read_oldest_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PAGE", 4)
    made, found = await exported(*reversed(rows(21)))
    assert [one.request_id for one in found] == [f"r{n:03}" for n in range(21)]
    assert made.done.requests == 21


@pytest.mark.anyio
async def test_a_last_page_that_is_full_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PAGE", 3)
    _, found = await exported(*rows(6))
    assert len(found) == 6


@pytest.mark.anyio
async def test_the_span_ends_when_the_export_began() -> None:
    _, found = await exported(*rows(21), since=102.0, now=103.0)
    assert {one.at for one in found} == {102.0, 103.0}


@pytest.mark.anyio
async def test_the_key_is_there_without_its_digest() -> None:
    _, [found] = await exported(ROW)
    assert found.key == TracedKey("k1", "alpha", ("daily",))


@pytest.mark.anyio
async def test_what_was_refused_before_routing_and_trials_are_left_out_and_counted() -> None:
    refused = replace(ROW, request_id="limited", status=429, attempts=(), outcome="client_error")
    made, found = await exported(ROW, refused, replace(ROW, request_id="trial", key_id="test"))
    assert [one.request_id for one in found] == ["r"]
    assert (made.done.requests, made.done.left_out) == (1, 2)


@pytest.mark.anyio
async def test_nothing_is_a_trace_too() -> None:
    _, found = await exported()
    assert found == []
