"""A rotated key keeps the digest of its old secret for as long as that still works.

Revises: 0002
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns; no key has an old secret yet."""
    op.add_column("keys", sa.Column("previous_digest", sa.Text(), nullable=True))
    op.add_column("keys", sa.Column("previous_until", sa.Double(), nullable=True))
    op.create_index(op.f("ix_keys_previous_digest"), "keys", ["previous_digest"], unique=True)


def downgrade() -> None:
    """Remove them again. Old secrets end with that."""
    op.drop_index(op.f("ix_keys_previous_digest"), "keys")
    with op.batch_alter_table("keys") as batch:
        batch.drop_column("previous_until")
        batch.drop_column("previous_digest")
