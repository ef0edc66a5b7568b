"""`RedisLimits` against a real server: the same sums as in process, exact for several, and a server that fails."""

from __future__ import annotations

import asyncio
import itertools
import math
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from redis.asyncio import Redis as Client

from tests.services import Redis, redis
from troyproxy.accounting.limits import Account, Limit, Limits, admit, brought_to, settled
from troyproxy.errors import ConfigError, StoreUnavailable
from troyproxy.ports import Admission, Correction, Counted
from troyproxy.store.redis_limits import PREFIX, RedisLimits

pytestmark = pytest.mark.anyio
NOW = datetime(2027, 1, 15, 12, tzinfo=UTC).timestamp()
PATIENCE_S = 10.0
ANSWER_S = 5.0
"""A machine that is busy with other tests may take longer than a request would wait."""
RATES = Limits(requests=5, tokens=100)
BUDGETS = Limits(day_usd=1.0, month_usd=2.0)
NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def running() -> Iterator[Redis]:
    with redis(password="hush-hush") as server:
        yield server


@pytest.fixture
async def client(running: Redis, anyio_backend: str) -> AsyncIterator[Client]:
    async with Client.from_url(running.url, protocol=2) as opened:
        await opened.flushall()
        yield opened


@pytest.fixture
async def limits(running: Redis, client: Client) -> AsyncIterator[RedisLimits]:
    opened = RedisLimits(running.url, answer_s=ANSWER_S)
    await opened.open()
    yield opened
    await opened.close()


def mine(at: float = NOW, *, requests: float = math.inf, day_usd: float = 0.0, month_usd: float = 0.0) -> Account:
    here = brought_to(Account(at=at), Limits(), at)
    return replace(here, requests=requests, day_usd=day_usd, month_usd=month_usd)


def ask(limits: Limits = RATES, tokens: int = 1, known: Account | None = None) -> Admission:
    return Admission("key-1", limits, known or mine(), tokens)


async def one(limits: RedisLimits, order: Admission | Correction) -> Counted:
    return (await limits.carry([order]))[0]


async def test_a_bucket_is_full_and_then_empty(limits: RedisLimits) -> None:
    counted = await limits.carry([ask() for _ in range(6)])
    assert [each.refused for each in counted] == [*[None] * 5, Limit.REQUESTS]


async def test_two_instances_take_from_one_bucket(limits: RedisLimits, running: Redis) -> None:
    other = RedisLimits(running.url, answer_s=ANSWER_S)
    await other.open()
    try:
        asked = await asyncio.gather(*(each.carry([ask()] * 4) for each in (limits, other)))
        assert sum(counted.refused is None for trip in asked for counted in trip) == 5
    finally:
        await other.close()


async def test_it_refills_by_the_servers_time(limits: RedisLimits) -> None:
    fast = Limits(requests=60_000.0)
    order = Admission("key-1", fast, mine(requests=0.0), 0)  # what this instance knows empties it
    assert (await one(limits, order)).refused is Limit.REQUESTS
    async with asyncio.timeout(PATIENCE_S):
        while (await one(limits, ask(fast))).refused is not None:
            pass


async def test_what_is_left_and_spent_comes_back(limits: RedisLimits) -> None:
    everything = replace(RATES, day_usd=1.0, month_usd=2.0)
    await one(limits, Correction("key-1", everything, mine(), -30, 0.25, 0.5))
    counted = await one(limits, ask(everything, 10))
    account = counted.account
    assert (account.requests, account.day_usd, account.month_usd) == (4.0, 0.25, 0.5)
    assert account.tokens == pytest.approx(60, abs=20)


async def test_what_is_not_limited_is_without_end(limits: RedisLimits) -> None:
    account = (await one(limits, ask(BUDGETS))).account
    assert (account.requests, account.tokens) == (math.inf, math.inf)


async def test_money_of_two_adds_up_and_refuses(limits: RedisLimits) -> None:
    spent = Correction("key-1", BUDGETS, mine(), 0, 0.5, 0.5)
    counted = await limits.carry([spent, ask(BUDGETS), spent, ask(BUDGETS)])
    assert [each.refused for each in counted] == [None, None, None, Limit.DAY]


async def test_a_new_day_begins_at_zero(limits: RedisLimits) -> None:
    tomorrow = mine(NOW + 86400)
    counted = await limits.carry(
        [
            Correction("key-1", BUDGETS, mine(), 0, 1.5, 1.5),
            ask(BUDGETS, known=tomorrow),
            Correction("key-1", BUDGETS, tomorrow, 0, 0.5, 0.5),
            ask(BUDGETS, known=tomorrow),
            ask(BUDGETS, known=mine(NOW + 31 * 86400)),
        ]
    )
    assert [each.refused for each in counted] == [None, None, None, Limit.MONTH, None]


async def test_what_an_instance_knows_to_be_spent_counts_if_it_is_more(limits: RedisLimits) -> None:
    await one(limits, Correction("key-1", BUDGETS, mine(day_usd=0.7, month_usd=0.7), 0, 0.1, 0.1))
    account = (await one(limits, ask(BUDGETS, known=mine(day_usd=0.2, month_usd=1.9)))).account
    assert account.day_usd == pytest.approx(0.8)
    assert account.month_usd == 1.9


async def test_keys_do_not_share_and_their_names_are_digests(limits: RedisLimits, client: Client) -> None:
    await limits.carry([ask(), replace(ask(), key_id="key-2")])
    names = [str(name) for name in await client.keys()]
    assert [(PREFIX in name, "key-" in name) for name in names] == [(True, False)] * 2


@pytest.mark.parametrize(
    ("limits_of", "tokens", "least_s", "most_s"),
    [
        (RATES, 0, 60, 61),
        (RATES, 1000, 590, 601),
        (BUDGETS, 0, 16.4 * 86400, 16.6 * 86400),
    ],
)
async def test_everything_ends_by_itself(
    limits: RedisLimits, client: Client, limits_of: Limits, tokens: int, least_s: float, most_s: float
) -> None:
    await limits.carry([ask(limits_of, tokens) for _ in range(6)])
    ends = [await client.pttl(name) / 1000 for name in await client.keys()]
    assert [least_s <= left <= most_s for left in ends] == [True]


ORDERS = st.lists(
    st.tuples(
        st.floats(0, 40_000),
        st.booleans(),
        st.integers(-50, 400),
        st.floats(0, 1),
    ),
    min_size=1,
    max_size=30,
)
LIMITS = st.builds(
    Limits,
    requests=st.none() | st.floats(1, 5),
    tokens=st.none() | st.floats(1, 300),
    day_usd=st.none() | st.floats(0, 3),
    month_usd=st.none() | st.floats(0, 6),
)


def in_process(orders: Sequence[Admission | Correction]) -> list[Counted]:
    """Carry out the orders of one key with the sums of `accounting.limits`."""
    account, counted = Account(at=NOW), []
    for order in orders:
        account, refused = brought_to(account, order.limits, order.mine.at), None
        if isinstance(order, Admission):
            account, refused = admit(account, order.limits, order.mine.at, order.tokens)
        else:
            spent = {"day_usd": order.day_usd, "month_usd": order.month_usd}
            account = settled(account, order.limits, tokens=order.tokens, **spent)
        counted.append(Counted(account, refused))
    return counted


@given(LIMITS, ORDERS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_it_does_the_same_sums_as_in_process(
    running: Redis, rates: Limits, steps: list[tuple[float, bool, int, float]]
) -> None:
    at, key_id = NOW, f"same-{next(NUMBERS)}"
    orders: list[Admission | Correction] = []
    for wait, asks, tokens, usd in steps:
        at += wait
        known = mine(at)
        admission = Admission(key_id, rates, known, abs(tokens))
        orders.append(admission if asks else Correction(key_id, rates, known, tokens, usd, usd))
    limits = RedisLimits(running.url, answer_s=ANSWER_S, servers_time=False)
    await limits.open()
    try:
        assert await limits.carry(orders) == in_process(orders)
    finally:
        await limits.close()


# --- a server that fails --------------------------------------------------------------------------------------------


async def test_nothing_works_before_it_was_opened(running: Redis) -> None:
    limits = RedisLimits(running.url)
    with pytest.raises(StoreUnavailable):
        await limits.carry([ask()])
    assert await limits.close() is None  # type: ignore[func-returns-value]  # it must not raise


def test_a_url_that_is_none_is_a_mistake_and_is_not_quoted() -> None:
    with pytest.raises(ConfigError) as refused:
        RedisLimits("http://user:secret@host")
    assert "secret" not in str(refused.value)


async def test_a_wrong_password_is_an_outage_and_is_not_quoted(running: Redis) -> None:
    limits = RedisLimits(running.url.replace("hush-hush", "wrong-one"))
    with pytest.raises(StoreUnavailable) as refused:
        await limits.open()
    assert "wrong-one" not in str(refused.value)
    await limits.close()


async def test_a_value_of_another_kind_under_our_name_is_an_outage(limits: RedisLimits, client: Client) -> None:
    await one(limits, ask())
    (name,) = await client.keys()
    await client.set(name, "not ours")
    with pytest.raises(StoreUnavailable):
        await one(limits, ask())


async def test_a_server_that_lost_the_scripts_gets_them_again(limits: RedisLimits, client: Client) -> None:
    await client.script_flush()
    counted = await limits.carry([ask() for _ in range(6)])
    assert [each.refused for each in counted] == [*[None] * 5, Limit.REQUESTS]


@pytest.fixture
def server() -> Iterator[Redis]:
    with redis() as own:
        yield own


async def test_a_server_that_went_away_is_an_outage_until_it_is_opened_again(server: Redis) -> None:
    limits = RedisLimits(server.url, answer_s=ANSWER_S)
    await limits.open()
    assert await limits.carry([]) == []
    server.stop()
    for orders in ([], [ask()]):
        with pytest.raises(StoreUnavailable):
            await limits.carry(orders)
    with pytest.raises(StoreUnavailable):
        await limits.open()
    server.start()
    await limits.open()
    assert (await one(limits, ask())).refused is None
    await limits.close()


async def test_a_server_that_hangs_is_an_outage_soon(server: Redis) -> None:
    limits = RedisLimits(server.url)
    await limits.open()
    server.freeze()
    try:
        before = time.monotonic()
        with pytest.raises(StoreUnavailable):
            await one(limits, ask())
        assert time.monotonic() - before < PATIENCE_S
    finally:
        server.thaw()
    await limits.close()
