"""When spans are made at all, and how that begins and ends."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import cast

import pytest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from tests.telemetry.rows import row
from troyproxy.accounting.records import Traced
from troyproxy.telemetry import tracing
from troyproxy.telemetry.spans import Spans
from troyproxy.telemetry.tracing import Tracing, otlp_spans, wanted

pytestmark = pytest.mark.anyio

ENDPOINT = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"}


@pytest.mark.parametrize(
    ("env", "asked"),
    [
        ({}, False),
        (ENDPOINT, True),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": " "}, False),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:9/v1/traces"}, True),
        ({"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "http://127.0.0.1:9"}, False),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, True),
        ({**ENDPOINT, "OTEL_TRACES_EXPORTER": "none"}, False),
        ({**ENDPOINT, "OTEL_SDK_DISABLED": "True"}, False),
        ({**ENDPOINT, "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"}, True),
    ],
)
async def test_the_standard_variables_switch_spans_on(env: dict[str, str], asked: bool) -> None:
    assert wanted(env) is asked


@pytest.mark.parametrize(
    "env",
    [
        {"OTEL_TRACES_EXPORTER": "console"},
        {**ENDPOINT, "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
    ],
)
async def test_what_is_asked_in_vain_is_said(env: dict[str, str], caplog: pytest.LogCaptureFixture) -> None:
    assert (wanted(env), [record.levelname for record in caplog.records]) == (False, ["WARNING"])


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> InMemorySpanExporter:
    for name in ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_SERVICE_NAME"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)  # whatever is written there by a test is gone behind it
    return InMemorySpanExporter()


async def test_spans_are_made_between_opening_and_closing(memory: InMemorySpanExporter) -> None:
    tracing = Tracing(ENDPOINT, make=lambda latest: Spans(memory, latest=latest))
    before = tracing.begin(())
    await tracing.open()
    await tracing.open()
    traced = tracing.begin(())
    tracing.request_finished(row(traced=traced))
    await tracing.close()
    await tracing.close()
    assert (before, tracing.begin(()), len(memory.get_finished_spans())) == (None, None, 1)


async def test_a_request_from_before_the_opening_has_no_span(memory: InMemorySpanExporter) -> None:
    tracing = Tracing(ENDPOINT, make=lambda latest: Spans(memory, latest=latest))
    await tracing.open()
    tracing.request_finished(row())
    await tracing.close()
    tracing.request_finished(row(traced=Traced("1" * 32, "2" * 16)))
    assert memory.get_finished_spans() == ()


async def test_the_end_of_the_background_work_delivers_what_is_left(memory: InMemorySpanExporter) -> None:
    tracing = Tracing(ENDPOINT, make=lambda latest: Spans(memory, latest=latest))
    await tracing.open()
    tracing.request_finished(row(traced=tracing.begin(())))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await tracing.follow()
    assert len(memory.get_finished_spans()) == 1


async def test_the_sdk_sees_what_a_dotenv_file_said(memory: InMemorySpanExporter) -> None:
    tracing = Tracing({**ENDPOINT, "OTEL_SERVICE_NAME": "edge-1", "HOME": "x"}, make=lambda _: Spans(memory))
    await tracing.open()
    traced = tracing.begin(())
    tracing.request_finished(row(traced=traced))
    await tracing.close()
    assert memory.get_finished_spans()[0].resource.attributes["service.name"] == "edge-1"


async def test_without_the_extra_the_gateway_works_and_says_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, memory: InMemorySpanExporter
) -> None:
    del memory
    monkeypatch.setitem(sys.modules, "troyproxy.telemetry.spans", None)
    gone = Tracing(ENDPOINT)
    await gone.open()
    assert (gone.begin(()), [record.getMessage() for record in caplog.records]) == (None, [tracing.MISSING])


class Stuck:
    """Spans whose receiver never answers."""

    def __init__(self) -> None:
        self.free = threading.Event()

    def close(self) -> None:
        self.free.wait()


async def test_a_stop_does_not_wait_for_a_receiver_that_hangs(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, memory: InMemorySpanExporter
) -> None:
    del memory
    monkeypatch.setattr(tracing, "CLOSE_S", 0.01)
    stuck = Stuck()
    hanging = Tracing(ENDPOINT, make=cast("Callable[[bool], Spans]", lambda _: stuck))
    await hanging.open()
    await hanging.close()
    stuck.free.set()
    assert [record.levelname for record in caplog.records] == ["WARNING"]


async def test_spans_for_a_receiver_that_is_away_hurt_nobody(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, memory: InMemorySpanExporter
) -> None:
    del memory
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "0.2")
    away = Tracing({**ENDPOINT})
    await away.open()
    with caplog.at_level(logging.INFO, "troyproxy"):
        for _ in range(1000):
            away.request_finished(row(traced=away.begin(())))
        await away.close()
    assert [record.levelname for record in caplog.records if record.name == "troyproxy.spans"] == ["WARNING"]


async def test_the_exporter_is_that_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", ENDPOINT["OTEL_EXPORTER_OTLP_ENDPOINT"])
    spans = otlp_spans(latest=True)
    spans.close()
    assert isinstance(spans, Spans)


async def test_nothing_of_opentelemetry_is_imported_before_it_is_asked_for() -> None:
    script = "import sys, troyproxy.app; sys.exit(any(name.startswith('opentelemetry') for name in sys.modules))"
    done = await asyncio.to_thread(subprocess.run, [sys.executable, "-c", script], check=False, timeout=60)
    assert done.returncode == 0
