"""Who a process is in the journal."""

from __future__ import annotations

import platform

import pytest

from troyproxy.settings.instance import instance_name
from troyproxy.settings.values import Settings


def test_an_instance_goes_by_machine_and_port(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "node", lambda: "pod-7")
    assert instance_name(Settings(host="0.0.0.0", port=80)) == "pod-7:80"


def test_a_worker_has_its_own_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "node", lambda: "pod-7")
    assert instance_name(Settings(port=80), "worker-2") == "pod-7:80/worker-2"


def test_a_machine_without_a_name_goes_by_its_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "node", lambda: "")
    assert instance_name(Settings(host="127.0.0.1", port=80)) == "127.0.0.1:80"
