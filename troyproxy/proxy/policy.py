"""The numbers that the walk and the relay go by, in seconds and counts, taken from the settings once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self

from troyproxy.catalog.providers import Provider
from troyproxy.proxy.intake import PATIENCE, Patience
from troyproxy.resilience.breaker import BreakerPolicy
from troyproxy.resilience.health import HealthPolicy, journal_horizon_s
from troyproxy.settings.values import Settings

MIB = 1 << 20
KEPT_S: Final = 5.0
"""Seconds that an attempt leaves to each member behind it, and gets itself where there are as many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WalkPolicy:
    """Deadlines, caps and switches of the walk. Names are those of the settings."""

    max_inflight: int = 10
    connect_s: float = 10.0
    stream_idle_s: float = 60.0
    first_output_s: float = 300.0
    upstream_timeout_s: float = 300.0
    request_timeout_s: float = 600.0
    max_attempts: int = 30
    retry_budget: float = 0.2
    """Attempts beyond the first, per request, over the whole process; 0 = no limit."""
    early_commit_s: float = 0.0
    keepalive_s: float = 15.0
    write_stall_s: float = 60.0
    max_event: int = 16 * MIB
    max_body: int = 32 * MIB
    max_cooldown_s: float = 1800.0
    retry_timeouts: bool = True
    deny_unknown: bool = False
    mask_auth: bool = True
    expose: str = "full"
    patience: Patience = PATIENCE
    """How long a request body is waited for."""
    trace: bool = False
    head_events: int = 64
    head_bytes: int = 256 * 1024
    error_body_s: float = 10.0
    """Longest wait for the body of an upstream's error answer."""
    provider_faults: int = 3
    """Transport faults of one provider within one request after which its other members are skipped."""

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """Return the policy that *settings* ask for."""
        return cls(
            max_inflight=settings.max_inflight,
            connect_s=settings.connect_timeout_ms / 1000,
            stream_idle_s=settings.stream_idle_ms / 1000,
            first_output_s=settings.first_output_ms / 1000,
            upstream_timeout_s=settings.upstream_timeout_ms / 1000,
            request_timeout_s=settings.request_timeout_ms / 1000,
            max_attempts=settings.max_attempts,
            retry_budget=settings.retry_budget,
            early_commit_s=settings.early_commit_ms / 1000,
            keepalive_s=float(settings.keepalive_s),
            write_stall_s=settings.write_stall_ms / 1000,
            max_event=settings.max_event_mb * MIB,
            max_body=settings.max_body_mb * MIB,
            max_cooldown_s=settings.max_cooldown_ms / 1000,
            retry_timeouts=settings.retry_timeouts == "member",
            deny_unknown=settings.unknown_capability == "deny",
            mask_auth=settings.upstream_auth_errors == "mask",
            expose=settings.expose,
            patience=_patience(settings),
            trace=settings.trace,
        )

    def connect_of(self, provider: Provider) -> float:
        """Longest connect and TLS handshake to *provider*."""
        return provider.timeouts.connect_s or self.connect_s

    def first_byte_of(self, provider: Provider, *, stream: bool) -> float:
        """Longest wait for the response head."""
        if stream:
            return provider.timeouts.first_byte_s or self.stream_idle_s
        return provider.timeouts.total_s or self.upstream_timeout_s

    def first_output_of(self, provider: Provider) -> float:
        """Longest wait from the head of a stream to its first output."""
        return provider.timeouts.first_output_s or self.first_output_s

    def idle_of(self, provider: Provider) -> float:
        """Longest silence between two events of a stream."""
        return provider.timeouts.idle_s or self.stream_idle_s


def attempt_limit_s(own_s: float, left_s: float, later: int) -> float:
    """Return an attempt's limit: its own, or less so that each of *later* members keeps five seconds."""
    return min(own_s, max(KEPT_S, left_s - KEPT_S * later))


def health_policy(settings: Settings) -> HealthPolicy:
    """Return what breakers and cooldowns go by."""
    return HealthPolicy(
        breaker=BreakerPolicy(
            failures=settings.breaker_failures,
            ratio=settings.breaker_ratio,
            window_s=settings.breaker_window_s,
            open_s=settings.breaker_open_s,
        )
    )


def journal_keep_s(settings: Settings) -> float:
    """Return how long an event of the health state can have an effect, in seconds: so long it is kept and shared."""
    return journal_horizon_s(health_policy(settings), WalkPolicy.of(settings).max_cooldown_s)


def _patience(settings: Settings) -> Patience:
    """A client that does not send gets the time of one that does not read; in all, that of the walk, if it is more."""
    stall_s = settings.write_stall_ms / 1000
    return Patience(stall_s, max(stall_s, settings.request_timeout_ms / 1000))
