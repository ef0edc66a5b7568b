"""Providers of the database, versions for If-Match, and sums of usage: by the day, and attempts of each request.

Revises: 0001
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

VERSIONED = ("connections", "keys", "model_overrides")
COUNTS = (
    "requests",
    "succeeded",
    "client_errors",
    "failed",
    "cancelled",
    "attempts",
    "input_tokens",
    "output_tokens",
    "cached_tokens",
    "reasoning_tokens",
    "wasted_tokens",
)


def upgrade() -> None:
    """Add what is missing; rows that are there begin at version 1."""
    for table in VERSIONED:
        op.add_column(table, sa.Column("version", sa.Integer(), nullable=False, server_default=sa.text("1")))
    op.create_table(
        "providers",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("config", sa.JSON(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_providers")),
    )
    usage_daily()
    op.execute(sa.text(SUMMED.format(**_dialect())))
    op.add_column("usage_rows", sa.Column("tries", sa.Integer(), nullable=True))
    op.add_column("usage_rows", sa.Column("failovers", sa.Integer(), nullable=True))
    op.execute(sa.text(COUNTED.format(**_dialect())))


def downgrade() -> None:
    """Remove it again. The daily sums of pruned rows are lost by that."""
    with op.batch_alter_table("usage_rows") as batch:
        batch.drop_column("failovers")
        batch.drop_column("tries")
    op.drop_table("usage_daily")
    op.drop_table("providers")
    for table in VERSIONED:
        with op.batch_alter_table(table) as batch:
            batch.drop_column("version")


def usage_daily() -> None:
    keys = ("day", "key_id", "provider", "model")
    op.create_table(
        "usage_daily",
        *(sa.Column(name, sa.Text(), nullable=False) for name in (*keys, "key_name")),
        *(sa.Column(name, sa.BigInteger(), nullable=False) for name in COUNTS),
        sa.Column("cost_usd", sa.Double(), nullable=False),
        sa.Column("duration_ms", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint(*keys, name=op.f("pk_usage_daily")),
    )
    op.create_index(op.f("ix_usage_daily_key_id_day"), "usage_daily", ["key_id", "day"])


# What the writer does from now on, once for the rows that are there. The limits are those of `store.daily`.
SUMMED = """
INSERT INTO usage_daily (
    day, key_id, provider, model, key_name, requests, succeeded, client_errors, failed, cancelled, attempts,
    input_tokens, output_tokens, cached_tokens, reasoning_tokens, wasted_tokens, cost_usd, duration_ms
)
SELECT
    {day}, substr(coalesce(key_id, ''), 1, 150), substr(coalesce(provider, ''), 1, 150),
    substr(coalesce(model, ''), 1, 200), max(coalesce(key_name, '')), count(*),
    sum(CASE WHEN outcome = 'ok' THEN 1 ELSE 0 END),
    sum(CASE WHEN outcome = 'client_error' THEN 1 ELSE 0 END),
    sum(CASE WHEN outcome IN ('upstream_error', 'refused', 'truncated') THEN 1 ELSE 0 END),
    sum(CASE WHEN outcome = 'cancelled' THEN 1 ELSE 0 END),
    sum(json_array_length(attempts)),
    sum(coalesce(input_tokens, 0)), sum(coalesce(output_tokens, 0)), sum(coalesce(cached_tokens, 0)),
    sum(coalesce(reasoning_tokens, 0)), sum(coalesce({wasted_input}, 0) + coalesce({wasted_output}, 0)),
    sum(coalesce(cost_usd, 0)), sum(duration_ms)
FROM usage_rows
GROUP BY 1, 2, 3, 4
"""
COUNTED = """
UPDATE usage_rows SET tries = json_array_length(attempts), failovers = CASE WHEN json_array_length(attempts) < 2 THEN 0
ELSE (SELECT count(*) FROM {attempts} a JOIN {attempts} b ON b.{place} = a.{place} + 1
WHERE {provider_of_a} <> {provider_of_b}) END
"""
SQLITE = {
    "day": "strftime('%Y-%m-%d', at, 'unixepoch')",
    "wasted_input": "json_extract(wasted, '$.input')",
    "wasted_output": "json_extract(wasted, '$.output')",
    "attempts": "json_each(usage_rows.attempts)",
    "place": "key",
    "provider_of_a": "json_extract(a.value, '$.provider')",
    "provider_of_b": "json_extract(b.value, '$.provider')",
}
POSTGRESQL = {
    "day": "to_char(to_timestamp(at) AT TIME ZONE 'UTC', 'YYYY-MM-DD')",
    "wasted_input": "CAST(wasted ->> 'input' AS BIGINT)",
    "wasted_output": "CAST(wasted ->> 'output' AS BIGINT)",
    "attempts": "json_array_elements(usage_rows.attempts) WITH ORDINALITY",
    "place": "ordinality",
    "provider_of_a": "a.value ->> 'provider'",
    "provider_of_b": "b.value ->> 'provider'",
}


def _dialect() -> dict[str, str]:
    return SQLITE if op.get_bind().dialect.name == "sqlite" else POSTGRESQL
