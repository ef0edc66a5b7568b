"""What every way of serving begins with: the configuration, the log, the demo, and what is told about them."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from troyproxy.api.wiring import ALONE
from troyproxy.app import Wiring, sql_store
from troyproxy.catalog.keys import Key
from troyproxy.cli.announce import Announcer
from troyproxy.cli.demo_mode import demo_key, nothing_configured
from troyproxy.cli.listening import Listeners, is_loopback, url_of
from troyproxy.cli.log_mask import LogMask, secrets_in
from troyproxy.cli.server import METRICS
from troyproxy.errors import ConfigError, StoreUnavailable
from troyproxy.ports import Store
from troyproxy.settings.instance import instance_name
from troyproxy.settings.load import Configuration
from troyproxy.settings.secrets import ADMIN_TOKEN, SECRET_KEY, Generated, data_folder
from troyproxy.settings.values import Settings
from troyproxy.store.store import SqlStore
from troyproxy.telemetry.logs import setup

LOGGER: Final = logging.getLogger("troyproxy")


def refuse_open_door(settings: Settings) -> None:
    """Raise ConfigError when everybody in a network could call without a key."""
    if not settings.auth and not is_loopback(settings.host):
        raise ConfigError(
            f"TROY_AUTH=off is for a loopback listener, and TROY_HOST is {settings.host}: "
            "listen on 127.0.0.1, or leave TROY_AUTH on"
        )


class Start:
    """One start of a process that serves what *load* returns. *worker*: the name of this one among several."""

    def __init__(self, load: Callable[[], Configuration], *, demo: bool, worker: str = ALONE) -> None:
        self.load, self.configuration, self._chosen = load, load(), demo
        self.settings = self.configuration.settings
        self.folder = data_folder(self.settings.database_url)
        self.mask = LogMask(secrets_in(self.settings))
        self.wiring = Wiring(worker=worker)
        self._announcer = Announcer(sys.stderr)
        self._demo_key: Generated | None = None

    def begin_log(self) -> None:
        """Refuse what must not be served, and log to standard error. Raises ConfigError."""
        refuse_open_door(self.settings)
        worker = None if self.wiring.worker == ALONE else self.wiring.worker
        setup(self.settings.log, sys.stderr, tty=sys.stderr.isatty(), mask=self.mask, worker=worker)

    def store(self) -> SqlStore:
        """Return the database, not started. In the journal each worker goes by a name that it has again later."""
        worker = None if self.wiring.worker == ALONE else self.wiring.worker
        source = instance_name(self.settings, worker)
        return sql_store(self.settings, self.wiring.clock, source=source)

    @contextmanager
    def new_secrets_told(self) -> Iterator[None]:
        """Tell of the files with secrets that were made within."""
        files = [path for path in (self.folder / SECRET_KEY, self.folder / ADMIN_TOKEN) if not path.exists()]
        yield
        self._announcer.made(path for path in files if path.exists())

    async def decide_on_demo(self, store: SqlStore) -> None:
        """Begin demo mode if it was asked for or nothing else is configured. *store* is not started then, nor after."""
        if self._chosen or await nothing_configured(self.configuration, store):
            self.enter_demo()

    def enter_demo(self) -> None:
        """Serve the demo too, with its key."""
        self.wiring.demo = True
        if self.settings.auth:
            self._demo_key, key = demo_key(self.folder)
            self.wiring.keys = (key,)
            self.mask.add(self._demo_key.secret.reveal())

    def listens(self, main: Listeners, side: Listeners) -> None:
        """Tell where, and how to see the demo at work."""
        host, announcer = self.settings.host, self._announcer
        if side:
            LOGGER.info("metrics are served at %s%s", url_of(host, side), METRICS)
        if self.wiring.demo:
            announcer.demo(url_of(host, main), self._demo_key, chosen=self._chosen)
        else:
            announcer.ready(url_of(host, main))

    def nobody_can_call(self) -> None:
        """Tell how to make a key."""
        self._announcer.no_key()

    async def somebody_can_call(self, keys: Mapping[bytes, Key], store: Store) -> bool:
        """Whether *keys*, the demo or the database open the door; assumed when the database cannot be asked."""
        if self.wiring.demo or keys or not self.settings.auth:
            return True
        try:
            return any(key.valid(self.wiring.clock.now()) for key in await store.keys.list())
        except StoreUnavailable:
            return True
