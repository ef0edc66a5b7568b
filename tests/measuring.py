"""Keeps out of the coverage what would only be measured again: the same lines thousands of times, at twice the cost.

For tests that repeat: every line they meet is met by others, and the gates say so when it is not.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from coverage import Coverage
from coverage.exceptions import CoverageWarning


@contextmanager
def processes_unmeasured() -> Iterator[None]:
    """Processes that start meanwhile are not measured."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("COVERAGE_")]:
            patch.delenv(name)
        yield


@contextmanager
def unmeasured() -> Iterator[None]:
    """This process is not measured meanwhile."""
    running = Coverage.current()
    if running is None:
        yield
        return
    running.stop()
    try:
        yield
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CoverageWarning)  # that the package has been imported by now
            running.start()
