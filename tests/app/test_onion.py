"""The order of the layers is the design's, and every client route has them all."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import pytest

from tests.fakes import FakeClock
from troyproxy.api.edge import UPSTREAM_PATHS
from troyproxy.app import Wiring, create_app
from troyproxy.middleware.bridge import READINGS
from troyproxy.proxy.call import PASS_THROUGH
from troyproxy.settings.values import Settings
from troyproxy.telemetry.labels import ROUTES

ORDER = [
    "AuthGuard",
    "Bridge",
    "EffortResolver",
    "Preflight",
    "KeyLimits",
    "ToolLeakGuard",
    "UsageInjector",
    "ProxyEndpoint",
]


def _layers(app: object) -> Iterator[str]:
    while app is not None:
        if not inspect.isfunction(app):
            yield type(app).__name__
        app = getattr(app, "app", None)


def test_every_client_route_has_a_label_of_its_own() -> None:
    assert UPSTREAM_PATHS.keys() <= ROUTES


def test_what_is_read_as_opaque_is_what_is_passed_through() -> None:
    assert READINGS.keys() == PASS_THROUGH < UPSTREAM_PATHS.keys()


@pytest.mark.parametrize("path", UPSTREAM_PATHS)
def test_a_client_route_goes_through_the_layers_in_the_order_of_the_design(path: str) -> None:
    gateway = create_app(Settings(), wiring=Wiring(clock=FakeClock()))
    route = next(route for route in gateway.table.routes if route.path.replace(":path", "") == path)
    assert [name for name in _layers(route.app) if name in ORDER] == ORDER
