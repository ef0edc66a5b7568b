"""Sums by the day of what the upstream of each account answered, for the quota board.

Revises: 0004
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

KEYS = ("day", "provider", "account")
COUNTS = ("requests", "rate_limited", "embeddings", "tokens", "told")


def upgrade() -> None:
    """Add the table; it counts from now on."""
    op.create_table(
        "quota_daily",
        *(sa.Column(name, sa.Text(), nullable=False) for name in KEYS),
        *(sa.Column(name, sa.BigInteger(), nullable=False) for name in COUNTS),
        sa.PrimaryKeyConstraint(*KEYS, name=op.f("pk_quota_daily")),
    )


def downgrade() -> None:
    """Remove it again. What it counted is lost."""
    op.drop_table("quota_daily")
