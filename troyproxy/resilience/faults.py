"""What can go wrong without a usable HTTP answer: the vocabulary between the upstream adapters and the classifier.

It holds names only; what a fault means is decided in ``classify.py``.
"""

from __future__ import annotations

from enum import StrEnum


class Fault(StrEnum):
    """One way an attempt can fail below or beside HTTP."""

    CONNECT = "connect"
    """No connection: refused, unreachable, name not resolved."""
    TLS = "tls"
    """The handshake or the certificate was refused."""
    RESET = "reset"
    """The connection was lost after it stood."""
    PROTOCOL = "protocol"
    """The peer does not speak HTTP as it should."""
    TIMEOUT_CONNECT = "timeout_connect"
    TIMEOUT_FIRST_BYTE = "timeout_first_byte"
    TIMEOUT_IDLE = "timeout_idle"
    """Silence between two events of a stream."""
    TIMEOUT_TOTAL = "timeout_total"
    """The attempt or the first output took longer than its whole limit."""
    EMPTY = "empty"
    """A 200 with an empty body."""
    NOT_A_COMPLETION = "not_a_completion"
    """A 200 with HTML, garbage, malformed JSON, or JSON that is no completion."""
    SATURATED = "saturated"
    """Our own pool or slot was full; nothing was sent."""
    CANCELLED = "cancelled"
    """The client went away."""
    LEAK = "leak"
    """A gate found a tool call written as text, and another member is left to try."""
