"""Every setting as one frozen value. How a text becomes a value, and what is allowed, is in `parsers`.

A field is a ``TROY_`` variable in lower case and ``settings.<field>`` in the file. Units are in the names: ``_ms``
milliseconds, ``_s`` seconds, ``_mb`` mebibytes. A setting whose feature has not landed is no field here.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from troyproxy.catalog.secret import Secret


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of one gateway, validated. The defaults are those of the documentation's table."""

    config: str | None = None
    host: str = "127.0.0.1"
    port: int = 31337
    database_url: str = field(default="sqlite+aiosqlite:///./data/troy.db", repr=False)
    """May hold a password, so it is kept out of the repr; show it through `show.without_password`."""
    redis_url: str | None = field(default=None, repr=False)
    """As `database_url`: it may hold a password."""
    secret_key: Secret | None = None
    log: str = "info"
    """Level, or level and form: ``info``, ``debug,json``. Read it through `log_level` and `log_form`."""
    auth: bool = True
    admin_token: Secret | None = None
    expose: str = "full"
    """``full`` or ``id``."""
    max_inflight: int = 10
    stream_idle_ms: int = 60_000
    first_output_ms: int = 300_000
    upstream_timeout_ms: int = 300_000
    request_timeout_ms: int = 600_000
    max_attempts: int = 30
    trace: bool = False
    default_provider: str | None = None
    default_effort: str | None = None
    """None: a request that names no effort gets none."""
    connect_timeout_ms: int = 10_000
    early_commit_ms: int = 0
    """0 = off."""
    keepalive_s: float = 15.0
    """0 = off."""
    write_stall_ms: int = 60_000
    max_event_mb: int = 16
    max_cooldown_ms: int = 1_800_000
    breaker_failures: int = 3
    breaker_ratio: float = 0.5
    breaker_window_s: float = 60.0
    breaker_open_s: float = 30.0
    retry_budget: float = 0.2
    leak: str = "auto"
    """``off``, ``observe``, ``suppress``, ``repair``, ``failover`` or ``auto``."""
    auto_models: str = "default"
    """``default`` or ``all``."""
    auto_exploration: float = 0.05
    transport: str = "fast"
    retry_timeouts: str = "member"
    """``member`` or ``never``."""
    usage_days: int = 90
    """0 = for ever."""
    metrics_models: int = 200
    unknown_capability: str = "allow"
    """``allow`` or ``deny``."""
    upstream_auth_errors: str = "mask"
    """``mask`` or ``verbatim``."""
    metrics_port: int | None = None
    metrics_token: Secret | None = None
    shutdown_s: float = 60.0
    drain_s: float = 2.0
    """Part of no grace: it comes before `shutdown_s`."""
    max_body_mb: int = 32
    model_catalog_url: str | None = field(default=None, repr=False)
    """Its query may hold a token, so it is kept out of the repr."""
    cors_origins: tuple[str, ...] = ()
    trusted_proxies: tuple[str, ...] = ("127.0.0.1",)
    root_path: str = ""

    @property
    def log_level(self) -> str:
        """``debug``, ``info``, ``warning`` or ``error``."""
        return self.log.partition(",")[0]

    @property
    def log_form(self) -> str | None:
        """``json`` or ``human``; None = human on a terminal, JSON otherwise."""
        return self.log.partition(",")[2] or None
