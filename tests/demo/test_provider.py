"""The demo provider's place in the configuration."""

from __future__ import annotations

from troyproxy.catalog.snapshot import build
from troyproxy.demo.faults import Kind, script_of
from troyproxy.demo.provider import demo_combo, demo_provider


def test_the_combo_fails_first_and_answers_then() -> None:
    plans = [script_of((member.model or "").removeprefix("demo/")) for member in demo_combo().members]
    assert (plans[0].status, plans[0].retry_after_s, plans[1].kind) == (429, 1, Kind.ANSWER)


def test_the_members_are_listed_models_of_a_keyless_provider() -> None:
    provider = demo_provider()
    listed = {f"demo/{name}" for name in provider.models}
    assert (provider.keyless, provider.app, provider.first_model()) == (True, "demo", "chat")
    assert {member.model for member in demo_combo().members} <= listed


def test_both_fit_a_snapshot() -> None:
    snapshot = build([demo_provider()], [demo_combo()])
    assert snapshot.combo("demo") == demo_combo()
