"""Demo mode: when it begins by itself, its client key, and the one line that shows it at work."""

from __future__ import annotations

import json
import shlex
import time
from pathlib import Path
from typing import Final

from troyproxy.catalog.keys import Key
from troyproxy.catalog.providers import Origin
from troyproxy.demo.provider import PROVIDER
from troyproxy.errors import StoreUnavailable
from troyproxy.proxy.authenticator import digest_of, generate_key
from troyproxy.settings.assemble import Stored, assemble
from troyproxy.settings.load import Configuration
from troyproxy.settings.secrets import DEMO_KEY, Generated, ensure
from troyproxy.store.store import SqlStore

_BODY: Final = {"model": PROVIDER, "messages": [{"role": "user", "content": "Hello!"}]}


def demo_key(folder: Path) -> tuple[Generated, Key]:
    """Return the demo key of the data *folder*, made once, and the client key that it is. Raises ConfigError."""
    made = ensure(folder / DEMO_KEY, generate_key)
    digest = digest_of(made.secret.reveal().encode())
    return made, Key(id="demo", name="demo", digest=digest, origin=Origin.BUILTIN)


async def nothing_configured(configuration: Configuration, store: SqlStore) -> bool:
    """Whether file, environment and database name no provider at all; False when the database cannot be asked.

    Raises ConfigError. *store* is not started before, nor after.
    """
    now = time.time()
    if assemble(configuration, now=now).providers:
        return False
    try:
        await store.start()
        stored = Stored(providers=await store.providers.list(), accounts=await store.connections.list())
    except StoreUnavailable:
        return False
    finally:
        await store.stop()
    return not assemble(configuration, stored, now=now).providers


def curl(url: str, made: Generated | None, *, show: bool) -> str:
    """Return a command line that calls the combo ``demo`` at *url*; with the key itself only when *show* says so."""
    parts = ["curl -sSi", f"{url}/v1/chat/completions"]
    if made is not None:
        key = made.secret.reveal() if show else f"$(cat {shlex.quote(str(made.path))})"
        parts.append(f'-H "Authorization: Bearer {key}"')
    parts += ["-H 'Content-Type: application/json'", f"-d '{json.dumps(_BODY)}'"]
    return " ".join(parts)
