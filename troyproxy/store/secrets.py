"""Upstream keys at rest: one Fernet box. It holds the secret key and shows neither it nor what it encrypts."""

from __future__ import annotations

from cryptography.fernet import Fernet, InvalidToken

from troyproxy.catalog.secret import Secret
from troyproxy.errors import ConfigError

_HOW = "32 bytes in URL-safe base64, for example from `openssl rand -base64 32 | tr '+/' '-_'`"


class SecretBox:
    """Encrypts and decrypts with one key."""

    __slots__ = ("_fernet",)

    def __init__(self, key: Secret) -> None:
        """Raises ConfigError when *key* is no Fernet key. Its padding may be missing: many generators leave it out."""
        text = key.reveal().strip()
        try:
            self._fernet = Fernet((text + "=" * (-len(text) % 4)).encode())
        except ValueError as exc:
            raise ConfigError(f"TROY_SECRET_KEY is not a key: it must be {_HOW}") from exc

    @staticmethod
    def generate() -> Secret:
        """Return a new key, fit for ``secret.key``."""
        return Secret(Fernet.generate_key().decode())

    def seal(self, secret: Secret) -> str:
        """Return *secret* encrypted, as text."""
        return self._fernet.encrypt(secret.reveal().encode("utf-8", "surrogatepass")).decode()

    def open(self, sealed: str) -> Secret:
        """Return what `seal` was given. Raises ConfigError when another key sealed it or it is damaged."""
        try:
            return Secret(self._fernet.decrypt(sealed.encode()).decode("utf-8", "surrogatepass"))
        except InvalidToken as exc:
            raise ConfigError(
                "stored upstream keys were encrypted with another TROY_SECRET_KEY: "
                "set the one they were stored with, or remove those connections and add them again"
            ) from exc
