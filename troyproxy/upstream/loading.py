"""Finds an ASGI app by name. Importing the app's module is the point; nothing else of it is touched."""

from __future__ import annotations

import importlib
from functools import reduce

from starlette.types import ASGIApp

from troyproxy.errors import ConfigError


def load_app(reference: str) -> ASGIApp:
    """Return the app that ``package.module:attribute`` names. Raises ConfigError; what the module raises passes."""
    module_name, colon, attribute = reference.partition(":")
    if not (colon and module_name and attribute):
        raise ConfigError(f"app {reference!r}: expected 'package.module:attribute', 'inner' or 'demo'")
    try:
        module = importlib.import_module(module_name)
    except ImportError as exc:
        raise ConfigError(f"app {reference!r}: cannot import {module_name!r} ({exc})") from exc
    try:
        app: ASGIApp = reduce(getattr, attribute.split("."), module)  # type: ignore[assignment]  # checked below
    except AttributeError as exc:
        raise ConfigError(f"app {reference!r}: {module_name!r} has no {attribute!r}") from exc
    if not callable(app):
        raise ConfigError(f"app {reference!r}: it is no ASGI app (not callable)")
    return app
