"""The admin route table. Providers, connections, keys, models, statistics and live events find their place here."""

from __future__ import annotations

from troyproxy.api.admin.acting import Acting
from troyproxy.api.admin.combos import PATH as COMBOS
from troyproxy.api.admin.combos import Combos
from troyproxy.api.admin.guard import AdminGuard
from troyproxy.api.admin.reading import Reading
from troyproxy.api.admin.resource import AdminApp, Handler
from troyproxy.api.outermost import guarded
from troyproxy.api.routing_table import Route
from troyproxy.api.services import Services


def admin_routes(services: Services) -> list[Route]:
    """Return every route under ``/api``, behind one guard."""
    guard = AdminGuard(services.admin_token, services.clock)
    combos, reading, acting = Combos(services), Reading(services), Acting(services)
    handlers: list[tuple[str, str, Handler]] = [
        ("GET", COMBOS, combos.list),
        ("POST", COMBOS, combos.create),
        ("GET", f"{COMBOS}/{{id:path}}", combos.read),
        ("PUT", f"{COMBOS}/{{id:path}}", combos.replace),
        ("PATCH", f"{COMBOS}/{{id:path}}", combos.change),
        ("DELETE", f"{COMBOS}/{{id:path}}", combos.remove),
        ("GET", "/api/status", reading.status),
        ("GET", "/api/settings", reading.settings),
        ("GET", "/api/requests", reading.requests),
        ("GET", "/api/requests/{id}", reading.request),
        ("POST", "/api/explain", acting.explain),
        ("POST", "/api/cooldowns/clear", acting.clear_cooldowns),
        ("POST", "/api/config/reload", acting.reload),
    ]
    return [Route(method, path, guarded(AdminApp(guard, handle))) for method, path, handle in handlers]
