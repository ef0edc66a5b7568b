"""The admin route table, made of what the resources can do."""

from __future__ import annotations

from troyproxy.api.admin.acting import Acting
from troyproxy.api.admin.catalogue import CatalogueDesk
from troyproxy.api.admin.combo_trials import ComboTrials
from troyproxy.api.admin.combos import Combos
from troyproxy.api.admin.events import Events
from troyproxy.api.admin.guard import AdminGuard
from troyproxy.api.admin.keys import Keys
from troyproxy.api.admin.models import Models
from troyproxy.api.admin.openapi import Description
from troyproxy.api.admin.operation import Operation, Resource
from troyproxy.api.admin.quota import Quota
from troyproxy.api.admin.reading import Reading
from troyproxy.api.admin.requests import Requests
from troyproxy.api.admin.resource import AdminApp
from troyproxy.api.admin.statistics import Statistics
from troyproxy.api.admin.upstreams import upstream_resources
from troyproxy.api.outermost import guarded
from troyproxy.api.routing_table import Route
from troyproxy.api.services import Services
from troyproxy.api.wrong_tokens import WrongTokens


def admin_operations(services: Services) -> list[Operation]:
    """Return every operation of the admin API."""
    resources: list[Resource] = [
        Combos(services),
        ComboTrials(services),
        Reading(services),
        Requests(services),
        Statistics(services),
        Quota(services),
        Events(services),
        Acting(services),
        CatalogueDesk(services.catalogue),
        *upstream_resources(services),
        Keys(services),
        Models(services),
    ]
    return [operation for resource in resources for operation in resource.operations()]


def admin_routes(services: Services, wrong: WrongTokens) -> list[Route]:
    """Return every route under ``/api``, behind one guard; *wrong* are the guesses, wherever they are made."""
    guard = AdminGuard(services.admin_token, wrong)
    operations = Description(admin_operations(services)).operations
    return [Route(op.method, op.path, guarded(AdminApp(guard, op.handle, op.query))) for op in operations]
