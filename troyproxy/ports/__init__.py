"""Every seam, on one page each kind. What stands behind each is chosen in `troyproxy.app` and nowhere else.

`tests/fakes.py` and `tests/fake_store.py` have one fake per Protocol.
"""

from troyproxy.ports.clock import Clock
from troyproxy.ports.observing import Failover, Observer, UsageSink
from troyproxy.ports.repositories import (
    ComboRepository,
    ConnectionRepository,
    KeyRepository,
    ModelRepository,
    RequestRepository,
)
from troyproxy.ports.state import EventLog, News, StateMirror
from troyproxy.ports.store import Control, ControlEvent, Store
from troyproxy.ports.upstream import Headers, Upstream, UpstreamFailed, UpstreamRequest, UpstreamResponse

__all__ = [
    "Clock",
    "ComboRepository",
    "ConnectionRepository",
    "Control",
    "ControlEvent",
    "EventLog",
    "Failover",
    "Headers",
    "KeyRepository",
    "ModelRepository",
    "News",
    "Observer",
    "RequestRepository",
    "StateMirror",
    "Store",
    "Upstream",
    "UpstreamFailed",
    "UpstreamRequest",
    "UpstreamResponse",
    "UsageSink",
]
