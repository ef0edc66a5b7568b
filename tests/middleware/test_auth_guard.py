"""AuthGuard alone: keys in every spelling, and what stays unread."""

from __future__ import annotations

import pytest

from tests.asgi import Exchange, drive, http_scope
from tests.middleware.apps import RawApp
from troyproxy import AuthGuard
from troyproxy.errors import ConfigError

pytestmark = pytest.mark.anyio

SECRET = "a-secret-of-enough-bytes"
Headers = list[tuple[bytes, bytes]]


def bearer(value: str) -> Headers:
    return [(b"authorization", value.encode())]


async def call(headers: Headers, keys: dict[str, str] | None = None) -> tuple[Exchange, RawApp]:
    app = RawApp()
    guarded = AuthGuard(app, keys=keys or {"other": "another-secret-of-16", "ci": SECRET})
    return await drive(guarded, http_scope(headers=headers), [{"type": "http.request"}]), app


ACCEPTED: dict[str, Headers] = {
    "as documented": bearer(f"Bearer {SECRET}"),
    "lower case": bearer(f"bearer {SECRET}"),
    "upper case": bearer(f"BEARER {SECRET}"),
    "two spaces": bearer(f"Bearer  {SECRET}"),
    "trailing blank": bearer(f"Bearer {SECRET} "),
    "x-api-key": [(b"x-api-key", SECRET.encode())],
    "x-api-key with blanks": [(b"x-api-key", f" {SECRET} ".encode())],
    "both, the first one right": [*bearer(f"Bearer {SECRET}"), (b"x-api-key", b"wrong")],
    "two Authorization headers, the first one right": [*bearer(f"Bearer {SECRET}"), *bearer("Bearer wrong")],
}

REFUSED: dict[str, Headers] = {
    "none": [],
    "empty": bearer(""),
    "Bearer alone": bearer("Bearer"),
    "Bearer and a blank": bearer("Bearer "),
    "Basic": bearer("Basic Z3c6Z3c="),
    "no scheme": bearer(SECRET),
    "another case": bearer(f"Bearer {SECRET.upper()}"),
    "a byte beyond ASCII": [(b"authorization", b"Bearer caf\xe9")],
    "a smart quote": bearer(f"Bearer \u201c{SECRET}\u201d"),
    "a NUL": [(b"authorization", b"Bearer \x00")],
    "one megabyte": bearer("Bearer " + "x" * (1 << 20)),
    "empty x-api-key": [(b"x-api-key", b" ")],
    "a prefix": bearer(f"Bearer {SECRET[:-1]}"),
    "two in one": bearer(f"Bearer {SECRET}, Bearer {SECRET}"),
    "both, Authorization wrong": [*bearer("Bearer wrong"), (b"x-api-key", SECRET.encode())],
    "two Authorization headers, the first one wrong": [*bearer("Bearer wrong"), *bearer(f"Bearer {SECRET}")],
    "api-key": [(b"api-key", SECRET.encode())],
}


@pytest.mark.parametrize("headers", ACCEPTED.values(), ids=ACCEPTED)
async def test_a_key_is_accepted(headers: Headers) -> None:
    exchange, _ = await call(headers)
    assert exchange.status == 200


@pytest.mark.parametrize("headers", REFUSED.values(), ids=REFUSED)
async def test_a_key_is_refused_and_the_app_hears_nothing(headers: Headers) -> None:
    exchange, app = await call(headers)
    assert (exchange.status, app.scopes) == (401, [])


@pytest.mark.parametrize("headers", REFUSED.values(), ids=REFUSED)
async def test_every_refusal_is_the_same(headers: Headers) -> None:
    exchange, _ = await call(headers)
    assert (exchange.header("www-authenticate"), exchange.json()) == (
        "Bearer",
        {
            "error": {
                "message": "Missing or invalid API key.",
                "type": "authentication_error",
                "param": None,
                "code": "invalid_api_key",
            }
        },
    )


async def test_the_body_of_a_refused_request_stays_unread() -> None:
    exchange, _ = await call([])
    assert exchange.order == ["send http.response.start", "send http.response.body"]


async def test_a_key_beyond_ascii_works() -> None:
    exchange, _ = await call(bearer("Bearer schlüssel-und-schloss"), {"ci": "schlüssel-und-schloss"})
    assert exchange.status == 200


@pytest.mark.parametrize("keys", [{}, {"ci": ""}, {"ci": "short"}, {"ci": "x" * 513}])
def test_a_guard_without_proper_keys_is_a_mistake(keys: dict[str, str]) -> None:
    with pytest.raises(ConfigError):
        AuthGuard(RawApp(), keys=keys)


def test_a_mistake_names_the_key_and_not_its_secret() -> None:
    with pytest.raises(ConfigError, match=r"^the key 'ci' must have 16 to 512 bytes$"):
        AuthGuard(RawApp(), keys={"ci": "sh"})
