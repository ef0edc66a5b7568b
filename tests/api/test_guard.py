"""Who may use the admin API."""

from __future__ import annotations

import hmac
from dataclasses import replace

import pytest
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from tests.api.house import KEY, TOKEN, House
from tests.asgi import drive, http_scope
from tests.fakes import FakeClock
from troyproxy.api.admin.guard import AdminGuard
from troyproxy.api.wrong_tokens import PEERS, WRONG_TOKENS, WrongTokens
from troyproxy.catalog.secret import Secret
from troyproxy.errors import InvalidAPIKey, RateLimited


def guess(guard: AdminGuard, token: str | bytes | None, peer: str | None = "10.0.0.1") -> str:
    """Return what becomes of a request with *token*: ``in``, ``wrong`` or the seconds to wait."""
    value = token if isinstance(token, bytes) else f"Bearer {token}".encode()
    headers = [(b"Authorization", value)] if token is not None else []
    try:
        guard.check({"type": "http", "headers": headers, "client": (peer, 1) if peer is not None else None})
    except InvalidAPIKey:
        return "wrong"
    except RateLimited as exc:
        return exc.headers["retry-after"]
    return "in"


@pytest.fixture
def guard(clock: FakeClock) -> AdminGuard:
    return AdminGuard(Secret(TOKEN), WrongTokens(clock))


def test_the_token_opens(guard: AdminGuard) -> None:
    assert guess(guard, TOKEN) == "in"


@pytest.mark.parametrize("value", [b"bearer " + TOKEN.encode(), b"BEARER   " + TOKEN.encode() + b" "])
def test_the_scheme_ignores_case_and_blanks(guard: AdminGuard, value: bytes) -> None:
    assert guess(guard, value) == "in"


@pytest.mark.parametrize(
    "token", [None, "", "x", TOKEN + "x", TOKEN[:-1], "ü", b"Basic " + TOKEN.encode(), b"\xff\xfe"]
)
def test_nothing_else_opens(guard: AdminGuard, token: str | bytes | None) -> None:
    assert guess(guard, token) == "wrong"


def test_the_header_of_client_keys_is_not_read(guard: AdminGuard) -> None:
    with pytest.raises(InvalidAPIKey):
        guard.check({"type": "http", "headers": [(b"x-api-key", TOKEN.encode())], "client": None})


def test_ten_wrong_tokens_within_a_minute_shut_the_peer_out(guard: AdminGuard, clock: FakeClock) -> None:
    for _ in range(WRONG_TOKENS):
        guess(guard, "x")
        clock.move(1.0)
    assert (guess(guard, "x"), guess(guard, TOKEN)) == ("50", "50")


def test_another_peer_is_not_shut_out(guard: AdminGuard) -> None:
    for _ in range(WRONG_TOKENS):
        guess(guard, "x")
    assert (guess(guard, TOKEN, "10.0.0.2"), guess(guard, TOKEN, None)) == ("in", "in")


def test_a_minute_later_the_peer_may_try_again(guard: AdminGuard, clock: FakeClock) -> None:
    for _ in range(WRONG_TOKENS):
        guess(guard, "x")
    clock.move(60.5)
    assert guess(guard, TOKEN) == "in"


def test_wrong_tokens_now_and_then_shut_nobody_out(guard: AdminGuard, clock: FakeClock) -> None:
    seen = set()
    for _ in range(3 * WRONG_TOKENS):
        seen.add(guess(guard, "x"))
        clock.move(7.0)
    assert seen == {"wrong"}


def test_a_missing_token_is_no_guess(guard: AdminGuard) -> None:
    for _ in range(3 * WRONG_TOKENS):
        guess(guard, None)
    assert guess(guard, TOKEN) == "in"


def test_the_memory_of_wrong_tokens_is_bounded(guard: AdminGuard) -> None:
    for number in range(PEERS + 10):
        guess(guard, "x", f"peer-{number}")
    assert len(guard._wrong) == PEERS


def behind_a_proxy(house: House, trusted: list[str]) -> House:
    """Return the house as uvicorn serves it to a reverse proxy at 127.0.0.1."""
    return replace(house, app=ProxyHeadersMiddleware(house.app, trusted_hosts=trusted))  # type: ignore[arg-type]  # same messages, other names


@pytest.mark.anyio
async def test_behind_a_trusted_proxy_each_client_counts_for_itself(house: House) -> None:
    front = behind_a_proxy(house, ["127.0.0.1"])
    for _ in range(WRONG_TOKENS):
        await front.ask("GET", "/api/status", authorization="Bearer x", x_forwarded_for="203.0.113.7")
    asked = [await front.ask("GET", "/api/status", x_forwarded_for=peer) for peer in ("203.0.113.7", "203.0.113.8")]
    assert [answer.status for answer in asked] == [429, 200]


@pytest.mark.anyio
async def test_what_a_client_adds_before_the_proxy_does_not_hide_it(house: House) -> None:
    front = behind_a_proxy(house, ["127.0.0.1"])
    for number in range(WRONG_TOKENS):
        said = f"198.51.100.{number}, 203.0.113.7"
        await front.ask("GET", "/api/status", authorization="Bearer x", x_forwarded_for=said)
    assert (await front.ask("GET", "/api/status", x_forwarded_for="203.0.113.7")).status == 429


@pytest.mark.anyio
async def test_a_peer_that_is_no_trusted_proxy_cannot_pretend_to_be_many(house: House) -> None:
    front = behind_a_proxy(house, ["192.0.2.1"])
    for number in range(WRONG_TOKENS):
        forwarded = f"203.0.113.{number}"
        await front.ask("GET", "/api/status", authorization="Bearer x", x_forwarded_for=forwarded)
    assert (await front.ask("GET", "/api/status", x_forwarded_for="203.0.113.99")).status == 429


def test_a_token_is_compared_as_bytes_in_constant_time(guard: AdminGuard, monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[tuple[object, object]] = []

    def noting(left: bytes, right: bytes) -> bool:
        compared.append((type(left), type(right)))
        return False

    monkeypatch.setattr(hmac, "compare_digest", noting)
    guess(guard, "x")
    assert compared == [(bytes, bytes)]


@pytest.mark.anyio
@pytest.mark.parametrize("token", [f"Bearer {KEY}", "Bearer ü", ""])
async def test_a_401_is_in_the_envelope_and_in_no_cache(house: House, token: str) -> None:
    answer = await house.ask("GET", "/api/status", authorization=token)
    assert (
        answer.status,
        answer.json()["error"]["type"],
        answer.header("cache-control"),
        answer.header("www-authenticate"),
    ) == (
        401,
        "authentication_error",
        "no-store",
        "Bearer",
    )


@pytest.mark.anyio
async def test_a_429_says_when(house: House) -> None:
    for _ in range(WRONG_TOKENS):
        await house.ask("GET", "/api/status", authorization="Bearer x")
    answer = await house.ask("GET", "/api/combos")
    assert (answer.status, answer.json()["error"]["code"], answer.header("retry-after")) == (429, "rate_limited", "60")


@pytest.mark.anyio
@pytest.mark.parametrize(("guessed", "shut"), [("/metrics", "/api/status"), ("/api/status", "/metrics")])
async def test_the_metrics_are_no_way_round_the_limit_on_guesses(house: House, guessed: str, shut: str) -> None:
    for _ in range(WRONG_TOKENS):
        assert (await house.ask("GET", guessed, authorization="Bearer x", via="proxy")).status == 401
    assert (await house.ask("GET", shut, via="proxy")).status == 429


@pytest.mark.anyio
async def test_a_peer_that_is_shut_out_reads_the_metrics_that_need_no_token(house: House) -> None:
    for _ in range(WRONG_TOKENS):
        await house.ask("GET", "/api/status", authorization="Bearer x")
    assert (await house.ask("GET", "/metrics")).status == 200


@pytest.mark.anyio
async def test_metrics_without_a_token_are_no_guess(house: House) -> None:
    for _ in range(3 * WRONG_TOKENS):
        await house.ask("GET", "/metrics", authorization="", via="proxy")
    assert (await house.ask("GET", "/metrics", via="proxy")).status == 200


@pytest.mark.anyio
async def test_the_admin_token_is_no_client_key(house: House) -> None:
    assert (await house.ask("GET", "/v1/models")).status == 401


@pytest.mark.anyio
async def test_nothing_is_read_before_the_token_is_right(house: House) -> None:
    exchange = await drive(house.app, http_scope("/api/combos"), [{"type": "http.request", "body": b"{}"}])
    assert exchange.order == ["send http.response.start", "send http.response.body"]


@pytest.mark.anyio
async def test_a_sender_that_leaves_gets_no_answer(house: House) -> None:
    scope = http_scope("/api/combos", headers=house.headers)
    exchange = await drive(house.app, scope, [{"type": "http.disconnect"}])
    assert exchange.sent == []
