"""Every seam, on one page each kind. What stands behind each is chosen in `troyproxy.app` and nowhere else.

`tests/fakes.py` and `tests/fake_store.py` have one fake per Protocol.
"""

from troyproxy.ports.attempts import SharedAttempts
from troyproxy.ports.clock import Clock
from troyproxy.ports.limits import Admission, Correction, Counted, SharedLimits, UsageSums
from troyproxy.ports.observing import AutoPlan, Failover, Observer, UsageSink
from troyproxy.ports.repositories import (
    ComboRepository,
    ConnectionRepository,
    KeyRepository,
    ModelRepository,
    ProviderRepository,
    RequestRepository,
)
from troyproxy.ports.state import EventLog, News, StateMirror
from troyproxy.ports.statistics import DailySum, Statistics
from troyproxy.ports.store import Control, ControlEvent, Store
from troyproxy.ports.upstream import (
    Ear,
    EarFailed,
    Headers,
    Upstream,
    UpstreamFailed,
    UpstreamRequest,
    UpstreamResponse,
    gathered,
)

__all__ = [
    "Admission",
    "AutoPlan",
    "Clock",
    "ComboRepository",
    "ConnectionRepository",
    "Control",
    "ControlEvent",
    "Correction",
    "Counted",
    "DailySum",
    "Ear",
    "EarFailed",
    "EventLog",
    "Failover",
    "Headers",
    "KeyRepository",
    "ModelRepository",
    "News",
    "Observer",
    "ProviderRepository",
    "RequestRepository",
    "SharedAttempts",
    "SharedLimits",
    "StateMirror",
    "Statistics",
    "Store",
    "Upstream",
    "UpstreamFailed",
    "UpstreamRequest",
    "UpstreamResponse",
    "UsageSink",
    "UsageSums",
    "gathered",
]
