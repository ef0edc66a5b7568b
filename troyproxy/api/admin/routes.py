"""The admin route table."""

from __future__ import annotations

from troyproxy.api.routing_table import Route
from troyproxy.api.services import Services


def admin_routes(services: Services) -> list[Route]:
    """Return every route under ``/api``."""
    del services
    return []
