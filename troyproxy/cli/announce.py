"""What `serve` tells whoever started it. Generated secrets are shown on a terminal only; the log names their file."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from pathlib import Path
from typing import Final, TextIO

from troyproxy.cli.demo_mode import curl
from troyproxy.settings.secrets import ADMIN_TOKEN, Generated
from troyproxy.version import VERSION

LOGGER: Final = logging.getLogger("troyproxy")


class Announcer:
    """Speaks to standard error."""

    def __init__(self, stream: TextIO) -> None:
        self._stream, self._tty = stream, stream.isatty()

    def made(self, files: Iterable[Path]) -> None:
        """Tell of the secrets that this start has made."""
        for path in files:
            if self._tty and path.name == ADMIN_TOKEN:
                self._say(f"admin token: {path.read_text('ascii').strip()}  (in {path})")
            else:
                LOGGER.info("a new secret was made: %s", path)

    def ready(self, url: str) -> None:
        """Tell where the gateway listens."""
        LOGGER.info("troyproxy %s listens on %s", VERSION, url)

    def demo(self, url: str, made: Generated | None, *, chosen: bool) -> None:
        """Tell where the demo listens, and how to see it at work."""
        why = "" if chosen else " No provider is configured: set OPENAI_API_KEY, say, or write troyproxy.yaml."
        self._say(f"troyproxy {VERSION} listens on {url} in demo mode.{why} Try:")
        self._say(curl(url, made, show=self._tty))

    def no_key(self) -> None:
        """Tell that nobody can call yet."""
        LOGGER.warning("no client key is configured, so every request gets 401: troyproxy keys create NAME")

    def _say(self, text: str) -> None:
        self._stream.write(text + "\n")
        self._stream.flush()
