"""troyproxy: an LLM gateway as ASGI middleware and as a reverse proxy.

This is the public door, and it is lazy: `import troyproxy` loads nothing but the version; a name is loaded from the
module that owns it when it is first asked for. Nothing here opens, reads or starts anything.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from troyproxy.version import __version__

if TYPE_CHECKING:
    from troyproxy.app import TroyProxy, create_app
    from troyproxy.leaks.suppress import strip_textual_tool_call
    from troyproxy.middleware.auth_guard import AuthGuard
    from troyproxy.middleware.effort_resolver import EffortResolver
    from troyproxy.middleware.preflight import Preflight
    from troyproxy.middleware.tool_leak_guard import ToolLeakGuard
    from troyproxy.middleware.usage_injector import UsageInjector

__all__ = [
    "AuthGuard",
    "EffortResolver",
    "Preflight",
    "ToolLeakGuard",
    "TroyProxy",
    "UsageInjector",
    "__version__",
    "create_app",
    "strip_textual_tool_call",
]

_HOMES: Final[Mapping[str, str]] = {
    "AuthGuard": "troyproxy.middleware.auth_guard",
    "EffortResolver": "troyproxy.middleware.effort_resolver",
    "Preflight": "troyproxy.middleware.preflight",
    "ToolLeakGuard": "troyproxy.middleware.tool_leak_guard",
    "TroyProxy": "troyproxy.app",
    "UsageInjector": "troyproxy.middleware.usage_injector",
    "create_app": "troyproxy.app",
    "strip_textual_tool_call": "troyproxy.leaks.suppress",
}


def __getattr__(name: str) -> object:
    if home := _HOMES.get(name):
        return getattr(importlib.import_module(home), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__]
