from __future__ import annotations

import pytest
from sqlalchemy import insert

from troyproxy.store.store import SqlStore
from troyproxy.store.tables import USAGE_DAILY

pytestmark = pytest.mark.anyio


def row(day: str, key_id: str, cost_usd: float, model: str = "m") -> dict[str, object]:
    words = {"day": day, "key_id": key_id, "provider": "p", "model": model, "key_name": key_id}
    numbers = [column.name for column in USAGE_DAILY.columns if column.name not in {*words, "cost_usd"}]
    return {**words, **dict.fromkeys(numbers, 0), "cost_usd": cost_usd}


ROWS = [
    row("2026-12-31", "a", 8.0),
    row("2027-01-01", "a", 1.0),
    row("2027-01-15", "a", 2.0),
    row("2027-01-15", "a", 0.5, model="other"),
    row("2027-01-15", "b", 4.0),
    row("2027-01-15", "free", 0.0),
    row("2027-01-15", "", 9.0),
]


@pytest.mark.parametrize(
    ("day", "expected"),
    [("2027-01-15", {"a": 2.5, "b": 4.0}), ("2027-01-01", {"a": 3.5, "b": 4.0}), ("2027-01-16", {})],
)
async def test_what_keys_spent_is_summed_since_a_day(store: SqlStore, day: str, expected: dict[str, float]) -> None:
    async with store._database.write() as connection:
        await connection.execute(insert(USAGE_DAILY), ROWS)
    assert await store.sums.spent_since(day) == expected
