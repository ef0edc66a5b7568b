"""Who may use the admin API."""

from __future__ import annotations

import pytest

from tests.api.house import KEY, TOKEN, House
from tests.asgi import drive, http_scope
from tests.fakes import FakeClock
from troyproxy.api.admin.guard import PEERS, WRONG_TOKENS, AdminGuard
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
    return AdminGuard(Secret(TOKEN), clock)


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
