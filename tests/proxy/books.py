"""The two books over a database in memory and a configuration without a file."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.fake_store import FakeStore
from tests.fakes import FakeClock
from troyproxy.catalog.snapshot import Snapshot
from troyproxy.proxy.connection_book import ConnectionBook
from troyproxy.proxy.provider_book import ProviderBook
from troyproxy.proxy.provider_picture import Pictures
from troyproxy.settings.assemble import assemble
from troyproxy.settings.builtin import load_builtins
from troyproxy.settings.load import load


@dataclass
class Books:
    """What a test writes with; *snapshot* is what is fixed."""

    snapshot: Snapshot = field(default_factory=Snapshot)
    store: FakeStore = field(default_factory=FakeStore)
    clock: FakeClock = field(default_factory=lambda: FakeClock(manual=True))

    def __post_init__(self) -> None:
        pictures = Pictures(self.store, lambda: self.snapshot, load_builtins(), file="the config file t.yaml")
        self.providers = ProviderBook(self.store, pictures)
        self.connections = ConnectionBook(self.store, pictures, self.clock)


def in_environment(**env: str) -> Snapshot:
    """Return the snapshot of an environment."""
    return assemble(load(env), now=0.0)
