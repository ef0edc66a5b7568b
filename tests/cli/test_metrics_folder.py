from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from troyproxy.cli.metrics_folder import LOCK, metrics_folder
from troyproxy.errors import ConfigError


def test_it_is_private_and_empty_and_gone_at_the_end(tmp_path: Path) -> None:
    with metrics_folder(tmp_path / "data") as (folder, _):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert [path.name for path in folder.iterdir()] == [LOCK]
        (folder / "counter_worker-1.db").touch()
    assert list((tmp_path / "data").iterdir()) == []


def test_two_instances_have_two(tmp_path: Path) -> None:
    with metrics_folder(tmp_path) as (one, _), metrics_folder(tmp_path) as (two, _):
        assert one != two
        assert one.exists()


def test_what_a_killed_instance_left_is_removed(tmp_path: Path) -> None:
    left = tmp_path / "metrics-old"
    left.mkdir()
    (left / LOCK).touch()
    (left / "counter_worker-1.db").touch()
    with metrics_folder(tmp_path):
        assert not left.exists()


def test_what_workers_of_a_killed_instance_still_hold_stays(tmp_path: Path) -> None:
    with metrics_folder(tmp_path) as (folder, lock):
        inherited = os.dup(lock)
        (folder / "counter_worker-1.db").touch()
        folder.rename(tmp_path / "metrics-of-the-killed")  # so that its end removes nothing, as a kill would
    with metrics_folder(tmp_path):
        assert (tmp_path / "metrics-of-the-killed").exists()
    os.close(inherited)
    with metrics_folder(tmp_path):
        assert not (tmp_path / "metrics-of-the-killed").exists()


def test_where_none_can_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "data").touch()
    with (
        pytest.raises(ConfigError, match="cannot make a folder for the workers' metrics"),
        metrics_folder(tmp_path / "data"),
    ):
        pass
