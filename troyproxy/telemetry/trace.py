"""``TROY_TRACE=1``: one block per request that tells, line by line, what the walk did and why.

The walk says the lines; this only prints them.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Final, TextIO

from troyproxy.telemetry.clean import Mask, clean, mask_keys, writable
from troyproxy.telemetry.silent import Silent

MAX_LINES: Final = 500
MAX_LINE: Final = 500


class TraceObserver(Silent):
    """Prints to *stream*, or to what is standard error at that moment. *mask* takes secrets out of every line."""

    def __init__(self, stream: TextIO | None = None, *, mask: Mask = mask_keys) -> None:
        self._stream, self._mask = stream, mask

    def trace(self, request_id: str, lines: Sequence[str]) -> None:
        """Print the block with one write, so that two requests never mix; a closed stream is ignored."""
        stream = self._stream if self._stream is not None else sys.stderr
        more = [f"+{len(lines) - MAX_LINES} more"] if len(lines) > MAX_LINES else []
        shown = [clean(line, limit=MAX_LINE, mask=self._mask) for line in (*lines[:MAX_LINES], *more)]
        head = clean(request_id, limit=MAX_LINE, mask=self._mask)
        block = "\n  ".join((f"── {head}", *shown)) + "\n"
        with suppress(OSError, ValueError):
            stream.write(writable(block, stream))
            stream.flush()
