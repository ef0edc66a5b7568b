from __future__ import annotations

import pytest
from sqlalchemy import insert

from troyproxy.catalog.models import Capabilities, Limits, Model, Price, ToolCalls
from troyproxy.errors import ConfigError, NotFound
from troyproxy.store.store import SqlStore
from troyproxy.store.tables import MODEL_OVERRIDES

pytestmark = pytest.mark.anyio

LLAMA = Model(
    id="llama",
    capabilities=Capabilities(tools=True, vision=False),
    limits=Limits(context=131_072),
    price=Price(input=0.5, output=1, cached=0.1),
    tool_calls=ToolCalls.DRIFTS,
    efforts=("low", "high"),
    aliases=("l",),
    no_sampling_with_effort=True,
)


async def test_an_override_comes_back_as_it_was_stored(store: SqlStore) -> None:
    await store.models.put("groq/llama", LLAMA)
    await store.models.put("a/b", Model(id="b"))
    assert await store.models.list() == {"a/b": Model(id="b"), "groq/llama": LLAMA}


async def test_an_override_replaces_the_one_before(store: SqlStore) -> None:
    await store.models.put("groq/llama", LLAMA)
    await store.models.put("groq/llama", Model(id="llama"))
    assert await store.models.list() == {"groq/llama": Model(id="llama")}
    assert await store.control.revision() == 2


async def test_a_removed_override_is_gone(store: SqlStore) -> None:
    await store.models.put("groq/llama", LLAMA)
    await store.models.remove("groq/llama")
    assert await store.models.list() == {}


async def test_removing_what_is_not_there_is_not_found(store: SqlStore) -> None:
    with pytest.raises(NotFound):
        await store.models.remove("groq/llama")


async def test_a_stored_value_that_is_no_model_is_named(store: SqlStore) -> None:
    async with store._database.write() as connection:
        await connection.execute(insert(MODEL_OVERRIDES), {"spec": "a/b", "model": {"limits": 3}})
    with pytest.raises(ConfigError, match="'a/b' is no model"):
        await store.models.list()
