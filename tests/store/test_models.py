from __future__ import annotations

from dataclasses import replace

import pytest
from sqlalchemy import insert

from troyproxy.catalog.models import Capabilities, Limits, Model, Override, Price, ToolCalls
from troyproxy.errors import ConfigError, Conflict, NotFound, PreconditionFailed
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
    no_effort=True,
)


async def test_an_override_comes_back_as_it_was_stored(store: SqlStore) -> None:
    llama, other = Override("groq/llama", LLAMA), Override("a/b", Model(id="b"))
    assert await store.models.add(llama) == replace(llama, version=1)
    await store.models.add(other)
    assert await store.models.list() == {"a/b": Model(id="b"), "groq/llama": LLAMA}
    assert await store.models.entries() == [replace(other, version=1), replace(llama, version=1)]


async def test_an_override_replaces_the_one_before_one_version_later(store: SqlStore) -> None:
    await store.models.add(Override("groq/llama", LLAMA))
    new = Override("groq/llama", Model(id="llama"))
    assert await store.models.replace(new, expected_version=1) == replace(new, version=2)
    assert await store.models.entries() == [replace(new, version=2)]
    assert await store.control.revision() == 2


async def test_another_version_than_the_expected_is_a_failed_precondition(store: SqlStore) -> None:
    await store.models.add(Override("groq/llama", LLAMA))
    with pytest.raises(PreconditionFailed, match="at version 1, not 2"):
        await store.models.replace(Override("groq/llama", LLAMA), expected_version=2)


async def test_a_spec_is_overridden_once(store: SqlStore) -> None:
    await store.models.add(Override("groq/llama", LLAMA))
    with pytest.raises(Conflict, match="groq/llama"):
        await store.models.add(Override("groq/llama", LLAMA))


async def test_a_removed_override_is_gone(store: SqlStore) -> None:
    await store.models.add(Override("groq/llama", LLAMA))
    await store.models.remove("groq/llama")
    assert await store.models.list() == {}


async def test_what_is_not_there_is_not_found(store: SqlStore) -> None:
    with pytest.raises(NotFound):
        await store.models.remove("groq/llama")
    with pytest.raises(NotFound):
        await store.models.replace(Override("groq/llama", LLAMA))


async def test_a_stored_value_that_is_no_model_is_named(store: SqlStore) -> None:
    async with store._database.write() as connection:
        await connection.execute(insert(MODEL_OVERRIDES), {"spec": "a/b", "model": {"limits": 3}})
    with pytest.raises(ConfigError, match="'a/b' is no model"):
        await store.models.list()
