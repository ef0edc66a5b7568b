"""How the text of a setting becomes its value: one rule per field of `Settings`, with its range and its one-line doc.

`PARSERS` is equal to the fields of `Settings` (a test holds that). A parser takes stripped text and raises ValueError;
what is allowed is said by the rule, so that every error of a setting has one shape. No I/O.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final
from urllib.parse import urlsplit

from troyproxy.catalog.models import EFFORTS
from troyproxy.catalog.secret import Secret
from troyproxy.leaks.modes import LeakMode

DAY_MS: Final = 86_400_000
_ON: Final = frozenset({"on", "true", "yes", "1"})
_OFF: Final = frozenset({"off", "false", "no", "0"})
_LEVELS: Final = ("debug", "info", "warning", "error")
_FORMS: Final = ("json", "human")


@dataclass(frozen=True, slots=True)
class Rule:
    """One setting: how it is read and how it is described."""

    parse: Callable[[str], object]
    allowed: str
    doc: str
    schema: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({"type": "string"}))
    secret: bool = False
    """The value is never shown: not in an error, not by `config show`."""
    also: tuple[str, ...] = ()
    """Further environment variables that mean this setting, behind its own."""
    in_file: bool = True


def _whole(low: int, high: int, doc: str, *, unset: bool = False) -> Rule:
    def parse(text: str) -> int | None:
        if unset and not text:
            return None
        if not re.fullmatch(r"[0-9]{1,15}", text) or not low <= int(text) <= high:
            raise ValueError
        return int(text)

    schema = {"type": "integer", "minimum": low, "maximum": high}
    return Rule(parse, f"a whole number from {low} to {high}", doc, schema)


def _number(low: float, high: float, doc: str) -> Rule:
    def parse(text: str) -> float:
        if not re.fullmatch(r"[0-9]{1,15}(\.[0-9]{1,9})?", text) or not low <= float(text) <= high:
            raise ValueError
        return float(text)

    return Rule(parse, f"a number from {low:g} to {high:g}", doc, {"type": "number", "minimum": low, "maximum": high})


def _choice(doc: str, *values: str, also: Mapping[str, str] | None = None) -> Rule:
    means = {value: value for value in values} | dict(also or {})

    def parse(text: str) -> str:
        if text.lower() not in means:
            raise ValueError
        return means[text.lower()]

    # YAML reads a bare `off` as false, so editors must accept the boolean as well.
    schema = {"enum": [*means, *([False] if "off" in means else [])]}
    return Rule(parse, " or ".join(means), doc, schema)


def _level(doc: str) -> Rule:
    def parse(text: str) -> str | None:
        if text and text not in EFFORTS:
            raise ValueError
        return text or None

    return Rule(parse, f"one of {', '.join(EFFORTS)}", doc, {"enum": ["", *EFFORTS]})


def _switch(doc: str) -> Rule:
    def parse(text: str) -> bool:
        if text.lower() not in _ON | _OFF:
            raise ValueError
        return text.lower() in _ON

    return Rule(parse, "on or off (1 or 0)", doc, {"enum": [True, False, 0, 1, "on", "off"]})


def _word(doc: str, *, unset: bool = False) -> Rule:
    def parse(text: str) -> str | None:
        if not text and unset:
            return None
        if not text or not text.isprintable() or " " in text:
            raise ValueError
        return text

    return Rule(parse, "a text without blanks", doc)


def _secret(doc: str) -> Rule:
    def parse(text: str) -> Secret:
        if not text or not text.isprintable() or " " in text:
            raise ValueError
        return Secret(text)

    return Rule(parse, "a non-empty text without blanks", doc, secret=True)


def _log(text: str) -> str:
    level, _, form = text.lower().replace(" ", "").partition(",")
    level = "warning" if level == "warn" else level
    if level not in _LEVELS or (form and form not in _FORMS):
        raise ValueError
    return f"{level},{form}" if form else level


def _database_url(text: str) -> str:
    if not re.match(r"[a-z][a-z0-9+]*://", text):
        raise ValueError
    return text


def _redis_url(text: str) -> str | None:
    if text and not re.fullmatch(r"(rediss?|unix)://[!-~]+", text):
        raise ValueError
    return text or None


def _catalog_url(text: str) -> str | None:
    if not text:
        return None
    parts = urlsplit(text)
    host = parts.hostname or ""
    plain = parts.scheme == "http" and (host == "localhost" or re.fullmatch(r"127(\.[0-9]{1,3}){3}|::1", host))
    if not re.fullmatch(r"[!-~]+", text) or not host or parts.fragment or "@" in parts.netloc:
        raise ValueError
    if parts.scheme != "https" and not plain:
        raise ValueError
    _ = parts.port
    return text


def split_list(text: str) -> tuple[str, ...]:
    """Return the items of a comma-separated text, blanks removed, empty items dropped."""
    return tuple(item for item in (part.strip() for part in text.split(",")) if item)


def _origin(text: str) -> str:
    parts = urlsplit(text)
    if text != "*" and (parts.scheme not in {"http", "https"} or not parts.hostname or parts.path.rstrip("/")):
        raise ValueError
    if parts.query or parts.fragment or parts.username is not None:
        raise ValueError
    return text.rstrip("/")


def _network(text: str) -> str:
    if text != "*":
        ipaddress.ip_network(text, strict=False)
    return text


def _listing(item: Callable[[str], str], allowed: str, doc: str) -> Rule:
    schema = {"type": ["array", "string"], "items": {"type": "string"}}
    return Rule(lambda text: tuple(map(item, split_list(text))), allowed, doc, schema)


def _root_path(text: str) -> str:
    if text and not re.fullmatch(r"(/[A-Za-z0-9._~-]+)+/?", text):
        raise ValueError
    return text.rstrip("/")


PARSERS: Final[Mapping[str, Rule]] = MappingProxyType(
    {
        "config": Rule(_word("").parse, "a path", "the config file", in_file=False),
        "host": _word("listen address"),
        "port": _whole(0, 65_535, "listen port (0 = any free one)"),
        "database_url": Rule(
            _database_url, "an SQLAlchemy URL", "where everything durable is kept; SQLite by default", secret=True
        ),
        "redis_url": Rule(
            _redis_url,
            "a redis://, rediss:// or unix:// URL",
            "shares cooldowns, circuits and measurements of instances",
            secret=True,
        ),
        "secret_key": _secret("encrypts upstream keys at rest; generated for SQLite"),
        "log": Rule(
            _log, "debug, info, warning or error, then perhaps ,json or ,human", "log level and form (`debug,json`)"
        ),
        "auth": _switch("`off` only on a loopback listener: no client key is asked for"),
        "admin_token": _secret("opens the admin API and console; generated"),
        "expose": _choice("`id`: clients see only request id, attempts and retry-after", "full", "id"),
        "max_inflight": _whole(1, 100_000, "preferred in-flight requests per account"),
        "stream_idle_ms": _whole(1000, DAY_MS, "time to a stream's first byte, and longest silence between events"),
        "first_output_ms": _whole(1, DAY_MS, "longest wait for the first real output of a stream"),
        "upstream_timeout_ms": _whole(1000, DAY_MS, "deadline of a non-stream request"),
        "request_timeout_ms": _whole(1, DAY_MS, "one deadline over the whole walk"),
        "max_attempts": _whole(1, 1000, "upstream attempts per request"),
        "trace": _switch("`1` prints the play-by-play of each request"),
        "default_provider": Rule(
            _word("", unset=True).parse,
            "a provider id",
            "the preferred provider of the default resolvers (also read as `AI_PROVIDER`)",
            also=("AI_PROVIDER",),
        ),
        "default_effort": _level("the effort of chat requests that name none, for models that reason"),
        "connect_timeout_ms": _whole(1, DAY_MS, "connect and TLS"),
        "early_commit_ms": _whole(0, DAY_MS, "send headers and comments before the first output (0 = off)"),
        "keepalive_s": _number(0, 86_400, "comment when the upstream is silent (0 = off)"),
        "write_stall_ms": _whole(1, DAY_MS, "how long a client may not read, or not send its body"),
        "max_event_mb": _whole(1, 1024, "longest SSE event"),
        "max_cooldown_ms": _whole(1, 30 * DAY_MS, "cap on a retry hint"),
        "breaker_failures": _whole(1, 10_000, "failures within the window that open a circuit"),
        "breaker_ratio": _number(0.01, 1, "share of failures within the window that opens a circuit"),
        "breaker_window_s": _number(1, 86_400, "the window in which failures are counted"),
        "breaker_open_s": _number(1, 86_400, "how long an open circuit stays open before a probe"),
        "retry_budget": _number(0, 10, "extra attempts per request, over the whole process (0 = no limit)"),
        # This version's best mode is `suppress`, so `auto` means it.
        "leak": _choice("tool-leak mode", *map(str, LeakMode)),
        "auto_models": _choice("`all`: every model of a provider is in the pool of `auto`", "default", "all"),
        "auto_exploration": _number(0, 1, "share of `auto` plans that try another candidate than the best (0 = none)"),
        "transport": _choice(
            "upstream transport: `fast` pools connections of its own, `httpx` uses that library", "fast", "httpx"
        ),
        "retry_timeouts": _choice("`never`: a timeout after the body was sent ends the walk", "member", "never"),
        "usage_days": _whole(0, 36_500, "days that usage rows are kept (0 = for ever); daily sums stay"),
        "metrics_models": _whole(1, 100_000, "distinct model labels per process, then `other`"),
        "unknown_capability": _choice("`deny` skips members whose capability is unknown", "allow", "deny"),
        "upstream_auth_errors": _choice("`verbatim` shows an upstream's 401/402/403 as it is", "mask", "verbatim"),
        "metrics_port": _whole(0, 65_535, "serves `/metrics` on a port of its own", unset=True),
        "metrics_token": _secret("opens `/metrics` beside the admin token"),
        "shutdown_s": _number(0, 86_400, "grace for streams in flight"),
        "drain_s": _number(0, 600, "how long new connections are still taken after SIGTERM"),
        "max_body_mb": _whole(1, 4096, "request body after decompression"),
        "model_catalog_url": Rule(
            _catalog_url,
            "an https:// URL, or http:// on loopback, without a password",
            "refreshes the model catalogue from here: at the start, every 24 h and on demand",
            secret=True,
        ),
        "cors_origins": _listing(_origin, "origins like https://app.example, comma-separated, or *", "allowed origins"),
        "trusted_proxies": _listing(
            _network, "IP addresses or networks, comma-separated, or *", "whose `X-Forwarded-*` is believed"
        ),
        "root_path": Rule(_root_path, "empty or /prefix", "when mounted or behind a prefix"),
    }
)
