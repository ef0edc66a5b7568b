"""Switches spans on and off: what the standard variables ``OTEL_*`` ask for, and the exporter's life.

Nothing of OpenTelemetry is imported here before `open`, and then only when they ask for it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from troyproxy.accounting.records import Traced, UsageRow
from troyproxy.ports import Headers
from troyproxy.telemetry.silent import Sleeper
from troyproxy.telemetry.span_names import OPT_IN, is_latest

if TYPE_CHECKING:
    from troyproxy.telemetry.spans import Spans

LOGGER: Final = logging.getLogger("troyproxy.spans")
ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
PROTOCOLS: Final = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
EXPORTER: Final = "OTEL_TRACES_EXPORTER"
SPOKEN: Final = "http/protobuf"
CLOSE_S: Final = 5.0
"""How long a stop waits for spans to be delivered."""
MISSING: Final = "spans are asked for (OTEL_*), but the extra is not installed: pip install 'troyproxy[otel]'"

MakeSpans = Callable[[bool], "Spans"]
"""Makes them, with the latest names or not. Raises ModuleNotFoundError without the extra."""


def otlp_spans(latest: bool) -> Spans:  # noqa: FBT001 -- called through `MakeSpans`
    """Return spans that go where ``OTEL_*`` say."""
    from troyproxy.telemetry.spans import Spans  # noqa: PLC0415 -- half a second, and an extra: only when it is used

    return Spans(latest=latest)


class Tracing(Sleeper):
    """Hears of requests, and has spans made of them between `open` and `close`, if *env* asks; else it sleeps."""

    def __init__(self, env: Mapping[str, str], *, make: MakeSpans = otlp_spans) -> None:
        super().__init__()
        self._env = {name: value for name, value in env.items() if name.startswith("OTEL_")}
        self._make = make
        self._spans: Spans | None = None

    def begin(self, headers: Headers) -> Traced | None:
        """Return the place of a new request in its trace; None while no spans are made."""
        return None if self._spans is None else self._spans.begin(headers)

    def request_finished(self, row: UsageRow) -> None:
        """Have the spans of *row* made."""
        if self._spans is not None and row.traced is not None:
            self._spans.finished(row, row.traced)

    async def open(self) -> None:
        """Begin, if spans are asked for; what stands in the way is said, and the gateway works without."""
        if self._spans is not None or not wanted(self._env):
            return
        for name, value in self._env.items():  # a `.env` file may have named it: the SDK reads the process's own alone
            os.environ.setdefault(name, value)
        try:
            self._spans = self._make(is_latest(self._env.get(OPT_IN, "")))
        except ModuleNotFoundError:
            LOGGER.warning(MISSING)
        self.turn(asleep=self._spans is None)

    async def follow(self) -> None:
        """Wait for the stop, and deliver what is left then."""
        try:
            await asyncio.Event().wait()
        finally:
            await self.close()

    async def close(self) -> None:
        """End; spans that are not delivered within `CLOSE_S` are lost. Safe to call twice."""
        spans, self._spans = self._spans, None
        self.turn(asleep=True)
        if spans is None:
            return
        loop, done = asyncio.get_running_loop(), asyncio.Event()

        def deliver() -> None:
            spans.close()
            with suppress(RuntimeError):  # the loop has ended: nobody waits any more
                loop.call_soon_threadsafe(done.set)

        # A thread of its own: one that hangs on a receiver must not hold up the end of the process.
        threading.Thread(target=deliver, name="troyproxy-spans", daemon=True).start()
        try:
            async with asyncio.timeout(CLOSE_S):
                await done.wait()
        except TimeoutError:
            LOGGER.warning("the last spans are lost: they were not delivered within %g s", CLOSE_S)


def wanted(env: Mapping[str, str]) -> bool:
    """Whether *env* asks for spans: an endpoint, or ``OTEL_TRACES_EXPORTER=otlp``. What it asks in vain is said."""
    if env.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return False
    exporters = {word.strip() for word in env.get(EXPORTER, "").split(",")} - {""}
    asked = "otlp" in exporters if exporters else any(env.get(name, "").strip() for name in ENDPOINTS)
    if exporters - {"otlp", "none"}:
        LOGGER.warning("%s: only 'otlp' is known here", EXPORTER)
    protocol = next(filter(None, (env.get(name, "").strip() for name in PROTOCOLS)), SPOKEN)
    if asked and protocol != SPOKEN:
        LOGGER.warning("spans are not sent: the protocol %r is not spoken here, only %s", protocol[:50], SPOKEN)
    return asked and protocol == SPOKEN
