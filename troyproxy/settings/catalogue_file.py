"""The last good fetched catalogue as a file in the data folder: one line that says what it is, then its JSON, gzipped.

Written whole under another name and renamed, so that nobody reads half of it. What cannot be read, is of another URL,
too old, or not what its own checksum says, is as good as absent: the offline catalogue serves.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from troyproxy.settings.fetched_catalogue import MAX_BYTES

NAME: Final = "model-catalogue.cache"
MAX_AGE_S: Final = 30 * 86_400.0
"""Older ones are not read at the start: the package's own catalogue may well be newer by then."""
MAX_HEAD: Final = 4096


class _Head(msgspec.Struct, forbid_unknown_fields=True):
    """The first line."""

    v: int
    url: str
    """Of the URL the SHA-256 only: it may hold a token."""
    at: float
    sha256: str
    etag: str | None = None


@dataclass(frozen=True, slots=True)
class KeptCatalogue:
    """What was fetched: when (unix seconds), the server's tag for it, and the JSON, gzipped."""

    at: float
    etag: str | None
    packed: bytes

    def unpacked(self) -> bytes:
        """Return the JSON. Raises ValueError when it is damaged or larger than a catalogue may be."""
        machine = zlib.decompressobj(zlib.MAX_WBITS | 16)
        try:
            raw = machine.decompress(self.packed, MAX_BYTES + 1)
        except zlib.error as exc:
            raise ValueError("it is damaged") from exc
        if not machine.eof or len(raw) > MAX_BYTES:
            raise ValueError("it is cut short, or too large")
        return raw


def pack(raw: bytes) -> bytes:
    """Return *raw* gzipped, the same for the same text."""
    machine = zlib.compressobj(wbits=zlib.MAX_WBITS | 16)
    return machine.compress(raw) + machine.flush()


class CatalogueFile:
    """The file of one URL in *folder*. Blocks; call it from a thread once traffic runs."""

    def __init__(self, folder: Path, url: str) -> None:
        self.path = folder / NAME
        self._url = hashlib.sha256(url.encode()).hexdigest()

    def read(self, now: float) -> KeptCatalogue | None:
        """Return what is kept, None when there is nothing to use. Raises ValueError for a file that is damaged."""
        try:
            raw = self.path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as exc:
            raise ValueError(f"it cannot be read ({exc.strerror})") from exc
        line, _, packed = raw.partition(b"\n")
        try:
            head = msgspec.json.decode(line[:MAX_HEAD], type=_Head)
        except msgspec.DecodeError as exc:
            raise ValueError("its first line is none of ours") from exc
        if head.v != 1 or head.url != self._url or not 0 <= now - head.at <= MAX_AGE_S:
            return None
        if hashlib.sha256(packed).hexdigest() != head.sha256:
            raise ValueError("it is damaged")
        return KeptCatalogue(head.at, head.etag, packed)

    def write(self, kept: KeptCatalogue) -> None:
        """Replace the file. Raises OSError."""
        digest = hashlib.sha256(kept.packed).hexdigest()
        head = _Head(v=1, url=self._url, at=kept.at, sha256=digest, etag=kept.etag)
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, draft = tempfile.mkstemp(dir=self.path.parent, prefix=f".{NAME}.")  # mode 0600
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(msgspec.json.encode(head) + b"\n" + kept.packed)
                file.flush()
                os.fsync(file.fileno())
            Path(draft).replace(self.path)
        finally:
            with contextlib.suppress(FileNotFoundError):
                Path(draft).unlink()
