"""Providers of the database, versions for If-Match, and the daily sums of usage.

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


def downgrade() -> None:
    """Remove it again. The daily sums of pruned rows are lost by that."""
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
