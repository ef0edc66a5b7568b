"""Usage rows and attempts for the tests of this folder."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from troyproxy.accounting.records import AttemptRecord, UsageRow
from troyproxy.accounting.usage import Usage

ROW = UsageRow(
    request_id="req-1",
    at=1_800_000_000.0,
    route="/v1/chat/completions",
    key_id="k1",
    key_name="laptop",
    requested_model="combo1",
    combo="combo1",
    strategy="priority",
    stream=True,
    status=200,
    outcome="ok",
    provider="alpha",
    model="m1",
    account="A",
    usage=Usage(100, 20, cached=40, reasoning=5),
    cost_usd=0.25,
    duration_ms=1500.0,
    overhead_ms=0.4,
    first_token_ms=300.0,
)
ATTEMPT = AttemptRecord("alpha", "m1", "A", "ok", 200, 1_800_000_000.0, 1200.0)


def row(**changes: Any) -> UsageRow:  # noqa: ANN401 - any field of the row
    return replace(ROW, **changes)


def attempt(**changes: Any) -> AttemptRecord:  # noqa: ANN401 - any field of the attempt
    return replace(ATTEMPT, **changes)
