"""What a worker process gets from its supervisor: its number, its sockets, and a channel between the two.

The channel is one end of a socket pair. The worker says once that it serves, or why it does not; nothing else is said.
That it closes means, on either side, that the other process has ended, whatever ended it.
"""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, Self

import msgspec

READY: Final = "ready"
REFUSED: Final = "refused"
_LONGEST: Final = 8000
"""Characters of a refusal: the other side reads lines of 64 KiB."""


@dataclass(frozen=True, slots=True)
class Seat:
    """The place of one worker. Numbers of files are descriptors that the worker inherits."""

    number: int
    channel: int
    sockets: tuple[int, ...]
    metrics: str
    """The folder in which all workers count."""
    demo: bool = False
    config: str | None = None
    options: Mapping[str, object] = field(default_factory=dict)
    """Settings from the command line."""

    @property
    def name(self) -> str:
        """Return the name of the worker in the journal, the log and the status, the same after each restart."""
        return name_of(self.number)

    def text(self) -> str:
        """Return it as one argument of a command line."""
        return msgspec.json.encode(self).decode()

    @staticmethod
    def read(text: str) -> Seat:
        """Return what `text` has written."""
        return msgspec.json.decode(text, type=Seat)


def name_of(number: int) -> str:
    """Return the name of a worker."""
    return f"worker-{number}"


class Channel:
    """The worker's end, closed by ``with``. Speaking to a supervisor that has ended does nothing."""

    def __init__(self, descriptor: int) -> None:
        self._socket = socket.socket(fileno=descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def ready(self) -> None:
        """Say that this worker serves."""
        self._say({READY: True})

    def refused(self, message: str) -> None:
        """Say why this worker does not start."""
        self._say({REFUSED: message[:_LONGEST]})

    def _say(self, what: Mapping[str, object]) -> None:
        with suppress(OSError):
            self._socket.sendall(json.dumps(what).encode() + b"\n")

    def at_end(self, act: Callable[[], None]) -> None:
        """Call *act* in the running loop once the supervisor has ended; it says nothing before."""
        loop = asyncio.get_running_loop()
        self._socket.setblocking(False)

        def ended() -> None:
            loop.remove_reader(self._socket)
            act()

        loop.add_reader(self._socket, ended)
