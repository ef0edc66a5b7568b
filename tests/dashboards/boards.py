"""The dashboards there are, and where their files lie."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tests.dashboards.auto_tools import AUTO_TOOLS
from tests.dashboards.overview import OVERVIEW
from tests.dashboards.providers import PROVIDERS
from tests.dashboards.quota_keys import QUOTA_KEYS

FOLDER: Final = Path(__file__).parents[2] / "grafana" / "dashboards"
BOARDS: Final = (OVERVIEW, PROVIDERS, AUTO_TOOLS, QUOTA_KEYS)
