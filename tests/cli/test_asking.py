"""Commands that ask the running gateway: where, with which token, and one line for whatever goes wrong."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cli.conftest import Shell
from tests.cli.gateways import TOKEN, FakeGateway, fake_gateway
from tests.services import free_port
from troyproxy.catalog.secret import Secret
from troyproxy.cli.asking import Asking, NotReached, Refused, asking
from troyproxy.errors import ConfigError


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeGateway]:
    monkeypatch.setenv("TROY_ADMIN_TOKEN", TOKEN)
    with fake_gateway() as running:
        yield running


def test_the_admin_token_goes_along_and_nothing_else(fake: FakeGateway) -> None:
    fake.says("/api/status", {"a": 1})
    assert Asking(fake.url, Secret(TOKEN)).get("/api/status") == {"a": 1}
    assert fake.asked == [("/api/status", f"Bearer {TOKEN}")]


def test_a_path_before_the_api_is_kept(fake: FakeGateway) -> None:
    fake.says("/troy/api/status", {"a": 1})
    assert Asking(f"{fake.url}/troy/", Secret(TOKEN)).get("/api/status") == {"a": 1}


def test_events_come_one_by_one_and_comments_are_none(fake: FakeGateway) -> None:
    fake.tells("/api/events", ("hello", {"a": 1}), ("skip", {"b": 2}))
    told = [(each.kind, each.facts) for each in Asking(fake.url, Secret(TOKEN)).events("/api/events")]
    assert told == [("hello", {"a": 1}), ("skip", {"b": 2})]


def test_an_error_is_said_in_the_gateways_words(fake: FakeGateway) -> None:
    fake.says("/api/status", {"error": {"message": "Missing or invalid admin token."}}, status=401)
    with pytest.raises(Refused, match=r"answered 401: Missing or invalid admin token\."):
        Asking(fake.url, Secret(TOKEN)).get("/api/status")


@pytest.mark.parametrize(("status", "body"), [(404, b"<html>"), (200, b"<html>"), (200, b"[]"), (500, b"{}")])
def test_an_answer_that_is_no_gateways_is_refused(fake: FakeGateway, status: int, body: bytes) -> None:
    fake.answers["/api/status"] = (status, body)
    with pytest.raises(Refused, match="no gateway"):
        Asking(fake.url, Secret(TOKEN)).get("/api/status")


def test_where_nobody_listens_the_remedy_is_said() -> None:
    with pytest.raises(NotReached, match=r"no gateway answers at .* \(Connection refused\); is it running\?"):
        Asking(f"http://127.0.0.1:{free_port()}", Secret(TOKEN)).get("/api/status")


def test_a_gateway_that_ends_in_the_middle_is_not_called_absent(fake: FakeGateway) -> None:
    fake.tells("/api/events", ("hello", {"a": 1}))
    fake.cut = True
    events = Asking(fake.url, Secret(TOKEN)).events("/api/events")
    assert next(events).kind == "hello"
    with pytest.raises(NotReached, match=rf"^the gateway at {fake.url} broke off \(.+\)$"):
        next(events)


@pytest.mark.parametrize("url", ["127.0.0.1:31337", "ftp://x", "http://", "http://x:port"])
def test_an_address_that_is_none_is_said(url: str) -> None:
    with pytest.raises(ConfigError, match="is no address of a gateway"):
        Asking(url, Secret(TOKEN))


def test_https_is_spoken_where_it_is_asked_for() -> None:
    with pytest.raises(NotReached):
        Asking(f"https://127.0.0.1:{free_port()}", Secret(TOKEN)).get("/api/status")


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:4711"),
        ("0.0.0.0", "http://127.0.0.1:4711"),
        ("::", "http://[::1]:4711"),
        ("gw.example", "http://gw.example:4711"),
    ],
)
def test_a_gateway_is_looked_for_where_it_listens(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, host: str, url: str
) -> None:
    monkeypatch.setenv("TROY_ADMIN_TOKEN", TOKEN)
    monkeypatch.setenv("TROY_HOST", host)
    monkeypatch.setenv("TROY_PORT", "4711")
    assert asking(None, None).url == url


def test_a_generated_token_is_read_and_never_made(shell: Shell) -> None:
    with pytest.raises(ConfigError, match=r"no admin token: set TROY_ADMIN_TOKEN, or run where .*admin\.token is"):
        asking(None, None)
    assert not (shell.folder / "data").exists()
    (shell.folder / "data").mkdir()
    shell.write("data/admin.token", f"{TOKEN}\n")
    assert asking(None, None)._token.reveal() == TOKEN
