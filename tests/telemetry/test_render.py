"""The form of a scrape follows the Accept header."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Counter

from troyproxy.telemetry.render import render, wants_openmetrics

PROMETHEUS = (
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,"
    "application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;q=0.4,text/plain;q=0.3,*/*;q=0.2"
)


@pytest.mark.parametrize(
    ("accept", "wanted"),
    [
        (PROMETHEUS, True),
        ("application/openmetrics-text", True),
        ("Application/OpenMetrics-Text; Q=0.5", True),
        ("application/openmetrics-text;q=0.1, text/plain", False),
        ("application/openmetrics-text;q=0", False),
        ("application/openmetrics-text;q=junk", False),
        ("application/openmetrics-text;q=nan", False),
        ("text/html, */*", False),
        ("", False),
    ],
)
def test_openmetrics_is_given_to_those_who_prefer_it(accept: str, wanted: bool) -> None:
    assert wants_openmetrics(accept) is wanted


@given(st.text())
def test_any_accept_header_gets_an_answer(accept: str) -> None:
    text, content_type = render(CollectorRegistry(), accept)
    assert text in {b"", b"# EOF\n"}
    assert "\n" not in content_type


@pytest.mark.parametrize("accept", ["", PROMETHEUS])
def test_creation_times_are_left_out(accept: str) -> None:
    registry = CollectorRegistry()
    Counter("things", "Things.", registry=registry).inc()
    text, _ = render(registry, accept)
    assert b"things_total 1.0" in text
    assert b"_created" not in text
