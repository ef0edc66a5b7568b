"""The parts behind the commands, one by one."""

from __future__ import annotations

import asyncio
import io
import re
import socket
from pathlib import Path

import pytest
import typer

from tests.fakes import FakeClock
from troyproxy.catalog.providers import Account, Provider
from troyproxy.catalog.secret import Secret
from troyproxy.catalog.snapshot import Snapshot, build
from troyproxy.cli import output
from troyproxy.cli.announce import Announcer
from troyproxy.cli.demo_mode import curl, demo_key, nothing_configured
from troyproxy.cli.listening import is_loopback, listening, url_of
from troyproxy.cli.log_mask import LogMask, secrets_in
from troyproxy.cli.moments import expiry, shown
from troyproxy.errors import ConfigError, StoreUnavailable
from troyproxy.proxy.authenticator import GENERATED, digest_of, generate_key
from troyproxy.proxy.trials import message_of
from troyproxy.settings.load import load
from troyproxy.settings.values import Settings
from troyproxy.store.store import SqlStore


def _snapshot(key: str) -> Snapshot:
    return build([Provider(id="p", accounts=(Account(id="p#a", provider="p", name="a", api_key=Secret(key)),))])


# --- the log's mask


def test_the_mask_follows_the_snapshot() -> None:
    snapshots = [_snapshot("first plain words")]
    mask = LogMask()
    mask.watch(lambda: snapshots[-1])
    assert mask("it was first plain words") == "it was ***"
    snapshots.append(_snapshot("second plain words"))
    assert mask("it was second plain words") == "it was ***"


def test_own_secrets_are_masked_before_there_is_a_gateway() -> None:
    mask = LogMask(["the admin token"])
    mask.add("the demo key")
    assert mask("the admin token and the demo key") == "*** and ***"


def test_what_looks_like_a_key_is_masked_without_being_known() -> None:
    assert LogMask()("sk-0123456789abcdef") == "***"


def test_a_short_secret_does_not_blank_the_log() -> None:
    assert LogMask(["a"])("banana") == "banana"


def test_the_settings_secrets_are_found_the_password_too() -> None:
    database_url, redis_url = "postgresql://troy:p@ss@db/troy", "redis://:w@rd@cache:6379/0"
    settings = Settings(admin_token=Secret("the token"), database_url=database_url, redis_url=redis_url)
    assert secrets_in(settings) == ["the token", "p@ss", "w@rd"]
    assert secrets_in(Settings()) == []


# --- listening


def test_a_socket_is_bound_but_does_not_listen_yet() -> None:
    with listening("127.0.0.1", 0) as [bound], socket.socket() as client:
        assert client.connect_ex(bound.getsockname()) != 0


def test_a_socket_is_closed_at_the_end() -> None:
    with listening("127.0.0.1", 0) as [bound]:
        pass
    assert bound.fileno() == -1


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="the system cannot drop the deaf")
def test_a_client_that_takes_nothing_loses_its_connection_in_time() -> None:
    with listening("127.0.0.1", 0, deaf_ms=1234) as [bound]:
        bound.listen()
        with socket.create_connection(bound.getsockname()):
            accepted, _ = bound.accept()
            with accepted:
                assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 1234


def test_a_port_in_use_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with (
            pytest.raises(ConfigError, match=f"cannot listen on 127.0.0.1:{port}: address already in use"),
            listening("127.0.0.1", port),
        ):
            pass


@pytest.mark.parametrize("host", ["host.invalid", "a" * 64 + ".invalid"])
def test_a_host_that_is_none_is_told(host: str) -> None:
    with pytest.raises(ConfigError, match="cannot listen on"), listening(host, 0):
        pass


@pytest.mark.skipif(not socket.has_ipv6, reason="this machine has no IPv6")
def test_ipv6_is_shown_in_brackets() -> None:
    with listening("::1", 0) as bound:
        assert re.fullmatch(r"http://\[::1\]:\d+", url_of("::1", bound))


@pytest.mark.parametrize(("host", "named"), [("0.0.0.0", "127.0.0.1"), ("127.0.0.1", "127.0.0.1")])
def test_a_wildcard_is_reached_by_the_loopback(host: str, named: str) -> None:
    with listening("127.0.0.1", 0) as bound:
        assert url_of(host, bound) == f"http://{named}:{bound[0].getsockname()[1]}"


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("localhost", True),
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("::1", True),
        ("0.0.0.0", False),
        ("::", False),
        ("192.0.2.1", False),
        ("example.com", False),
    ],
)
def test_only_this_machine_reaches_a_loopback(host: str, loopback: bool) -> None:
    assert is_loopback(host) is loopback


# --- demo mode


def test_a_generated_key_has_the_shape_that_the_gateway_looks_up() -> None:
    assert GENERATED.fullmatch(generate_key().encode())


def test_the_demo_key_is_made_once(tmp_path: Path) -> None:
    made, key = demo_key(tmp_path)
    again, same = demo_key(tmp_path)
    assert (made.created, again.created) == (True, False)
    assert key == same
    assert key.digest == digest_of(again.secret.reveal().encode())


def test_an_odd_path_is_quoted_in_the_curl_line(tmp_path: Path) -> None:
    made, _ = demo_key(tmp_path / "my data")
    assert f"$(cat '{tmp_path}/my data/demo.key')" in curl("http://127.0.0.1:1", made, show=False)


class _Down(SqlStore):
    """A database that cannot be reached."""

    async def start(self) -> None:
        raise StoreUnavailable("down")


def test_a_database_that_is_down_is_not_taken_for_an_empty_one(tmp_path: Path) -> None:
    store = _Down(f"sqlite:///{tmp_path}/troy.db", secret_key=None, clock=FakeClock())
    assert asyncio.run(nothing_configured(load({}, folder=tmp_path), store)) is False


# --- probes


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"choices": [{"message": {"content": "Hello"}}]}', "Hello"),
        (b'{"error": {"message": "no"}}', "no"),
        (b"<html>\xff", "<html>\ufffd"),
        (b"[]", "[]"),
        (b'{"choices": [3]}', '{"choices": [3]}'),
    ],
)
def test_the_message_of_any_body_is_found(body: bytes, message: str) -> None:
    assert message_of(body) == message


# --- moments


def test_a_span_counts_from_now() -> None:
    assert [expiry(text, 1000.0) for text in ("2m", "3h", "1d")] == [1120.0, 11_800.0, 87_400.0]


def test_a_date_is_a_moment() -> None:
    assert shown(expiry("2030-01-31T12:00:00Z", 0.0)) == "2030-01-31T12:00:00Z"


@pytest.mark.parametrize(("text", "told"), [("soon", "allowed: 90d"), ("2020-01-01T00:00:00Z", "is over already")])
def test_a_moment_that_is_none_is_refused(text: str, told: str) -> None:
    with pytest.raises(typer.BadParameter, match=told):
        expiry(text, 1_800_000_000.0)


# --- printing


def test_a_pipe_gets_plain_columns_without_trailing_blanks(capsys: pytest.CaptureFixture[str]) -> None:
    output.print_table(("name", "what"), [("a" * 300, "[bold]x"), ("b", None), ("c", "\x1b[31mred")])
    lines = capsys.readouterr().out.split("\n")
    assert lines[1] == "a" * 300 + "  [bold]x"
    assert lines[2] == "b"
    assert lines[3].endswith("\\x1b[31mred")


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_new_admin_token_is_shown_on_a_terminal_only(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "admin.token"
    path.write_text("the-token\n", encoding="ascii")
    screen, pipe = _Terminal(), io.StringIO()
    Announcer(screen).made([path])
    assert "the-token" in screen.getvalue()
    with caplog.at_level("INFO"):
        Announcer(pipe).made([path])
    assert "the-token" not in pipe.getvalue() + caplog.text
    assert str(path) in caplog.text
