"""Opens the one door to Redis, if a Redis is configured: the library is an extra and is imported only then."""

from __future__ import annotations

from troyproxy.errors import ConfigError
from troyproxy.ports import SharedAttempts, SharedLimits, StateMirror


def state_mirror(url: str | None, *, keep_s: float) -> StateMirror | None:
    """Return the mirror behind ``TROY_REDIS_URL``, not connected; None without it. Raises ConfigError."""
    if url is None:
        return None
    try:
        from troyproxy.store.redis_mirror import RedisMirror  # noqa: PLC0415 -- an extra
    except ImportError as exc:
        raise ConfigError("the Redis client is missing: pip install 'troyproxy[redis]'") from exc
    return RedisMirror(url, keep_s=keep_s)


def shared_limits(url: str | None) -> SharedLimits | None:
    """Return where instances count the limits of keys together; None without a Redis. Raises ConfigError."""
    if url is None:
        return None
    try:
        from troyproxy.store.redis_limits import RedisLimits  # noqa: PLC0415 -- an extra
    except ImportError as exc:
        raise ConfigError("the Redis client is missing: pip install 'troyproxy[redis]'") from exc
    return RedisLimits(url)


def shared_attempts(url: str | None) -> SharedAttempts | None:
    """Return where instances tell each other of attempts; None without a Redis. Raises ConfigError."""
    if url is None:
        return None
    try:
        from troyproxy.store.redis_attempts import RedisAttempts  # noqa: PLC0415 -- an extra
    except ImportError as exc:
        raise ConfigError("the Redis client is missing: pip install 'troyproxy[redis]'") from exc
    return RedisAttempts(url)
