"""Generated secrets."""

from __future__ import annotations

import stat
import threading
from pathlib import Path

import pytest

from troyproxy.catalog.secret import Secret
from troyproxy.errors import ConfigError
from troyproxy.settings.secrets import Generated, admin_token, data_folder, ensure, secret_key
from troyproxy.settings.values import Settings


def mode(path: Path) -> int:
    """Return the permission bits of a path."""
    return stat.S_IMODE(path.stat().st_mode)


def test_a_missing_secret_is_made_and_written(tmp_path: Path) -> None:
    made = ensure(tmp_path / "data" / "admin.token", lambda: "hush")
    assert (made.secret.reveal(), made.created, made.path.read_text()) == ("hush", True, "hush\n")


def test_only_the_owner_may_look(tmp_path: Path) -> None:
    made = ensure(tmp_path / "data" / "admin.token", lambda: "hush")
    assert (mode(made.path), mode(made.path.parent)) == (0o600, 0o700)


def test_an_existing_secret_stays(tmp_path: Path) -> None:
    ensure(tmp_path / "s", lambda: "first")
    again = ensure(tmp_path / "s", lambda: "second")
    assert (again.secret.reveal(), again.created) == ("first", False)


def test_nothing_else_is_left_in_the_folder(tmp_path: Path) -> None:
    ensure(tmp_path / "s", lambda: "x")
    assert [p.name for p in tmp_path.iterdir()] == ["s"]


def test_workers_that_start_together_agree(tmp_path: Path) -> None:
    barrier, found = threading.Barrier(8), list[Generated]()

    def work(name: str) -> None:
        def make() -> str:
            barrier.wait(timeout=10)
            return name

        found.append(ensure(tmp_path / "s", make))

    threads = [threading.Thread(target=work, args=(str(i),)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({g.secret.reveal() for g in found}) == 1
    assert [g.created for g in found].count(True) == 1
    assert [p.name for p in tmp_path.iterdir()] == ["s"]


@pytest.mark.parametrize("raw", [b"", b" \n"])
def test_an_empty_file_is_an_error_that_says_what_to_do(tmp_path: Path, raw: bytes) -> None:
    (tmp_path / "s").write_bytes(raw)
    with pytest.raises(ConfigError, match="is empty; delete it"):
        ensure(tmp_path / "s", lambda: "x")


def test_a_file_that_is_no_text_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "s").write_bytes(b"\xff")
    with pytest.raises(ConfigError, match="not ASCII text"):
        ensure(tmp_path / "s", lambda: "x")


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="cannot be read or written"):
        ensure(tmp_path / "file" / "s", lambda: "x")


@pytest.mark.parametrize(
    ("url", "folder"),
    [
        ("sqlite+aiosqlite:///./data/troy.db", "data"),
        ("sqlite+aiosqlite:////var/lib/troy/troy.db", "/var/lib/troy"),
        ("sqlite+aiosqlite:///troy.db", "."),
        ("sqlite+aiosqlite:///file:/srv/t.db?uri=true", "/srv"),
        ("sqlite+aiosqlite://", "data"),
        ("sqlite+aiosqlite:///:memory:", "data"),
        ("postgresql+asyncpg://u:p@h/d", "data"),
    ],
)
def test_secrets_live_beside_the_sqlite_file(url: str, folder: str) -> None:
    assert data_folder(url) == Path(folder)


def test_only_a_sqlite_file_gets_a_key_of_its_own(tmp_path: Path) -> None:
    assert len(secret_key(Settings(database_url=f"sqlite+aiosqlite:///{tmp_path}/troy.db")).reveal()) == 44
    with pytest.raises(ConfigError, match="TROY_SECRET_KEY is required"):
        secret_key(Settings(database_url="postgresql://h/d"))


def test_the_admin_token_is_made_once_and_kept_beside_the_database(tmp_path: Path) -> None:
    settings = Settings(database_url=f"sqlite+aiosqlite:///{tmp_path}/data/troy.db")
    token = admin_token(settings)
    file = tmp_path / "data" / "admin.token"
    assert admin_token(settings) == token
    assert (file.read_text().strip(), len(token.reveal())) == (token.reveal(), 43)
    assert (mode(file), mode(file.parent)) == (0o600, 0o700)


def test_an_admin_token_that_is_given_is_written_nowhere(tmp_path: Path) -> None:
    settings = Settings(database_url=f"sqlite+aiosqlite:///{tmp_path}/troy.db", admin_token=Secret("given"))
    assert (admin_token(settings), list(tmp_path.iterdir())) == (Secret("given"), [])


def test_the_key_at_rest_is_made_once(tmp_path: Path) -> None:
    settings = Settings(database_url=f"sqlite+aiosqlite:///{tmp_path}/data/troy.db")
    assert secret_key(settings) == secret_key(settings)
    assert mode(tmp_path / "data" / "secret.key") == 0o600


def test_a_key_that_is_given_is_used_with_any_database() -> None:
    given = Secret("k" * 43)
    assert secret_key(Settings(database_url="postgresql://h/d", secret_key=given)) == given
