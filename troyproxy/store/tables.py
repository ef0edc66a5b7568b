"""Every table, as SQLAlchemy Core. The migrations in ``alembic/versions`` must equal these (a test compares them).

Times are unix seconds. What is only ever read back whole is JSON; what is searched or summed is a column.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    text,
)

METADATA: Final = MetaData(
    # Constraints need names of their own: SQLite's batch mode can drop a constraint by its name only.
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    }
)

_SERIAL: Final = BigInteger().with_variant(Integer, "sqlite")  # SQLite numbers rows by itself for INTEGER only
# sqlite_autoincrement below: without it a pruned table begins at 1 again, and readers would miss what comes.

CONNECTIONS: Final = Table(
    "connections",
    METADATA,
    Column("id", Text, primary_key=True),
    Column("provider", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("name_folded", Text, nullable=False),
    Column("api_key", Text),  # a Fernet token, never the key itself
    Column("models", JSON, nullable=False),
    Column("default_model", Text),
    Column("tier", Text),
    Column("priority", Integer, nullable=False),
    Column("quota", JSON(none_as_null=True)),
    Column("quota_reset_interval_s", Double),
    Column("max_inflight", Integer),
    Column("token_expires_at", Double),
    Column("active", Boolean, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("version", Integer, nullable=False, server_default=text("1")),
    UniqueConstraint("provider", "name_folded"),
)

COMBOS: Final = Table(
    "combos",
    METADATA,
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    Column("name_folded", Text, nullable=False, unique=True),
    Column("strategy", Text, nullable=False),
    Column("config", JSON, nullable=False),
    Column("version", Integer, nullable=False),
    Column("created_at", Double, nullable=False),
)

COMBO_MEMBERS: Final = Table(
    "combo_members",
    METADATA,
    Column("combo_id", Text, ForeignKey("combos.id", ondelete="CASCADE"), primary_key=True),
    Column("position", Integer, primary_key=True, autoincrement=False),
    Column("model", Text),
    Column("combo", Text),  # by name, and perhaps not there yet: no foreign key
    Column("account", Text),
    Column("weight", Double, nullable=False),
)

KEYS: Final = Table(
    "keys",
    METADATA,
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("name_folded", Text, nullable=False, unique=True),
    Column("digest", Text, nullable=False, unique=True),  # SHA-256 in hex
    Column("models", JSON, nullable=False),
    Column("provider", Text),
    Column("limits", JSON, nullable=False),
    Column("leak", JSON, nullable=False),
    Column("expires_at", Double),
    Column("revoked_at", Double),
    Column("created_at", Double, nullable=False),
    Column("version", Integer, nullable=False, server_default=text("1")),
    Column("previous_digest", Text),  # of the secret before the last rotation
    Column("previous_until", Double),
    Index(None, "previous_digest", unique=True),
)

MODEL_OVERRIDES: Final = Table(
    "model_overrides",
    METADATA,
    Column("spec", Text, primary_key=True),
    Column("model", JSON, nullable=False),
    Column("version", Integer, nullable=False, server_default=text("1")),
)

PROVIDERS: Final = Table(
    "providers",
    METADATA,
    Column("id", Text, primary_key=True),
    Column("config", JSON, nullable=False),  # as in the config file, without accounts
    Column("version", Integer, nullable=False),
    Column("created_at", Double, nullable=False),
)

STATE_EVENTS: Final = Table(
    "state_events",
    METADATA,
    Column("id", _SERIAL, primary_key=True),
    Column("at", Double, nullable=False),
    Column("version", Integer, nullable=False),
    Column("source", Text, nullable=False),
    Column("type", Text, nullable=False),
    Column("payload", JSON, nullable=False),
    Index(None, "at"),
    sqlite_autoincrement=True,
)

USAGE_ROWS: Final = Table(
    "usage_rows",
    METADATA,
    Column("request_id", Text, primary_key=True),
    Column("at", Double, nullable=False),
    Column("route", Text, nullable=False),
    Column("key_id", Text),
    Column("key_name", Text),
    Column("requested_model", Text, nullable=False),
    Column("combo", Text),
    Column("strategy", Text),
    Column("stream", Boolean, nullable=False),
    Column("status", Integer, nullable=False),
    Column("outcome", Text, nullable=False),
    Column("provider", Text),
    Column("model", Text),
    Column("account", Text),
    Column("attempts", JSON, nullable=False),
    Column("skipped", JSON, nullable=False),
    Column("seed", Text, nullable=False),  # 64 bits without a sign fit no integer column
    Column("needs", JSON, nullable=False),
    Column("est_tokens", BigInteger, nullable=False),
    Column("input_tokens", BigInteger),  # NULL: nothing was reported or estimated
    Column("output_tokens", BigInteger),
    Column("cached_tokens", BigInteger),
    Column("reasoning_tokens", BigInteger),
    Column("audio_tokens", BigInteger),
    Column("tokens_estimated", Boolean),
    Column("wasted", JSON(none_as_null=True)),
    Column("cost_usd", Double),
    Column("duration_ms", Double, nullable=False),
    Column("overhead_ms", Double),
    Column("first_token_ms", Double),
    Column("trail", Text, nullable=False),
    Column("adapted", Text, nullable=False),
    Column("tries", Integer),  # how many attempts, and how many of them at another provider than the one before
    Column("failovers", Integer),
    Column("leaks", Integer),  # attempts that wrote a tool call as text; NULL before anybody counted
    Index(None, "at"),
)

USAGE_DAILY: Final = Table(
    "usage_daily",
    METADATA,
    # One row for each day (UTC), key, provider and model; "" where a request had none of it.
    Column("day", Text, primary_key=True),
    Column("key_id", Text, primary_key=True),
    Column("provider", Text, primary_key=True),
    Column("model", Text, primary_key=True),
    Column("key_name", Text, nullable=False),
    Column("requests", BigInteger, nullable=False),
    Column("succeeded", BigInteger, nullable=False),
    Column("client_errors", BigInteger, nullable=False),
    Column("failed", BigInteger, nullable=False),
    Column("cancelled", BigInteger, nullable=False),
    Column("attempts", BigInteger, nullable=False),
    Column("input_tokens", BigInteger, nullable=False),
    Column("output_tokens", BigInteger, nullable=False),
    Column("cached_tokens", BigInteger, nullable=False),
    Column("reasoning_tokens", BigInteger, nullable=False),
    Column("wasted_tokens", BigInteger, nullable=False),
    Column("cost_usd", Double, nullable=False),
    Column("duration_ms", Double, nullable=False),
    Index(None, "key_id", "day"),
)

QUOTA_DAILY: Final = Table(
    "quota_daily",
    METADATA,
    # One row for each day (UTC), provider and account (by name) that was asked.
    Column("day", Text, primary_key=True),
    Column("provider", Text, primary_key=True),
    Column("account", Text, primary_key=True),
    Column("requests", BigInteger, nullable=False),
    Column("rate_limited", BigInteger, nullable=False),
    Column("embeddings", BigInteger, nullable=False),
    Column("tokens", BigInteger, nullable=False),
    Column("told", BigInteger, nullable=False),  # how many of the requests told their tokens
)

CONTROL: Final = Table(
    "control",
    METADATA,
    Column("id", Integer, primary_key=True, autoincrement=False),  # always 1
    Column("revision", BigInteger, nullable=False),
)

CONTROL_EVENTS: Final = Table(
    "control_events",
    METADATA,
    Column("id", _SERIAL, primary_key=True),
    Column("at", Double, nullable=False),
    Column("kind", Text, nullable=False),
    Column("payload", JSON, nullable=False),
    Index(None, "at"),
    sqlite_autoincrement=True,
)
