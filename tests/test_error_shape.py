"""Every error class: its status, type, code, envelope and headers; and those that a client can meet, over HTTP."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.asgi import Exchange, drive, http_scope, request_body
from tests.middleware.apps import ask
from troyproxy import create_app, errors
from troyproxy.app import Wiring
from troyproxy.errors import TroyError
from troyproxy.settings.load import load

pytestmark = pytest.mark.anyio


@dataclass(frozen=True, slots=True)
class Shape:
    """One instance of an error class and what it must look like."""

    error: TroyError
    status: int
    type: str
    code: str
    headers: dict[str, str] = field(default_factory=dict)


INVALID, SERVER = "invalid_request_error", "server_error"
DETAILS = [{"member": "a/b", "reason": "no-tools"}]

SHAPES: list[Shape] = [
    Shape(TroyError("m"), 500, SERVER, "internal_error"),
    Shape(errors.ConfigError("m"), 500, SERVER, "internal_error"),
    Shape(errors.InvalidRequest("m", param="p"), 400, INVALID, "invalid_request"),
    Shape(errors.InvalidJSON("m"), 400, INVALID, "invalid_json"),
    Shape(errors.UnknownVariant("m"), 400, INVALID, "unknown_variant"),
    Shape(errors.InvalidEffort("m"), 400, INVALID, "invalid_effort"),
    Shape(errors.InvalidAPIKey(), 401, "authentication_error", "invalid_api_key", {"www-authenticate": "Bearer"}),
    Shape(errors.BudgetExceeded("m"), 402, "insufficient_quota", "budget_exceeded"),
    Shape(errors.ModelNotAllowed("m"), 403, "permission_error", "model_not_allowed"),
    Shape(errors.ForbiddenOrigin("m"), 403, "permission_error", "forbidden_origin"),
    Shape(errors.ModelNotFound("m"), 404, INVALID, "model_not_found"),
    Shape(errors.NotFound("m"), 404, INVALID, "not_found"),
    Shape(
        errors.MethodNotAllowed("m", allow=["GET", "HEAD"]), 405, INVALID, "method_not_allowed", {"allow": "GET, HEAD"}
    ),
    Shape(errors.Conflict("m"), 409, INVALID, "conflict"),
    Shape(errors.PreconditionFailed("m"), 412, INVALID, "precondition_failed"),
    Shape(errors.BodyTooLarge("m"), 413, INVALID, "body_too_large"),
    Shape(errors.UnsupportedMediaType("m"), 415, INVALID, "unsupported_media_type"),
    Shape(errors.UnsupportedEncoding("m"), 415, INVALID, "unsupported_encoding"),
    Shape(errors.ValidationFailed("m", details=[{"field": "f", "message": "t"}]), 422, INVALID, "validation_failed"),
    Shape(errors.RateLimited("m", retry_after_s=2.1), 429, "rate_limit_error", "rate_limited", {"retry-after": "3"}),
    Shape(errors.UpstreamAuth("m"), 502, SERVER, "upstream_auth"),
    Shape(errors.UpstreamInvalid("m"), 502, SERVER, "upstream_invalid"),
    Shape(errors.UpstreamError("m", upstream_status=None), 502, SERVER, "upstream_invalid"),
    Shape(errors.UpstreamError("m", upstream_status=404), 404, INVALID, "upstream_invalid"),
    Shape(errors.LeakedToolCall("m"), 502, SERVER, "leak"),
    Shape(errors.UpstreamUnreachable("m"), 502, SERVER, "upstream_unreachable"),
    Shape(errors.NoEligibleMember("m", details=DETAILS), 503, SERVER, "no_eligible_member"),
    Shape(
        errors.ContextExceeded("m", details=DETAILS),
        503,
        SERVER,
        "context_length_exceeded",
        {"x-should-retry": "false"},
    ),
    Shape(
        errors.AllUnavailable("m", retry_after_s=0.0, rate_limited=False, details=DETAILS),
        503,
        SERVER,
        "all_unavailable",
        {"retry-after": "1"},
    ),
    Shape(
        errors.AllUnavailable("m", retry_after_s=59.2, rate_limited=True),
        429,
        "rate_limit_error",
        "rate_limited",
        {"retry-after": "60"},
    ),
    Shape(errors.Overloaded("m"), 503, SERVER, "overloaded"),
    Shape(errors.StoreUnavailable("m"), 503, SERVER, "store_unavailable"),
    Shape(errors.UpstreamTimeout("m"), 504, SERVER, "timeout"),
]


def family(kind: type[TroyError]) -> Iterator[type[TroyError]]:
    yield kind
    for child in kind.__subclasses__():
        yield from family(child)


def test_every_class_of_the_tree_is_in_the_table() -> None:
    ours = {kind for kind in family(TroyError) if kind.__module__ == errors.__name__}
    assert {type(shape.error) for shape in SHAPES} == ours


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: f"{type(shape.error).__name__}-{shape.status}")
def test_an_error_has_its_status_envelope_and_headers(shape: Shape) -> None:
    error = shape.error
    inner: dict[str, object] = {"message": str(error), "type": shape.type, "param": error.param, "code": shape.code}
    if error.details is not None:
        inner["details"] = error.details
    assert (error.http_status, error.envelope(), error.headers) == (shape.status, {"error": inner}, shape.headers)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: f"{type(shape.error).__name__}-{shape.status}")
def test_an_error_is_documented(shape: Shape) -> None:
    readme = (Path(__file__).parent.parent / "README.md").read_text()
    assert shape.code in readme


# --- over HTTP ---------------------------------------------------------------------------------------------------

ADMIN, KEY, LIMITED = "t" * 32, "sk-test-0123456789abcdef", "sk-limited-0123456789abcdef"
IMAGE = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}]}]
CHAT = "/v1/chat/completions"


@dataclass(frozen=True, slots=True)
class Case:
    """A request, as many times as it takes, and what its last answer says."""

    status: int
    code: str
    body: Any = b""
    path: str = CHAT
    method: str = "POST"
    key: str = KEY
    headers: dict[str, str] = field(default_factory=dict)
    times: int = 1
    tells: str = ""
    """A header that the answer must have."""


CASES: list[Case] = [
    Case(400, "invalid_json"),
    Case(400, "invalid_json", b"{"),
    Case(400, "invalid_request", b"[]"),
    Case(400, "invalid_request", {"model": "demo/chat"}),
    Case(400, "unknown_variant", ask(model="auto/nothing")),
    Case(400, "invalid_effort", ask(model="demo/chat", reasoning_effort="huge")),
    Case(401, "invalid_api_key", ask(), key="wrong", tells="www-authenticate"),
    Case(403, "model_not_allowed", ask(model="demo/chat"), key=LIMITED),
    Case(404, "model_not_found", ask(model="nobody/m")),
    Case(404, "not_found", path="/v1/nothing"),
    Case(405, "method_not_allowed", method="DELETE", tells="allow"),
    Case(413, "body_too_large", headers={"content-length": str(33 << 20)}),
    Case(415, "unsupported_media_type", headers={"content-type": "text/plain"}),
    Case(415, "unsupported_encoding", headers={"content-encoding": "rot13"}),
    Case(400, "invalid_request", gzip.compress(b"{}")[:-9] + b"?", headers={"content-encoding": "gzip"}),
    Case(422, "validation_failed", {"name": 7}, path="/api/combos", key=ADMIN),
    Case(409, "conflict", {"name": "c", "members": ["demo/chat"]}, path="/api/combos", key=ADMIN, times=2),
    Case(502, "upstream_auth", ask(model="demo/fail-401")),
    Case(502, "upstream_invalid", ask(model="demo/garbage")),
    Case(502, "upstream_invalid", ask(model="demo/empty")),
    Case(502, "upstream_unreachable", ask(model="demo/cut")),
    Case(503, "no_eligible_member", ask(model="demo/chat", messages=IMAGE)),
    Case(
        503,
        "context_length_exceeded",
        ask(model="demo/chat", messages=[{"role": "user", "content": "word " * 200_000}]),
        tells="x-should-retry",
    ),
    Case(503, "all_unavailable", ask(model="demo/fail-503-retry-9"), times=4, tells="retry-after"),
    Case(429, "rate_limited", ask(model="demo/fail-429-retry-9"), times=2, tells="retry-after"),
    Case(504, "timeout", ask(model="demo/hang")),
]


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "troyproxy.yaml"
    keys = f"  - {{name: ci, key: {KEY}}}\n  - {{name: limited, key: {LIMITED}, models: [other/*]}}\n"
    path.write_text(f"keys:\n{keys}")
    return path


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return {
        "TROY_DATABASE_URL": f"sqlite+aiosqlite:///{tmp_path}/troy.db",
        "TROY_ADMIN_TOKEN": ADMIN,
        "TROY_REQUEST_TIMEOUT_MS": "1000",
    }


async def answer(app: Any, case: Case) -> Exchange:  # noqa: ANN401 -- a gateway, as an app
    given = {"content-type": "application/json", "authorization": f"Bearer {case.key}", **case.headers}
    return await drive(app, http_scope(case.path, method=case.method, headers=given), request_body(case.body))


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.status}-{case.code}")
async def test_a_client_gets_the_one_envelope(case: Case, env: dict[str, str], config: Path) -> None:
    gateway = create_app(load(env, config=config), wiring=Wiring(demo=True))
    async with gateway:
        answers = [await answer(gateway, case) for _ in range(case.times)]
    exchange = answers[-1]
    error = exchange.json()["error"]
    assert (exchange.status, error["code"], error["type"]) == (case.status, case.code, errors.type_of(case.status))
    assert {"message", "type", "param", "code"} <= error.keys() <= {"message", "type", "param", "code", "details"}
    assert exchange.header("content-type") == "application/json"
    assert exchange.header("x-troy-request-id") is not None
    assert not case.tells or exchange.header(case.tells) is not None


async def test_an_open_door_refuses_pages_in_the_one_envelope(env: dict[str, str]) -> None:
    gateway = create_app(load({**env, "TROY_AUTH": "off"}), wiring=Wiring(demo=True))
    async with gateway:
        exchange = await answer(gateway, Case(403, "", ask(), headers={"origin": "https://elsewhere.example"}))
    assert (exchange.status, exchange.json()["error"]["code"]) == (403, "forbidden_origin")
