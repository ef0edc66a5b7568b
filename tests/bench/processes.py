"""What the operating system says about a process and its children: processor time and memory. Linux; else unknown."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

PROC: Final = Path("/proc")
PATIENCE_S: Final = 20.0


def family(pid: int) -> list[int]:
    """Return *pid* and all that descend from it: the workers of a server with several count too."""
    parents = dict(_parents())
    found = [pid]
    for each in found:
        found += [child for child, parent in parents.items() if parent == each]
    return found


def _parents() -> Iterator[tuple[int, int]]:
    for folder in PROC.glob("[0-9]*"):
        try:
            yield int(folder.name), int(_after_name(folder)[1])
        except OSError:  # it has just ended
            continue


def _after_name(folder: Path) -> list[str]:
    """Return the fields of ``stat`` after the name, which may hold blanks: the state is the first."""
    return (folder / "stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()


def cpu_s(pid: int) -> float | None:
    """Return the processor time of *pid* and its children so far, all threads, user and system; None if unknown."""
    try:
        return sum(_cpu_s(PROC / str(each)) for each in family(pid))
    except OSError:
        return None


def _cpu_s(folder: Path) -> float:
    """Prefer the scheduler's nanoseconds (of the threads that live) to ticks of 10 ms."""
    try:
        tasks = [(task / "schedstat").read_text(encoding="ascii") for task in (folder / "task").iterdir()]
        return sum(int(task.split()[0]) for task in tasks) / 1e9
    except FileNotFoundError:  # a kernel without it
        fields = _after_name(folder)
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory_mb(pid: int) -> float | None:
    """Return the resident memory of *pid* and its children, in megabytes (10^6 bytes); None if unknown."""
    page = os.sysconf("SC_PAGE_SIZE")
    try:
        pages = sum(int((PROC / str(each) / "statm").read_text(encoding="ascii").split()[1]) for each in family(pid))
    except OSError:
        return None
    return pages * page / 1e6


@asynccontextmanager
async def running(
    command: Sequence[str], env: Mapping[str, str], log: Path
) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run *command*, everything it writes in *log*, until the block ends."""
    with log.open("wb") as sink:
        process = await asyncio.create_subprocess_exec(*command, stdout=sink, stderr=sink, env={**os.environ, **env})
    try:
        yield process
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


async def accepts(process: asyncio.subprocess.Process, port: int, log: Path, *, each_s: float = 0.02) -> None:
    """Return when *port* accepts. Raises RuntimeError when *process* ends first, or after 20 s."""
    for _ in range(round(PATIENCE_S / each_s)):
        if process.returncode is not None:
            raise RuntimeError(f"a server ended: {_tail(log)}")
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except ConnectionError:
            await asyncio.sleep(each_s)
        else:
            writer.close()
            return
    raise RuntimeError(f"nobody listens on port {port} after {PATIENCE_S:.0f} s")


def _tail(log: Path) -> str:
    return log.read_text(encoding="utf-8", errors="replace")[-2000:]
