"""The edge, and what stands around every route: ids, rows, bugs, CORS."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.api.house import KEY, NARROW_KEY, House, build
from tests.asgi import App, drive, http_scope, request_body
from tests.fakes import FakeClock
from troyproxy.accounting.records import UsageRow
from troyproxy.api.edge import Edge
from troyproxy.api.endpoint import ProxyEndpoint
from troyproxy.api.outermost import outermost
from troyproxy.catalog.snapshot import Snapshot
from troyproxy.proxy.answers import Message, Receive, Send, send_json
from troyproxy.proxy.call import Call, Scope, call_of
from troyproxy.proxy.policy import WalkPolicy
from troyproxy.routing.eligibility import Skip, SkipReason
from troyproxy.telemetry.silent import Silent

pytestmark = pytest.mark.anyio

PAGE = "https://page.example"


class Watching(Silent):
    """An observer and a sink that keep what they hear."""

    def __init__(self) -> None:
        self.started = 0
        self.rows: list[UsageRow] = []
        self.recorded: list[UsageRow] = []
        self.gaps: list[tuple[str, str, Any]] = []
        self.traced: list[Any] = []

    def request_started(self) -> None:
        self.started += 1

    def request_finished(self, row: UsageRow) -> None:
        self.rows.append(row)

    def events_seen(self, provider: str, model: str, gaps_s: Any) -> None:  # noqa: ANN401 -- kept as it comes
        self.gaps.append((provider, model, gaps_s))

    def trace(self, request_id: str, lines: Any) -> None:  # noqa: ANN401 -- kept as it comes
        assert request_id == self.rows[-1].request_id
        self.traced.append(list(lines))

    def record(self, row: UsageRow) -> None:
        self.recorded.append(row)


@pytest.fixture
def watching() -> Watching:
    return Watching()


def edge(app: App, watching: Watching, clock: FakeClock, *, trace: bool = False) -> Edge:
    """Return *app* behind an edge."""
    return Edge(
        app,
        "/v1/embeddings",
        snapshot=Snapshot,
        clock=clock,
        observer=watching,
        usage=watching,
        policy=WalkPolicy(trace=trace),
    )


async def fine(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer 200."""
    await send_json(send, 200, {})


async def broken(scope: Scope, receive: Receive, send: Send) -> None:
    """Fail before the answer."""
    raise ZeroDivisionError


async def broken_late(scope: Scope, receive: Receive, send: Send) -> None:
    """Fail within the answer."""
    await send({"type": "http.response.start", "status": 200, "headers": []})
    raise ZeroDivisionError


async def sent_by(app: App) -> list[Message]:
    """Return what *app* sent before its bug reached the server."""
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        return {"type": "http.request", "body": b"{}"}

    with pytest.raises(ZeroDivisionError):
        await app(http_scope(), receive, send)
    return sent


def ids_in(message: Message) -> list[bytes]:
    """Return the request ids among the headers."""
    return [value for name, value in message["headers"] if name == b"x-troy-request-id"]


async def test_an_answer_has_the_id_of_its_row(watching: Watching, clock: FakeClock) -> None:
    answer = await drive(edge(fine, watching, clock), http_scope())
    assert answer.header("x-troy-request-id") == watching.rows[0].request_id


async def test_a_refusal_by_a_layer_tells_what_was_skipped(watching: Watching, clock: FakeClock) -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        call = call_of(scope)
        assert call is not None
        call.ledger.skip(Skip("alpha/m1", SkipReason.NO_TOOLS, "alpha"))
        await send_json(send, 503, {})

    answer = await drive(edge(app, watching, clock), http_scope())
    assert answer.header("x-troy-skipped") == "alpha/m1=no-tools"
    assert answer.header("x-troy-attempts") == "0"


async def test_an_id_that_is_there_stays_alone(watching: Watching, clock: FakeClock) -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send_json(send, 200, {}, {"x-troy-request-id": "mine"})

    answer = await drive(edge(app, watching, clock), http_scope())
    assert [value for name, value in answer.raw_headers if name == b"x-troy-request-id"] == [b"mine"]


async def test_one_row_is_recorded_and_told_however_it_ends(watching: Watching, clock: FakeClock) -> None:
    await drive(edge(fine, watching, clock), http_scope())
    assert (watching.started, len(watching.rows), watching.rows) == (1, 1, watching.recorded)


async def test_a_row_says_the_route_and_the_time(watching: Watching, clock: FakeClock) -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        clock.move(0.25)
        await fine(scope, receive, send)

    await drive(edge(app, watching, clock), http_scope())
    row = watching.rows[0]
    assert (row.route, row.status, row.duration_ms, row.at) == ("/v1/embeddings", 200, 250.0, clock.now() - 0.25)


async def test_a_bug_is_answered_in_the_envelope_with_an_id_and_raised_for_the_log(
    watching: Watching, clock: FakeClock
) -> None:
    start, body = await sent_by(edge(broken, watching, clock))
    assert (start["status"], ids_in(start)) == (500, [watching.rows[0].request_id.encode()])
    assert b'"code":"internal_error"' in body["body"]
    assert b"ZeroDivision" not in body["body"]


async def test_a_bug_leaves_one_row_with_its_status(watching: Watching, clock: FakeClock) -> None:
    await sent_by(edge(broken, watching, clock))
    assert [(row.status, row.outcome) for row in watching.recorded] == [(500, "refused")]


async def test_a_bug_within_an_answer_adds_nothing_to_it(watching: Watching, clock: FakeClock) -> None:
    sent = await sent_by(edge(broken_late, watching, clock))
    assert ([m["type"] for m in sent], len(watching.rows)) == (["http.response.start"], 1)


async def test_a_request_that_the_server_takes_away_counts_as_cancelled(watching: Watching, clock: FakeClock) -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await drive(edge(app, watching, clock), http_scope())
    assert [(row.status, row.outcome) for row in watching.recorded] == [(499, "cancelled")]


async def test_the_gaps_of_a_stream_are_told_with_its_target(watching: Watching, clock: FakeClock) -> None:
    def fill(call: Call) -> None:
        call.ledger.serve("alpha", "m", "a")
        call.ledger.gaps_s.append(0.5)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        call = call_of(scope)
        assert call is not None
        fill(call)
        await fine(scope, receive, send)

    await drive(edge(app, watching, clock), http_scope())
    assert watching.gaps == [("alpha", "m", [0.5])]


@pytest.mark.parametrize(("trace", "told"), [(True, [["hello", "end 200 client_error after 0 ms"]]), (False, [])])
async def test_the_play_by_play_is_told_when_it_is_wanted(
    watching: Watching, clock: FakeClock, trace: bool, told: object
) -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        call = call_of(scope)
        assert call is not None
        call.ledger.say("hello")
        await fine(scope, receive, send)

    await drive(edge(app, watching, clock, trace=trace), http_scope())
    assert watching.traced == told


async def test_each_request_has_its_own_seed(watching: Watching, clock: FakeClock) -> None:
    for _ in range(2):
        await drive(edge(fine, watching, clock), http_scope())
    assert watching.rows[0].seed != watching.rows[1].seed


async def test_the_endpoint_needs_the_edge() -> None:
    with pytest.raises(RuntimeError, match="behind the edge"):
        await drive(ProxyEndpoint(None), http_scope())  # type: ignore[arg-type]  # never used


async def test_a_bug_on_any_route_is_in_the_envelope_with_an_id() -> None:
    start, body = await sent_by(outermost(broken, ()))
    assert (start["status"], len(ids_in(start)), b"internal_error" in body["body"]) == (500, 1, True)


@pytest.fixture
async def open_house(tmp_path: Path, anyio_backend: str) -> AsyncIterator[House]:
    """A gateway that a page may call."""
    found = build(tmp_path, FakeClock(manual=True), cors_origins=PAGE)
    async with found.gateway:
        yield found


PREFLIGHT = {"origin": PAGE, "access_control_request_method": "POST", "access_control_request_headers": "authorization"}


@pytest.mark.parametrize(
    "path",
    [
        *("/v1/chat/completions", "/v1/embeddings", "/v1/models", "/v1/models/alpha/gpt-x"),
        *("/v1/audio/speech", "/v1/images/edits", "/v1/moderations", "/v1/rerank"),
    ],
)
async def test_a_preflight_needs_no_key(open_house: House, path: str) -> None:
    answer = await open_house.ask("OPTIONS", path, authorization="", **PREFLIGHT)
    assert (answer.status, answer.header("access-control-allow-origin")) == (200, PAGE)


async def test_a_preflight_of_another_page_is_refused(open_house: House) -> None:
    answer = await open_house.ask("OPTIONS", "/v1/models", **{**PREFLIGHT, "origin": "https://evil.example"})
    assert (answer.status, answer.header("access-control-allow-origin")) == (400, None)


async def test_options_that_are_no_preflight_say_what_is_allowed(open_house: House) -> None:
    answer = await open_house.ask("OPTIONS", "/v1/chat/completions")
    assert (answer.status, answer.header("allow")) == (405, "POST")


async def test_a_401_has_the_headers_for_an_allowed_page(open_house: House) -> None:
    answer = await open_house.ask("GET", "/v1/models", origin=PAGE, authorization="")
    assert (answer.status, answer.header("access-control-allow-origin")) == (401, PAGE)


async def test_a_stream_has_them_too(open_house: House) -> None:
    body = {"model": "demo/ok", "stream": True, "messages": [{"role": "user", "content": "x"}]}
    answer = await open_house.post(
        "/v1/chat/completions", body, origin=PAGE, authorization="Bearer client-key-0123456789"
    )
    assert (answer.status, answer.header("access-control-allow-origin")) == (200, PAGE)


async def test_the_admin_api_is_for_no_page(open_house: House) -> None:
    answers = [
        await open_house.ask("GET", "/api/status", origin=PAGE),
        await open_house.ask("OPTIONS", "/api/status", **PREFLIGHT),
    ]
    assert [(a.status, a.header("access-control-allow-origin")) for a in answers] == [(200, None), (405, None)]


async def test_without_allowed_pages_there_are_no_preflights(house: House) -> None:
    answer = await house.ask("OPTIONS", "/v1/models", **PREFLIGHT)
    assert (answer.status, answer.header("access-control-allow-origin")) == (405, None)


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics", "/api/status", "/v1/models", "/nothing"])
async def test_every_answer_has_a_request_id(house: House, path: str) -> None:
    assert (await house.ask("GET", path)).header("x-troy-request-id") is not None


async def test_a_refused_chat_request_has_one_too(house: House) -> None:
    answer = await drive(house.app, http_scope(), request_body(b"{}"))
    assert (answer.status, answer.header("x-troy-request-id") is not None) == (401, True)


@pytest.mark.parametrize(("key", "refused"), [(KEY, False), (NARROW_KEY, True)])
async def test_a_key_for_certain_models_brings_no_list_of_fallbacks_of_its_own(
    house: House, key: str, *, refused: bool
) -> None:
    body = {"model": "filed", "models": ["any/other"], "messages": [{"role": "user", "content": "hello"}]}
    answer = await house.post("/v1/chat/completions", body, authorization=f"Bearer {key}")
    assert (answer.status == 403) is refused
