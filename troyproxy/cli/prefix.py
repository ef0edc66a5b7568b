"""``TROY_ROOT_PATH``: everything lies below a prefix, whether the proxy in front takes it off or passes it on."""

from __future__ import annotations

from troyproxy.api.gateway import ASGIApp
from troyproxy.proxy.answers import Receive, Send
from troyproxy.proxy.call import Scope


class Prefixed:
    """Makes every path the outer one, *root* included, and says where the app is mounted, as ASGI wants it.

    A path without the prefix is one from which the proxy took it off, or that of a probe that knows of no prefix.
    """

    def __init__(self, app: ASGIApp, root: str) -> None:
        self.app, self._root = app, root

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if "path" in scope:
            path = str(scope["path"])
            whole = path == self._root or path.startswith(f"{self._root}/")
            scope = {**scope, "root_path": self._root, "path": path if whole else self._root + path}
        await self.app(scope, receive, send)
