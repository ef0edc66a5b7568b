"""Embedded gateways on a database of their own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.asgi import App
from tests.embedding.hosts import Wrap
from troyproxy import TroyProxy
from troyproxy.app import Wiring


@pytest.fixture
def options(tmp_path: Path) -> dict[str, object]:
    return {"database_url": f"sqlite+aiosqlite:///{tmp_path}/troy.db", "admin_token": "t" * 32}


@pytest.fixture
def wrap(options: dict[str, object]) -> Wrap:
    def wrapped(app: App, **more: Any) -> TroyProxy:  # noqa: ANN401 -- TroyProxy's own options
        given: dict[str, Any] = {"auth": "off", "settings": options, "wiring": Wiring(demo=True)}
        return TroyProxy(app, **{**given, **more})

    return wrapped
