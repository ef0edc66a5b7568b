"""The two resources that say where requests go; they share one view of what is configured, and one turn to write."""

from __future__ import annotations

from troyproxy.api.admin.connections import Connections
from troyproxy.api.admin.in_force import InForce, file_of
from troyproxy.api.admin.operation import Resource
from troyproxy.api.admin.providers import Providers
from troyproxy.api.services import Services
from troyproxy.proxy.connection_book import ConnectionBook
from troyproxy.proxy.provider_book import ProviderBook
from troyproxy.proxy.provider_picture import Pictures


def upstream_resources(services: Services) -> list[Resource]:
    """Return ``/api/providers`` and ``/api/connections``."""
    store, configuration = services.store, services.configuration
    pictures = Pictures(store, lambda: services.snapshots.current, configuration.builtins, file=file_of(services))
    in_force = InForce(services)
    return [
        Providers(ProviderBook(store, pictures), in_force),
        Connections(ConnectionBook(store, pictures, services.clock), in_force),
    ]
