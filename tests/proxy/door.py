"""An authenticator with a key of the database and one of the file, and how to knock."""

from __future__ import annotations

import hashlib

import pytest

from tests.asgi import Scope, http_scope
from tests.fake_store import FakeKeys
from tests.fakes import FakeClock
from troyproxy.catalog.keys import Key
from troyproxy.catalog.snapshot import Snapshot, build
from troyproxy.errors import InvalidAPIKey
from troyproxy.proxy.authenticator import Authenticator

STORED = "sk-troy-" + "0a" * 24
WRONG = "sk-troy-" + "ff" * 24
OWN = "a key of the file, any text"


def key_of(name: str, secret: str) -> Key:
    return Key(name, name, hashlib.sha256(secret.encode()).digest())


def scope_of(**headers: str | bytes) -> Scope:
    raw = [
        (name.replace("_", "-").encode(), text if isinstance(text, bytes) else text.encode())
        for name, text in headers.items()
    ]
    return http_scope(headers=raw)


class Desk:
    def __init__(self, clock: FakeClock) -> None:
        self.clock, self.keys = clock, FakeKeys(key_of("stored", STORED))
        self.snapshot = build([], keys=[key_of("own", OWN)])
        self.door = Authenticator(snapshot=self._current, keys=self.keys, clock=clock)

    def _current(self) -> Snapshot:
        return self.snapshot

    async def name(self, secret: str | bytes) -> str:
        token = secret if isinstance(secret, bytes) else secret.encode()
        key = await self.door.authenticate(scope_of(authorization=b"Bearer " + token))
        assert key is not None
        return key.name

    async def refuses(self, secret: str | bytes) -> bool:
        with pytest.raises(InvalidAPIKey):
            await self.name(secret)
        return True
