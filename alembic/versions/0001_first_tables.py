"""The first tables: configuration, journals, control.

Revises: nothing
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create every table, and the one control row."""
    combos()
    connections()
    keys()
    model_overrides()
    state_events()
    usage_rows()
    control()


def downgrade() -> None:
    """Remove every table."""
    for table in ("control_events", "control", "usage_rows", "state_events", "model_overrides", "keys", "connections"):
        op.drop_table(table)
    op.drop_table("combo_members")
    op.drop_table("combos")


def serial() -> sa.Column[int]:
    """Return a column that numbers rows and never gives a number twice."""
    return sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False)


def combos() -> None:
    op.create_table(
        "combos",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("name_folded", sa.Text(), nullable=False),
        sa.Column("strategy", sa.Text(), nullable=False),
        sa.Column("config", sa.JSON(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_combos")),
        sa.UniqueConstraint("name", name=op.f("uq_combos_name")),
        sa.UniqueConstraint("name_folded", name=op.f("uq_combos_name_folded")),
    )
    op.create_table(
        "combo_members",
        sa.Column("combo_id", sa.Text(), nullable=False),
        sa.Column("position", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("model", sa.Text(), nullable=True),
        sa.Column("combo", sa.Text(), nullable=True),
        sa.Column("account", sa.Text(), nullable=True),
        sa.Column("weight", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["combo_id"], ["combos.id"], op.f("fk_combo_members_combo_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("combo_id", "position", name=op.f("pk_combo_members")),
    )


def connections() -> None:
    op.create_table(
        "connections",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("provider", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("name_folded", sa.Text(), nullable=False),
        sa.Column("api_key", sa.Text(), nullable=True),
        sa.Column("models", sa.JSON(), nullable=False),
        sa.Column("default_model", sa.Text(), nullable=True),
        sa.Column("tier", sa.Text(), nullable=True),
        sa.Column("priority", sa.Integer(), nullable=False),
        sa.Column("quota", sa.JSON(), nullable=True),
        sa.Column("quota_reset_interval_s", sa.Double(), nullable=True),
        sa.Column("max_inflight", sa.Integer(), nullable=True),
        sa.Column("token_expires_at", sa.Double(), nullable=True),
        sa.Column("active", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_connections")),
        sa.UniqueConstraint("provider", "name_folded", name=op.f("uq_connections_provider_name_folded")),
    )


def keys() -> None:
    op.create_table(
        "keys",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("name_folded", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("models", sa.JSON(), nullable=False),
        sa.Column("provider", sa.Text(), nullable=True),
        sa.Column("limits", sa.JSON(), nullable=False),
        sa.Column("leak", sa.JSON(), nullable=False),
        sa.Column("expires_at", sa.Double(), nullable=True),
        sa.Column("revoked_at", sa.Double(), nullable=True),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_keys")),
        sa.UniqueConstraint("digest", name=op.f("uq_keys_digest")),
        sa.UniqueConstraint("name_folded", name=op.f("uq_keys_name_folded")),
    )


def model_overrides() -> None:
    op.create_table(
        "model_overrides",
        sa.Column("spec", sa.Text(), nullable=False),
        sa.Column("model", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("spec", name=op.f("pk_model_overrides")),
    )


def state_events() -> None:
    op.create_table(
        "state_events",
        serial(),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("payload", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_state_events")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_state_events_at"), "state_events", ["at"])


def usage_rows() -> None:
    op.create_table(
        "usage_rows",
        sa.Column("request_id", sa.Text(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("route", sa.Text(), nullable=False),
        sa.Column("key_id", sa.Text(), nullable=True),
        sa.Column("key_name", sa.Text(), nullable=True),
        sa.Column("requested_model", sa.Text(), nullable=False),
        sa.Column("combo", sa.Text(), nullable=True),
        sa.Column("strategy", sa.Text(), nullable=True),
        sa.Column("stream", sa.Boolean(), nullable=False),
        sa.Column("status", sa.Integer(), nullable=False),
        sa.Column("outcome", sa.Text(), nullable=False),
        sa.Column("provider", sa.Text(), nullable=True),
        sa.Column("model", sa.Text(), nullable=True),
        sa.Column("account", sa.Text(), nullable=True),
        sa.Column("attempts", sa.JSON(), nullable=False),
        sa.Column("skipped", sa.JSON(), nullable=False),
        sa.Column("seed", sa.Text(), nullable=False),
        sa.Column("needs", sa.JSON(), nullable=False),
        sa.Column("est_tokens", sa.BigInteger(), nullable=False),
        *(sa.Column(f"{kind}_tokens", sa.BigInteger(), nullable=True) for kind in TOKENS),
        sa.Column("tokens_estimated", sa.Boolean(), nullable=True),
        sa.Column("wasted", sa.JSON(), nullable=True),
        sa.Column("cost_usd", sa.Double(), nullable=True),
        sa.Column("duration_ms", sa.Double(), nullable=False),
        sa.Column("overhead_ms", sa.Double(), nullable=True),
        sa.Column("first_token_ms", sa.Double(), nullable=True),
        sa.Column("trail", sa.Text(), nullable=False),
        sa.Column("adapted", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("request_id", name=op.f("pk_usage_rows")),
    )
    op.create_index(op.f("ix_usage_rows_at"), "usage_rows", ["at"])


TOKENS = ("input", "output", "cached", "reasoning", "audio")


def control() -> None:
    row = op.create_table(
        "control",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_control")),
    )
    op.bulk_insert(row, [{"id": 1, "revision": 0}])
    op.create_table(
        "control_events",
        serial(),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("payload", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_control_events")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_control_events_at"), "control_events", ["at"])
