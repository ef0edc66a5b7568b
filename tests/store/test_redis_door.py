"""The door opens only with a URL, a URL that is one, and the library."""

from __future__ import annotations

import sys

import pytest

from troyproxy.errors import ConfigError
from troyproxy.store.redis_door import shared_limits, state_mirror
from troyproxy.store.redis_limits import RedisLimits
from troyproxy.store.redis_mirror import RedisMirror


def test_without_a_url_nothing_is_shared() -> None:
    assert (state_mirror(None, keep_s=60.0), shared_limits(None)) == (None, None)


def test_with_a_url_there_is_a_mirror_and_nothing_is_connected() -> None:
    assert isinstance(state_mirror("redis://nowhere.invalid:1/0", keep_s=60.0), RedisMirror)


def test_with_a_url_limits_are_shared_and_nothing_is_connected() -> None:
    assert isinstance(shared_limits("redis://nowhere.invalid:1/0"), RedisLimits)


@pytest.mark.parametrize("url", ["redis://:hush@h:99999999/0", "redis://:hush@[::1/0", "http://:hush@h"])
def test_a_url_that_is_none_is_refused_and_not_quoted(url: str) -> None:
    with pytest.raises(ConfigError, match="TROY_REDIS_URL") as refused:
        state_mirror(url, keep_s=60.0)
    assert "hush" not in str(refused.value)


def test_a_missing_library_is_named_with_its_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("redis_mirror", "redis_limits"):
        monkeypatch.setitem(sys.modules, f"troyproxy.store.{module}", None)
    with pytest.raises(ConfigError, match=r"pip install 'troyproxy\[redis\]'"):
        state_mirror("redis://h", keep_s=60.0)
    with pytest.raises(ConfigError, match=r"pip install 'troyproxy\[redis\]'"):
        shared_limits("redis://h")
