"""Upstream keys at rest: one Fernet box. It holds the secret key and shows neither it nor what it encrypts.

The cryptography is loaded when something is sealed or opened: it takes memory that a gateway without stored keys needs
not.
"""

from __future__ import annotations

import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import TYPE_CHECKING, Final

from troyproxy.catalog.secret import Secret
from troyproxy.errors import ConfigError

if TYPE_CHECKING:
    from cryptography.fernet import Fernet

_HOW = "32 bytes in URL-safe base64, for example from `openssl rand -base64 32 | tr '+/' '-_'`"
_BYTES: Final = 32


class SecretBox:
    """Encrypts and decrypts with one key."""

    __slots__ = ("_key",)

    def __init__(self, key: Secret) -> None:
        """Raises ConfigError when *key* is no Fernet key. Its padding may be missing: many generators leave it out."""
        text = key.reveal().strip()
        padded = (text + "=" * (-len(text) % 4)).encode()
        if not _is_key(padded):
            raise ConfigError(f"TROY_SECRET_KEY is not a key: it must be {_HOW}")
        self._key = Secret(padded.decode())

    @staticmethod
    def generate() -> Secret:
        """Return a new key, fit for ``secret.key``."""
        return Secret(urlsafe_b64encode(secrets.token_bytes(_BYTES)).decode())

    def seal(self, secret: Secret) -> str:
        """Return *secret* encrypted, as text."""
        return self._fernet().encrypt(secret.reveal().encode("utf-8", "surrogatepass")).decode()

    def open(self, sealed: str) -> Secret:
        """Return what `seal` was given. Raises ConfigError when another key sealed it or it is damaged."""
        from cryptography.fernet import InvalidToken  # noqa: PLC0415 -- see above

        try:
            return Secret(self._fernet().decrypt(sealed.encode()).decode("utf-8", "surrogatepass"))
        except InvalidToken as exc:
            raise ConfigError(
                "stored upstream keys were encrypted with another TROY_SECRET_KEY: "
                "set the one they were stored with, or remove those connections and add them again"
            ) from exc

    def _fernet(self) -> Fernet:
        from cryptography.fernet import Fernet  # noqa: PLC0415 -- see above

        return Fernet(self._key.reveal())


def _is_key(text: bytes) -> bool:
    """Whether `Fernet` takes *text*."""
    try:
        return len(urlsafe_b64decode(text)) == _BYTES
    except ValueError:
        return False
