"""What the auto engine does, as metrics."""

from __future__ import annotations
