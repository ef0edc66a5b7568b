"""The migration scripts, and what alembic does with them inside a transaction of ours.

Alembic takes a tenth of a second to load, and a tenth of the memory, so only `store.migrations` imports this module,
when there is something to do. The scripts are data beside the code: ``troyproxy/_migrations`` in an installed package,
``alembic/`` in a checkout.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util.exc import CommandError
from sqlalchemy import Connection

from troyproxy.errors import ConfigError
from troyproxy.store.tables import METADATA


def folder() -> Path:
    """Return the folder with ``env.py``. Raises ConfigError when the installation lacks it."""
    package = Path(__file__).resolve().parents[1]
    for found in (package / "_migrations", package.parent / "alembic"):
        if (found / "env.py").is_file():
            return found
    raise ConfigError("the migration scripts are missing: install troyproxy again")


def revisions() -> set[str]:
    """Return every revision that there is a script for."""
    return {script.revision for script in ScriptDirectory.from_config(_config()).walk_revisions()}


def upgrade(connection: Connection, revision: str) -> None:
    """Bring the database to *revision*. Raises ConfigError."""
    _run(connection, lambda config: command.upgrade(config, revision))


def downgrade(connection: Connection, revision: str) -> None:
    """Take the database back to *revision*. Raises ConfigError."""
    _run(connection, lambda config: command.downgrade(config, revision))


def differences(connection: Connection) -> tuple[str, ...]:
    """Return where the tables differ from the models."""
    context = MigrationContext.configure(connection, opts={"compare_type": True})
    return tuple(str(difference) for difference in compare_metadata(context, METADATA))


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(folder()).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    return config


def _run(connection: Connection, work: Callable[[Config], None]) -> None:
    config = _config()
    config.attributes["connection"] = connection
    try:
        work(config)
    except CommandError as exc:
        raise ConfigError(f"cannot migrate the database: {exc}") from exc
