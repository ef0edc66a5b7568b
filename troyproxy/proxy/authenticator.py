"""Who is calling: client keys, compared in constant time by their SHA-256, with no database work for malformed ones.

Keys made by the gateway are ``sk-troy-`` and 48 hex digits; keys given in the file may be any 16 to 512 bytes. Missing
and wrong keys get the same answer. Keys of the database are cached; the cache is dropped whenever the control row
moves, so that a revocation takes effect within a second. A flood of wrong keys is looked up once per key and a few at
a time, so that it never takes the database away from others; a key that is known waits behind it for a second at most.

While the database is down, a key that was seen before goes on: what would revoke it cannot be heard then. A key that
was not is neither let in nor called wrong: its caller gets 503 and tries again.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import ipaddress
import math
import re
import secrets
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Final

from cachetools import LRUCache, TTLCache

from troyproxy.catalog.keys import Key
from troyproxy.catalog.snapshot import Snapshot
from troyproxy.errors import (
    ConfigError,
    ForbiddenOrigin,
    InvalidAPIKey,
    Overloaded,
    StoreUnavailable,
    UnsupportedMediaType,
)
from troyproxy.ports import Clock, Headers, KeyRepository
from troyproxy.proxy.call import Call, Scope, raw_headers

Authenticate = Callable[[Scope], Awaitable[Key | None]]
"""Returns the caller's key, None for an open door; raises InvalidAPIKey, ForbiddenOrigin, StoreUnavailable, …"""

KEY_PREFIX: Final = "sk-troy-"
GENERATED: Final = re.compile(rb"sk-troy-[0-9a-f]{48}")
SHORTEST, LONGEST = 16, 512
KNOWN_BOUND: Final = 10_000
KNOWN_S: Final = 60.0
AGAIN_S: Final = 5.0
"""How soon a key that is known and could not be looked up again is looked up the next time."""
LOOK_S: Final = 1.0
"""How long a request with a known key waits for a database that hangs."""
UNKNOWN_BOUND: Final = 4096
UNKNOWN_S: Final = 5.0
LOOKUPS: Final = 4
"""Keys that are looked up at the same moment."""
QUEUE: Final = 1000
"""Keys that may wait for that; a request with one more is told that we are busy (503)."""


def presented_key(headers: Headers) -> bytes | None:
    """Return the key that a request presents, or None. ``Authorization`` decides alone when it is there."""
    return _presented(dict(reversed(headers)))


def _presented(fields: Mapping[bytes, bytes]) -> bytes | None:
    authorization = fields.get(b"authorization")
    if authorization is None:
        return fields.get(b"x-api-key", b"").strip() or None
    if authorization[:7] == b"Bearer ":
        return authorization[7:].strip() or None
    scheme, _, key = authorization.strip().partition(b" ")
    return key.strip() or None if scheme.lower() == b"bearer" else None


def digest_of(secret: bytes) -> bytes:
    """Return what is stored of a key."""
    return hashlib.sha256(secret).digest()


def _mark_of(secret: bytes) -> bytes:
    """Return what a key is recognised by for a moment: a digest that is never stored, at half the time of the other."""
    return hashlib.blake2s(secret).digest()


def generate_key() -> str:
    """Return a new client key: ``sk-troy-`` and 48 hex digits."""
    return KEY_PREFIX + secrets.token_hex(24)


class FixedKeys:
    """A guard's own keys, name → secret. Raises ConfigError for a secret of the wrong length."""

    def __init__(self, keys: Mapping[str, str]) -> None:
        self._keys: list[Key] = []
        for name, secret in keys.items():
            if not SHORTEST <= len(secret.encode()) <= LONGEST:
                raise ConfigError(f"the key {name!r} must have {SHORTEST} to {LONGEST} bytes")
            self._keys.append(Key(id=name, name=name, digest=digest_of(secret.encode())))

    async def authenticate(self, scope: Scope) -> Key | None:
        """Return the caller's key. Raises InvalidAPIKey."""
        presented = presented_key(raw_headers(scope))
        digest = digest_of(presented or b"")
        found = [key for key in self._keys if hmac.compare_digest(key.digest, digest)]
        if presented is None or not found:
            raise InvalidAPIKey
        return found[0]


@dataclass(slots=True)
class _Known:
    """A key of the database, and until when (unix seconds) it need not be looked up again."""

    key: Key
    until: float


@dataclass(frozen=True, slots=True)
class _Fresh:
    """A key that was let in under *snapshot*, and until when (unix seconds) it is let in again without a look."""

    key: Key
    mark: bytes
    snapshot: Snapshot
    until: float


class Authenticator:
    """The gateway's keys: those of the file from the snapshot, those of the database through a bounded cache."""

    def __init__(self, *, snapshot: Callable[[], Snapshot], keys: KeyRepository, clock: Clock) -> None:
        self._snapshot, self._keys, self._clock = snapshot, keys, clock
        self._known: LRUCache[bytes, _Known] = LRUCache(KNOWN_BOUND)
        self._unknown: TTLCache[bytes, bool] = TTLCache(UNKNOWN_BOUND, UNKNOWN_S, timer=clock.now)
        self._asking: dict[bytes, asyncio.Task[Key | None]] = {}
        self._lookups: set[asyncio.Task[Key | None]] = set()
        self._places = asyncio.Semaphore(LOOKUPS)
        self._epoch = 0
        self._fresh: dict[bytes, _Fresh] = {}
        """By `_mark_of` what was presented."""

    def known(self, call: Call) -> Key | None:
        """Return the key of *call*, if it was let in a moment ago; None when `authenticate` is to be asked."""
        presented = _presented(call.fields)
        if presented is None or len(presented) > LONGEST:
            return None
        mark = _mark_of(presented)
        fresh = self._fresh.get(mark)
        if fresh is None or fresh.snapshot is not call.snapshot or fresh.until <= call.at:
            return None
        return fresh.key if hmac.compare_digest(mark, fresh.mark) else None

    async def authenticate(self, scope: Scope) -> Key | None:
        """Return the caller's key. Raises InvalidAPIKey; StoreUnavailable when only the database can tell."""
        presented = presented_key(raw_headers(scope))
        if presented is None or not SHORTEST <= len(presented) <= LONGEST:
            raise InvalidAPIKey
        digest, snapshot = digest_of(presented), self._snapshot()
        key = snapshot.keys.get(digest) or await self._stored(presented, digest)
        now = self._clock.now()
        if key is None or not _is_one_of(digest, key.digests(now)) or not key.valid(now):
            raise InvalidAPIKey
        self._keep_fresh(key, presented, digest, snapshot)
        return key

    def _keep_fresh(self, key: Key, presented: bytes, digest: bytes, snapshot: Snapshot) -> None:
        """Let *key* in without a look while nothing can have changed about it."""
        ends = [end for end in (key.expires_at, key.previous_until) if end is not None]
        if digest not in snapshot.keys:
            known = self._known.get(digest)
            ends.append(known.until if known is not None and known.key is key else 0.0)
        if len(self._fresh) >= KNOWN_BOUND:
            self._fresh.clear()
        mark = _mark_of(presented)
        self._fresh[mark] = _Fresh(key, mark, snapshot, min(ends, default=math.inf))

    async def _stored(self, presented: bytes, digest: bytes) -> Key | None:
        if not GENERATED.fullmatch(presented) or digest in self._unknown:
            return None
        known = self._known.get(digest)
        if known is None:
            return await self._look(digest)
        if self._clock.now() < known.until:
            return known.key
        known.until = self._clock.now() + AGAIN_S  # one request asks; the others go by what is known
        try:
            async with asyncio.timeout(LOOK_S):
                return await self._look(digest)
        except (StoreUnavailable, TimeoutError):
            return known.key

    async def _look(self, digest: bytes) -> Key | None:
        """Look the key up, together with whoever asks for it at the same moment."""
        epoch = self._epoch
        key = await self._found(digest)
        if epoch != self._epoch:
            return key  # read before what is to be forgotten: good for this request only
        if key is None:
            self._unknown[digest] = True
            self._known.pop(digest, None)
        else:
            self._known[digest] = _Known(key, self._clock.now() + KNOWN_S)
        return key

    async def _found(self, digest: bytes) -> Key | None:
        task = self._asking.get(digest)
        if task is None:
            if len(self._lookups) >= QUEUE:
                raise Overloaded("too many unknown keys are being looked up; try again")
            task = self._asking[digest] = asyncio.get_running_loop().create_task(self._find(digest))
            self._lookups.add(task)
            task.add_done_callback(lambda done: self._answered(digest, done))
        # One caller's hanging up must not end the lookup that others wait for.
        return await asyncio.shield(task)

    async def _find(self, digest: bytes) -> Key | None:
        async with self._places:
            return await self._keys.find(digest)

    def _answered(self, digest: bytes, done: asyncio.Task[Key | None]) -> None:
        self._lookups.discard(done)
        if self._asking.get(digest) is done:
            del self._asking[digest]
        if not done.cancelled():
            done.exception()  # whoever waited has it; nobody may have

    def forget(self) -> None:
        """Drop what is cached: keys were created or revoked. Lookups under way are answered to their askers only."""
        self._epoch += 1
        self._fresh.clear()
        self._asking.clear()
        self._known.clear()
        self._unknown.clear()


def _is_one_of(digest: bytes, digests: tuple[bytes, ...]) -> bool:
    """Compare with every one of *digests*, so that the time tells nothing."""
    same = [hmac.compare_digest(digest, other) for other in digests]
    return any(same)


class OpenDoor:
    """``TROY_AUTH=off``: no key, but only for programs on this machine that talk to us directly.

    A page in a browser, or a proxy that would open the port to a network, is refused by what its requests carry.
    """

    FORWARDING: Final = frozenset({b"forwarded", b"via"})
    MEDIA: Final = (b"application/json", b"multipart/form-data")

    def __init__(self, origins: Collection[str] = ()) -> None:
        self._origins = frozenset(origins)

    async def authenticate(self, scope: Scope) -> Key | None:
        """Return None: everybody. Raises ForbiddenOrigin, UnsupportedMediaType."""
        headers = raw_headers(scope)
        for name, value in headers:
            if name in self.FORWARDING or name.startswith(b"x-forwarded-"):
                raise ForbiddenOrigin(f"the header {name.decode('latin-1')} is not accepted while TROY_AUTH=off")
            if name == b"host" and not is_loopback_name(value.decode("latin-1")):
                raise ForbiddenOrigin("the Host header must be a loopback name while TROY_AUTH=off")
            if name == b"origin" and value.decode("latin-1") not in self._origins:
                raise ForbiddenOrigin("this Origin is not allowed; list it in TROY_CORS_ORIGINS")
        kind = next((value.lower() for name, value in headers if name == b"content-type"), b"")
        if scope["method"] == "POST" and not kind.startswith(self.MEDIA):
            raise UnsupportedMediaType("send application/json or multipart/form-data")
        return None


def is_loopback_name(host: str) -> bool:
    """Whether a Host header names this machine: a page of another site that was led here by DNS does not."""
    name = host.rsplit(":", 1)[0] if not host.endswith("]") else host
    name = name.strip("[]").rstrip(".").lower()
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
