"""A progress bar on standard error, where somebody looks and it takes long enough to be looked at."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

LONG: Final = 1000
"""Steps from which on a bar is shown."""


def watched() -> bool:
    """Whether somebody looks at standard error."""
    return sys.stderr.isatty()


@contextmanager
def progress(what: str, steps: int) -> Iterator[Callable[[], None]]:
    """Give a function to call at each of *steps*."""
    if steps < LONG or not watched():
        yield lambda: None
        return
    from rich.console import Console  # noqa: PLC0415 -- rarely shown, and not cheap to load
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn  # noqa: PLC0415

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True, force_terminal=True), transient=True) as bar:
        task = bar.add_task(what, total=steps)
        yield lambda: bar.advance(task)
