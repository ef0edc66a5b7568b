"""KeyLimits: who is let through, and what is charged whatever becomes of the request."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from msgspec.structs import replace

from tests.asgi import App, Exchange, Receive, Scope, Send, drive, http_scope
from tests.fakes import FakeClock
from tests.middleware.apps import RawApp
from troyproxy.accounting.records import AttemptRecord
from troyproxy.accounting.usage import Usage
from troyproxy.catalog.keys import Key
from troyproxy.catalog.models import Model, Price
from troyproxy.catalog.providers import NO_AUTH, Provider
from troyproxy.catalog.snapshot import build
from troyproxy.middleware.key_limits import KeyLimits
from troyproxy.proxy.call import Call, call_of, put_call
from troyproxy.proxy.limits import LimitKeeper
from troyproxy.routing.needs import Needs

pytestmark = pytest.mark.anyio
LIMITED = Key("id", "k", b"", limits={"requests_per_minute": 2.0, "tokens_per_minute": 1000.0, "budget_usd_per_day": 1})
OPEN = Key("id", "k", b"")
ALPHA = Provider(id="alpha", auth=NO_AUTH, app="inner", models={"m": Model("m", price=Price(input=1e6, output=0.0))})
ATTEMPT = AttemptRecord("alpha", "m", "A", "ok", 200, 0.0, 0.0)


def call_with(key: Key | None, tokens: int | None = 100) -> Call:
    clock = FakeClock()
    call = Call("r", clock.now(), clock.monotonic(), "/v1/chat/completions", snapshot=build([ALPHA]), key=key)
    call.needs = None if tokens is None else Needs(est_tokens=tokens)
    return call


class Serving:
    """An app that leaves its mark in the ledger, and perhaps raises."""

    def __init__(self, mark: Callable[[Call], None], error: BaseException | None = None) -> None:
        self._mark, self._error = mark, error

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        call = call_of(scope)
        assert call is not None
        self._mark(call)
        if self._error is not None:
            raise self._error
        await RawApp()(scope, receive, send)


@pytest.fixture
def keeper() -> LimitKeeper:
    return LimitKeeper(clock=FakeClock())


def tokens_left(keeper: LimitKeeper) -> int:
    return keeper.standing(LIMITED)[1].remaining


async def ask(app: App, keeper: LimitKeeper, call: Call) -> Exchange:
    return await drive(KeyLimits(app, keeper=keeper), put_call(http_scope(), call), [{"type": "http.request"}])


def served(usage: Usage | None) -> Callable[[Call], None]:
    def mark(call: Call) -> None:
        call.ledger.attempts = [ATTEMPT]
        call.ledger.serve("alpha", "m", "A")
        call.ledger.usage = usage

    return mark


def failed(outcome: str, usage: Usage | None = None) -> Callable[[Call], None]:
    def mark(call: Call) -> None:
        call.ledger.attempts = [replace(ATTEMPT, outcome=outcome, usage=usage)]

    return mark


def nothing(call: Call) -> None:
    assert call.ledger.attempts == []


@pytest.mark.parametrize("key", [None, OPEN])
async def test_a_caller_without_limits_is_not_looked_at(key: Key | None) -> None:
    keeper: LimitKeeper = None  # type: ignore[assignment]  # whoever touches it fails
    assert (await ask(RawApp(), keeper, call_with(key))).status == 200


async def test_a_request_that_is_not_the_gateways_passes(keeper: LimitKeeper) -> None:
    assert (await drive(KeyLimits(RawApp(), keeper=keeper), http_scope(), [{"type": "http.request"}])).status == 200


async def test_beyond_the_limit_nothing_is_called(keeper: LimitKeeper) -> None:
    app = RawApp()
    calls = [call_with(LIMITED) for _ in range(3)]
    answers = [await ask(app, keeper, call) for call in calls]
    assert ([answer.status for answer in answers], len(app.scopes)) == ([200, 200, 429], 2)
    assert (answers[-1].header("retry-after"), answers[-1].json()["error"]["code"]) == ("30", "rate_limited")
    assert calls[-1].ledger.refused


async def test_the_call_says_where_the_key_stands(keeper: LimitKeeper) -> None:
    call = call_with(LIMITED)
    await ask(Serving(nothing), keeper, call)
    assert call.standing is not None
    assert [each.remaining for each in call.standing] == [1, 900]


async def test_a_route_without_an_estimate_is_charged_afterwards(keeper: LimitKeeper) -> None:
    await ask(Serving(served(Usage(10, 20))), keeper, call_with(LIMITED, None))
    assert tokens_left(keeper) == 970


@pytest.mark.parametrize(
    ("mark", "left"),
    [
        (served(Usage(30, 40)), 930),
        (served(Usage(300, 400)), 300),
        (served(None), 900),
        (failed("rate"), 1000),
        (failed("transient", Usage(5, 5)), 990),
        (failed("cancelled"), 900),
        (nothing, 1000),
    ],
    ids=["less", "more", "unreported", "refused", "wasted", "client left", "never sent"],
)
async def test_what_was_charged_becomes_what_was_used(
    keeper: LimitKeeper, mark: Callable[[Call], None], left: int
) -> None:
    await ask(Serving(mark), keeper, call_with(LIMITED))
    assert tokens_left(keeper) == left


@pytest.mark.parametrize("error", [asyncio.CancelledError(), ZeroDivisionError()])
async def test_what_ends_a_request_leaves_no_charge_behind(keeper: LimitKeeper, error: BaseException) -> None:
    with pytest.raises(type(error)):
        await ask(Serving(nothing, error), keeper, call_with(LIMITED))
    assert [each.remaining for each in keeper.standing(LIMITED)] == [1, 1000]


async def test_what_a_request_cost_is_spent(keeper: LimitKeeper) -> None:
    statuses = [(await ask(Serving(served(Usage(1, 0))), keeper, call_with(LIMITED))).status for _ in range(2)]
    assert statuses == [200, 402]
