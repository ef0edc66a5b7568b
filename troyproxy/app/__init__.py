"""The one place that names concrete classes: adapters behind ports, the onion of layers, the route table.

create_app(settings)    the gateway as an ASGI app of its own
TroyProxy(app, …)       the same, around an existing ASGI app

`building` makes the parts and hands them to each other, `onion` wraps the layers, `routes` names the paths.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from troyproxy.api.gateway import ASGIApp, Embedded, Gateway
from troyproxy.api.services import Services
from troyproxy.api.wiring import Wiring
from troyproxy.app.building import Builder, sql_store
from troyproxy.app.routes import LOOPBACK
from troyproxy.proxy.sources import Load
from troyproxy.settings.builtin import load_builtins
from troyproxy.settings.load import Configuration, load
from troyproxy.settings.values import Settings

__all__ = ["LOOPBACK", "TroyProxy", "Wiring", "create_app", "create_with_services", "sql_store"]


def create_app(
    settings: Settings | Configuration | None = None, *, load_again: Load | None = None, wiring: Wiring | None = None
) -> Gateway:
    """Return a gateway. Without *settings* they come from the environment and ``troyproxy.yaml``, if it is there.

    *load_again* reads the configuration anew at a reload; by default the way it was read here. Opens nothing: the
    lifespan does. Raises ConfigError.
    """
    return create_with_services(settings, load_again=load_again, wiring=wiring)[0]


def create_with_services(
    settings: Settings | Configuration | None = None, *, load_again: Load | None = None, wiring: Wiring | None = None
) -> tuple[Gateway, Services]:
    """Return a gateway as `create_app` does, and the parts that commands and the admin API work with."""
    again = load_again or _loader(settings)
    configuration = again() if not isinstance(settings, Configuration) else settings
    builder = Builder(configuration, again, wiring or Wiring())
    return builder.gateway(), builder.services()


def _loader(settings: Settings | Configuration | None) -> Load:
    if isinstance(settings, Configuration):
        return lambda: settings
    if isinstance(settings, Settings):
        return lambda: Configuration(settings, {}, builtins=load_builtins())
    return lambda: load(os.environ)


class TroyProxy(Embedded):
    """ASGI middleware: the gateway's routes under *prefix*, its admin pages under *admin_prefix*, the rest is *app*'s.

    *config* is the path of a config file; *settings* come instead of, or with *config* over, the environment's.
    *prefix* and *admin_prefix* begin with a slash, or are empty; *admin_prefix* None: no admin pages at all.
    ``auth="off"`` opens the client API, under the rules of ``TROY_AUTH=off``; that variable alone opens nothing here.
    A provider with ``app: inner`` is *app* itself, called in process at ``/v1``.
    """

    def __init__(  # noqa: PLR0913 -- options of a middleware, by keyword
        self,
        app: ASGIApp,
        config: str | Path | None = None,
        *,
        prefix: str = "",
        admin_prefix: str | None = "/troy",
        auth: str | None = None,
        settings: Mapping[str, object] | None = None,
        wiring: Wiring | None = None,
    ) -> None:
        options = {"auth": "on", **(settings or {}), **({"auth": auth} if auth is not None else {})}
        wiring = wiring or Wiring()
        wiring = replace(wiring, apps={**wiring.apps, "inner": app})
        gateway = create_app(load_again=lambda: load(os.environ, config=config, options=options), wiring=wiring)
        super().__init__(app, gateway, prefix=prefix, admin_prefix=admin_prefix)
