"""A folder of one instance where its workers count together: empty at the start, gone at the end, nobody else's.

It lies in the data folder, the one place that a gateway may always write to. Whoever uses it holds a lock on a file in
it, workers too, so that the folder of an instance that was killed is known for what it is and removed by the next one,
and never while a worker still counts there.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from troyproxy.errors import ConfigError

PREFIX: Final = "metrics-"
LOCK: Final = "lock"


@contextmanager
def metrics_folder(parent: Path) -> Iterator[tuple[Path, int]]:
    """Make a folder in *parent*, 0700; yield it and the descriptor of its lock, for workers to inherit.

    Raises ConfigError when it cannot be made.
    """
    try:
        parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _remove_leftovers(parent)
        # Locked before it has a name that others look for.
        draft = Path(tempfile.mkdtemp(dir=parent, prefix=f".{PREFIX}"))
        lock = os.open(draft / LOCK, os.O_CREAT | os.O_RDWR, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
        folder = draft.rename(parent / draft.name.removeprefix("."))
    except OSError as error:
        raise ConfigError(f"{parent}: cannot make a folder for the workers' metrics ({error.strerror})") from None
    try:
        yield folder, lock
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def _remove_leftovers(parent: Path) -> None:
    for lock in parent.glob(f"{PREFIX}*/{LOCK}"):
        if _nobody_holds(lock):
            shutil.rmtree(lock.parent, ignore_errors=True)


def _nobody_holds(lock: Path) -> bool:
    try:
        with lock.open("r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
