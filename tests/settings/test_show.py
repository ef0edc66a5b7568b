"""Settings as they are shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from troyproxy.settings.load import load
from troyproxy.settings.parsers import PARSERS
from troyproxy.settings.show import rows, without_password


def test_every_setting_has_a_row(tmp_path: Path) -> None:
    assert [name for name, _, _ in rows(load({}, folder=tmp_path))] == list(PARSERS)


@pytest.mark.parametrize(
    ("name", "text", "shown"),
    [
        ("port", "8080", "8080"),
        ("auth", "off", "off"),
        ("trace", "1", "on"),
        ("keepalive_s", "2.50", "2.5"),
        ("trusted_proxies", "::1, 10.0.0.0/8", "::1,10.0.0.0/8"),
        ("default_provider", "", ""),
        ("admin_token", "hush", "***"),
        ("database_url", "postgresql://u:hush@h/d", "postgresql://u:***@h/d"),
        ("redis_url", "redis://:hush@h:6379/0", "redis://:***@h:6379/0"),
    ],
)
def test_a_value_is_shown_as_it_would_be_written_but_no_secret(
    tmp_path: Path, name: str, text: str, shown: str
) -> None:
    loaded = load({f"TROY_{name.upper()}": text}, folder=tmp_path)
    assert (name, shown, "environment") in rows(loaded)


def test_the_file_that_was_read_is_shown_and_why_it_was(tmp_path: Path) -> None:
    (tmp_path / "troyproxy.yaml").write_text("{}")
    (tmp_path / "other.yaml").write_text("{}")
    found = [
        rows(load({}, folder=tmp_path))[0],
        rows(load({"TROY_CONFIG": "other.yaml"}, folder=tmp_path))[0],
        rows(load({"TROY_CONFIG": "x.yaml"}, config="other.yaml", folder=tmp_path))[0],
    ]
    default, other = str(tmp_path / "troyproxy.yaml"), str(tmp_path / "other.yaml")
    assert found == [("config", default, "default"), ("config", other, "environment"), ("config", other, "option")]


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("sqlite+aiosqlite:///./data/troy.db", "sqlite+aiosqlite:///./data/troy.db"),
        ("postgresql://u:p@ss:w/rd@h:5/d", "postgresql://u:***@h:5/d"),
        ("postgresql://u@h/d?password=hush&x=1", "postgresql://u@h/d?password=***&x=***"),
    ],
)
def test_a_url_is_shown_without_its_password(url: str, shown: str) -> None:
    assert without_password(url) == shown
