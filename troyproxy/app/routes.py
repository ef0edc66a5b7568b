"""Which path is served by what: the client API, health, metrics, and the admin API."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from troyproxy.api.admin.routes import admin_routes
from troyproxy.api.edge import UPSTREAM_PATHS
from troyproxy.api.gateway import ASGIApp
from troyproxy.api.health import Liveness, Readiness
from troyproxy.api.metrics import MetricsPage
from troyproxy.api.models import ModelList
from troyproxy.api.outermost import guarded, outermost, preflights
from troyproxy.api.routing_table import Route
from troyproxy.api.services import Services
from troyproxy.api.wrong_tokens import WrongTokens
from troyproxy.app.onion import Onion
from troyproxy.catalog.secret import Secret
from troyproxy.settings.values import Settings
from troyproxy.telemetry.metrics import Metrics

LOOPBACK: Final = frozenset({"127.0.0.1", "::1", "localhost"})


@dataclass(frozen=True, slots=True)
class Routes:
    """Everything that routes are made of."""

    settings: Settings
    onion: Onion
    services: Services
    metrics: Metrics
    stopping: Callable[[], bool]

    def all(self) -> list[Route]:
        """Return every route of a gateway that stands alone."""
        client, wrong = self._client(), WrongTokens(self.services.clock)
        return [
            *client,
            *preflights(client, self.settings.cors_origins),
            *self._operations(wrong),
            *admin_routes(self.services, wrong),
        ]

    def _client(self) -> list[Route]:
        posts = [Route("POST", path.replace("}", ":path}"), self.onion.around(path)) for path in UPSTREAM_PATHS]
        standing = None if self.settings.expose == "id" else self.onion.limits.standing
        models: ASGIApp = ModelList(self.onion.snapshot, self.onion.authenticate, standing)
        models = outermost(models, self.settings.cors_origins)
        return [*posts, Route("GET", "/v1/models", models), Route("GET", "/v1/models/{id:path}", models)]

    def _operations(self, wrong: WrongTokens) -> list[Route]:
        live = guarded(Liveness())
        ready = guarded(Readiness(self.services.status.dependencies, self.stopping))
        return [
            *(Route("GET", path, live) for path in ("/healthz", "/livez")),
            Route("GET", "/readyz", ready),
            Route("GET", "/metrics", self._metrics(wrong)),
        ]

    def _metrics(self, wrong: WrongTokens) -> ASGIApp:
        open_here = self.settings.host in LOOPBACK
        return guarded(MetricsPage(self.metrics.render, self._metrics_tokens(), open_here=open_here, wrong=wrong))

    def _metrics_tokens(self) -> Sequence[Secret]:
        given = (self.settings.metrics_token, self.services.admin_token)
        return [token for token in given if token is not None]
