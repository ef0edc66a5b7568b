"""Model names as plans."""

from __future__ import annotations

import pytest

from troyproxy.demo.faults import MAX_MS, Kind, Script, error_body, script_of


@pytest.mark.parametrize(
    ("model", "script"),
    [
        ("ok", Script()),
        ("chat", Script()),
        ("gpt-4o", Script()),
        ("answer", Script()),
        ("fail", Script()),
        ("fail-200", Script()),
        ("fail-429", Script(Kind.FAIL, status=429)),
        ("fail-429-retry-7", Script(Kind.FAIL, status=429, retry_after_s=7)),
        ("fail-302", Script(Kind.FAIL, status=302)),
        ("hang", Script(Kind.HANG)),
        ("slow", Script(token_s=0.2)),
        ("slow-50", Script(token_s=0.05)),
        ("slow-9999999", Script(token_s=MAX_MS / 1000)),
        ("first-250", Script(first_s=0.25)),
        ("cut", Script(cut_after=2)),
        ("cut-0", Script(cut_after=0)),
        ("cut-12345678", Script()),
        ("empty", Script(Kind.EMPTY)),
        ("garbage", Script(Kind.GARBAGE)),
        ("error-event", Script(Kind.ERROR_EVENT)),
        ("leak", Script(Kind.LEAK)),
        ("echo", Script(Kind.ECHO)),
        ("usage-every", Script(usage_every=True)),
    ],
)
def test_a_model_name_is_a_plan(model: str, script: Script) -> None:
    assert script_of(model) == script


@pytest.mark.parametrize(
    ("status", "kind"),
    [(401, "invalid_request_error"), (429, "rate_limit_error"), (418, "invalid_request_error"), (502, "server_error")],
)
def test_every_status_has_an_error_body(status: int, kind: str) -> None:
    error = error_body(status)["error"]
    assert isinstance(error, dict)
    assert (error["type"], set(error)) == (kind, {"message", "type", "param", "code"})
