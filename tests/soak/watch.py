"""What can be seen of the gateway's process from outside: memory and sockets, from /proc."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

PAGE_MB = os.sysconf("SC_PAGE_SIZE") / (1 << 20)
EVERY_S = 0.5


def rss_mb(pid: int) -> float:
    """Return the resident memory of a process."""
    return int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]) * PAGE_MB


def peak_mb(pid: int) -> float:
    """Return the most resident memory that a process ever had."""
    text = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return int(text.partition("VmHWM:")[2].split()[0]) / 1024


def sockets(pid: int) -> int:
    """Return how many sockets a process holds open."""
    return sum(link.startswith("socket:") for link in _links(pid))


def _links(pid: int) -> list[str]:
    found: list[str] = []
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        try:
            found.append(str(entry.readlink()))
        except FileNotFoundError:
            continue  # closed meanwhile
    return found


class Watch:
    """Samples a process until it is cancelled."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self.rss_mb: list[float] = []
        self.sockets: list[int] = []

    async def run(self) -> None:
        """Take a sample every `EVERY_S` seconds."""
        while True:
            self.rss_mb.append(rss_mb(self._pid))
            self.sockets.append(sockets(self._pid))
            await asyncio.sleep(EVERY_S)
