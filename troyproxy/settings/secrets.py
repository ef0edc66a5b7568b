"""Secrets that the gateway makes for itself: files in the data folder, written once, shared by all workers."""

from __future__ import annotations

import os
import secrets
import tempfile
from base64 import urlsafe_b64encode
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from troyproxy.catalog.secret import Secret
from troyproxy.errors import ConfigError
from troyproxy.settings.values import Settings

SECRET_KEY: Final = "secret.key"  # noqa: S105 -- a file's name
ADMIN_TOKEN: Final = "admin.token"  # noqa: S105 -- a file's name
DEMO_KEY: Final = "demo.key"
_MAX_BYTES: Final = 4096


@dataclass(frozen=True, slots=True)
class Generated:
    """A secret, its file, and whether this call made it."""

    secret: Secret
    path: Path
    created: bool


def data_folder(database_url: str) -> Path:
    """Return the folder of generated secrets: that of the SQLite file, else ``data``. Makes nothing."""
    scheme, _, rest = database_url.partition("://")
    path = rest.partition("?")[0].removeprefix("/").removeprefix("file:")
    if not scheme.startswith("sqlite") or not path or ":memory:" in path:
        return Path("data")
    return Path(path).parent


def ensure(path: Path, make: Callable[[], str]) -> Generated:
    """Return the secret in *path*; if there is none, write what *make* returns. Raises ConfigError.

    Workers that start together agree: a whole file appears under the name at once, and the first one stays.
    """
    try:
        created = not path.exists() and _write(path, make())
        text = path.read_bytes()[:_MAX_BYTES].decode("ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not ASCII text"
        raise ConfigError(f"{path}: the secret cannot be read or written ({reason})") from None
    if not text:
        raise ConfigError(f"{path}: is empty; delete it, and a new secret is made")
    return Generated(Secret(text), path, created)


def _write(path: Path, text: str) -> bool:
    """Write *text* to *path* unless it exists; tell whether this call did."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")  # mode 0600
    try:
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write(text + "\n")
            file.flush()
            os.fsync(file.fileno())
        # A link fails where the name exists, so nobody sees half a file and nobody replaces another's secret.
        os.link(draft, path)
    except FileExistsError:
        return False
    finally:
        Path(draft).unlink()
    return True


def admin_token(settings: Settings) -> Secret:
    """Return the admin token: the configured one, else that of the data folder, made when missing."""
    folder = data_folder(settings.database_url)
    return settings.admin_token or ensure(folder / ADMIN_TOKEN, lambda: secrets.token_urlsafe(32)).secret


def secret_key(settings: Settings) -> Secret:
    """Return the key that encrypts upstream keys at rest; only a SQLite database gets a generated one, beside it.

    Raises ConfigError for any other database without one: two gateways on it would each make their own.
    """
    url = settings.database_url
    if settings.secret_key is not None:
        return settings.secret_key
    if not url.startswith("sqlite"):
        raise ConfigError(
            "TROY_SECRET_KEY is required where TROY_DATABASE_URL names no SQLite file: it encrypts upstream keys"
        )
    return ensure(data_folder(url) / SECRET_KEY, lambda: urlsafe_b64encode(secrets.token_bytes(32)).decode()).secret
