"""The one place that holds the version."""

from __future__ import annotations

from typing import Final

VERSION: Final = "0.1.0"
__version__ = VERSION
