"""Chooses the adapter of a request: an app of this process when the provider names one, the network otherwise."""

from __future__ import annotations

from collections.abc import Coroutine, Mapping

from starlette.types import ASGIApp

from troyproxy.errors import ConfigError
from troyproxy.ports import Upstream, UpstreamFailed, UpstreamRequest, UpstreamResponse
from troyproxy.resilience.faults import Fault
from troyproxy.upstream.asgi import AsgiUpstream
from troyproxy.upstream.loading import load_app


class RoutedUpstream:
    """One `Upstream` for every provider. *apps* by the provider's `app`; ``package:attr`` is loaded when missing."""

    def __init__(self, http: Upstream, apps: Mapping[str, ASGIApp]) -> None:
        self._http = http
        self._apps = {name: AsgiUpstream(app) for name, app in apps.items()}

    def send(self, request: UpstreamRequest) -> Coroutine[object, None, UpstreamResponse]:
        """Send *request* where its provider lives."""  # no coroutine of its own: this is on every request's way
        if request.provider.app is None:
            return self._http.send(request)
        return self._app(request.provider.app).send(request)

    async def aclose(self) -> None:
        """End every call into an app, then close the pools."""
        for app in self._apps.values():
            await app.aclose()
        await self._http.aclose()

    def _app(self, name: str) -> AsgiUpstream:
        if name not in self._apps:  # a reload may name a new one; the names come from the file only
            try:
                self._apps[name] = AsgiUpstream(load_app(name))
            except ConfigError as exc:
                raise UpstreamFailed(Fault.CONNECT, str(exc)) from exc
        return self._apps[name]
