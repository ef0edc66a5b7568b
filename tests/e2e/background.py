"""Threads that do something until the block they belong to is left."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager


@contextmanager
def in_background(threads: Sequence[threading.Thread], stop: threading.Event) -> Iterator[None]:
    """Run *threads* meanwhile; *stop* tells them to end, and they are waited for."""
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()
