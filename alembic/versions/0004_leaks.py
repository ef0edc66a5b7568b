"""A request tells how many of its attempts wrote a tool call as text.

Revises: 0003
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; nobody counted before."""
    op.add_column("usage_rows", sa.Column("leaks", sa.Integer(), nullable=True))


def downgrade() -> None:
    """Remove it again."""
    with op.batch_alter_table("usage_rows") as batch:
        batch.drop_column("leaks")
