"""Worker processes as their supervisor sees them: started, listened to, sent signals, waited for."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from troyproxy.cli.seat import READY, REFUSED, Seat, name_of


class WorkerProcess:
    """One worker process, from its start to its end."""

    def __init__(
        self, name: str, process: asyncio.subprocess.Process, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.name, self._process, self._reader, self._writer = name, process, reader, writer
        self.serving = False
        self.refusal: str | None = None
        """Why it did not start, in its own words."""

    async def ready(self) -> bool:
        """Wait until it serves; False when it ended before."""
        line = await self._reader.readline()
        told = json.loads(line) if line.endswith(b"\n") else {}
        self.refusal, self.serving = told.get(REFUSED), READY in told
        return self.serving

    async def ended(self) -> int:
        """Wait for its end and return its status, negative for a signal."""
        status = await self._process.wait()
        self.serving = False
        self._writer.close()
        return status

    def send(self, number: signal.Signals) -> None:
        """Send it a signal, if it still lives."""
        with suppress(ProcessLookupError):
            self._process.send_signal(number)


@dataclass(frozen=True, slots=True)
class Hiring:
    """Starts workers, each with the seat *like* under a number of its own, and with *lock* to hold while it lives."""

    like: Seat
    lock: int

    async def __call__(self, number: int) -> WorkerProcess:
        """Start worker *number*. Raises OSError."""
        with ExitStack() as undo:
            ours, theirs = (undo.enter_context(end) for end in socket.socketpair())
            seat = replace(self.like, number=number, channel=theirs.fileno())
            process = await asyncio.create_subprocess_exec(
                # -P, and the path below: it imports from where this process does, and not from the working folder.
                *(sys.executable, "-P", "-m", "troyproxy.cli.worker", seat.text()),
                env={**os.environ, "PYTHONPATH": os.pathsep.join(entry or str(Path.cwd()) for entry in sys.path)},
                stdin=asyncio.subprocess.DEVNULL,
                pass_fds=(*seat.sockets, seat.channel, self.lock),
                # A group of its own: ^C reaches the supervisor only, who passes on what it means.
                process_group=0,
            )
            theirs.close()
            reader, writer = await asyncio.open_connection(sock=ours)
            undo.pop_all()
        return WorkerProcess(name_of(number), process, reader, writer)
