"""Field cases HD-03, HD-04, HD-06, HD-07 and HD-08: which headers cross the gateway, and who frames a body."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

import pytest

from tests.e2e.cases.house import combo, ended, provider, secret, streamed
from tests.e2e.cases.reads import DONE, OK, STOP
from tests.e2e.client import CLIENT_S, send
from tests.e2e.gateway import CHAT, KEY, Gateway, chat, client_headers, run_gateway
from tests.e2e.shapes import completion, dumps
from tests.e2e.until import until
from tests.e2e.upstreams import ECHO, HEALTHY, Reply, Request, Upstreams, whole

KEYS: Final[dict[str, tuple[list[tuple[str, str]], str]]] = {
    "bearer": ([("authorization", f"Bearer {KEY}")], CHAT),
    "x-api-key": ([("x-api-key", KEY)], CHAT),
    "both": ([("authorization", f"Bearer {KEY}"), ("x-api-key", KEY)], CHAT),
    "every place": (
        [
            *(("authorization", f"Bearer {KEY}"), ("x-api-key", KEY), ("api-key", KEY), ("x-goog-api-key", KEY)),
            *(("proxy-authorization", f"Basic {KEY}"), ("cookie", f"session={KEY}"), ("x-auth-token", KEY)),
            *(("x-title", KEY), ("http-referer", f"https://page/?key={KEY}"), ("accept", f"text/{KEY}")),
        ],
        f"{CHAT}?key={KEY}",
    ),
}
HOP_BY_HOP: Final = (
    *(("connection", "close, x-tmp"), ("x-tmp", "1"), ("keep-alive", "timeout=5"), ("trailer", "x-t")),
    *(("proxy-authenticate", "Basic"), ("server", "up"), ("date", "Tue, 01 Jan 2019 00:00:00 GMT")),
    *(("set-cookie", "a=1"), ("content-type", "text/event-stream"), ("strict-transport-security", "max-age=1")),
)
CLIENT_HOP: Final = (
    *(("connection", "keep-alive, X-Secret"), ("x-secret", "1"), ("te", "trailers"), ("upgrade", "h2c")),
    *(("keep-alive", "5"), ("host", "evil.example")),
)
FORWARDING: Final = {
    "x-forwarded-for": "203.0.113.9",
    "x-forwarded-proto": "https",
    "x-forwarded-host": "evil.example",
    "x-real-ip": "203.0.113.9",
    "forwarded": "for=203.0.113.9",
    "cf-connecting-ip": "203.0.113.9",
    "cf-ray": "1",
    "true-client-ip": "203.0.113.9",
    "via": "1.1 proxy",
    "origin": "https://app.example",
    "referer": "https://app.example/secret",
    "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
}
ALLOWED: Final = {
    *("accept", "accept-encoding", "authorization", "connection", "content-length", "content-type", "host"),
    *("user-agent", "x-request-id"),
}
ODD_NAMES: Final = ("模型-🚀", "a\r\nX-Evil: 1", "x" * 500, "café\u0000", "%0d%0aX-Evil: 1", 'ü;,="')
LEAK: Final = '<function=get_weather>{"city": "Orléans"}</function>'
TOOLS: Final = [{"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object"}}}]


@pytest.fixture(scope="module")
def gateway(folder: Path, upstreams: Upstreams) -> Iterator[Gateway]:
    config = {
        "providers": {
            "alpha": provider(upstreams, "alpha", "A"),
            "kl": provider(upstreams, "kl"),
            "nk": {"base_url": upstreams.base_url("nk")},
        },
        "combos": {"中文模型": combo("alpha/hd07"), "modèle é": combo("alpha/hd07")},
    }
    with run_gateway(folder, config) as running:
        yield running


def last(upstreams: Upstreams, model: str, name: str = "alpha") -> Request:
    """Return the request that came last."""
    return upstreams.requests(name, model=model)[-1]


@pytest.mark.parametrize("place", KEYS)
@pytest.mark.parametrize("name", ["alpha", "kl"])
def test_hd_03_the_clients_key_reaches_nobody(gateway: Gateway, upstreams: Upstreams, name: str, place: str) -> None:
    headers, path = KEYS[place]
    model = f"hd03-{list(KEYS).index(place)}"
    body = dumps(chat(f"{name}/{model}"))
    assert gateway.whole("POST", path, body, [*headers, ("content-type", "application/json")]).status == 200
    seen = last(upstreams, model, name)
    assert KEY not in f"{seen.path} {seen.headers} {seen.body!r}"
    credentials = [value for header, value in seen.headers if header == "authorization"]
    assert credentials == ([f"Bearer {secret('alpha', 'A')}"] if name == "alpha" else [])
    assert {header for header, _ in seen.headers} <= ALLOWED


def test_hd_03_a_provider_without_a_key_is_never_lent_the_clients(gateway: Gateway, upstreams: Upstreams) -> None:
    answer = gateway.post(chat("nk/m1"))
    assert (answer.status, answer.code) == (503, "no_eligible_member")
    assert answer.json()["error"]["details"] == [{"member": "nk/m1", "reason": "no-account"}]
    assert not upstreams.requests("nk")


def test_hd_04_connection_headers_end_at_each_hop(gateway: Gateway, upstreams: Upstreams) -> None:
    upstreams.script("alpha", Reply(200, HOP_BY_HOP, (OK, STOP, DONE)), model="hd04")
    body = dumps(chat("alpha/hd04", stream=True))
    lines = [f"{name}: {value}" for name, value in (*CLIENT_HOP, *client_headers(), ("content-length", str(len(body))))]
    request = f"POST {CHAT} HTTP/1.1\r\n" + "\r\n".join(lines) + "\r\nexpect: 100-continue\r\n\r\n"
    with socket.create_connection(("127.0.0.1", gateway.port), timeout=CLIENT_S) as connection:
        for _ in range(2):  # the connection survives the upstream's "close"
            connection.sendall(request.encode())
            assert connection.recv(100).startswith(b"HTTP/1.1 100")
            connection.sendall(body)
            answer = _until_end(connection)
            head, _, rest = answer.partition(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200")
            assert b"data: [DONE]" in rest
            _assert_own_head(head.decode().lower())
    seen = dict(last(upstreams, "hd04").headers)
    assert seen["host"] == f"127.0.0.1:{upstreams.port}"
    assert seen.keys() <= ALLOWED
    assert "x-secret" not in str(seen)
    assert len(upstreams.requests("alpha", model="hd04")) == 2


def _until_end(connection: socket.socket) -> bytes:
    answer = b""
    while not answer.endswith(b"0\r\n\r\n"):
        piece = connection.recv(1 << 16)
        assert piece, answer
        answer += piece
    return answer


def _assert_own_head(head: str) -> None:
    names = [line.partition(":")[0] for line in head.split("\r\n")[1:]]
    assert not {"x-tmp", "keep-alive", "trailer", "proxy-authenticate", "set-cookie", "connection"} & set(names)
    assert names.count("date") == 1
    assert names.count("server") <= 1
    assert "server: up" not in head
    assert "2019" not in head


def test_hd_06_nobody_upstream_learns_who_asked(gateway: Gateway, upstreams: Upstreams) -> None:
    headers = [*client_headers(), *FORWARDING.items()]
    assert gateway.whole("POST", CHAT, dumps(chat("alpha/hd06")), headers).status == 200
    seen = last(upstreams, "hd06")
    assert {name for name, _ in seen.headers} <= ALLOWED
    assert "203.0.113.9" not in str(seen.headers)
    assert "app.example" not in str(seen.headers)


@pytest.mark.parametrize("name", ["中文模型", "modèle é", "mode\u0300le e\u0301"])
def test_hd_07_a_name_beyond_latin_1_is_told_in_ascii(gateway: Gateway, name: str) -> None:
    answer = gateway.post(chat(name))
    assert answer.status == 200
    assert answer.headers["x-troy-combo"].isascii()
    assert unquote(answer.headers["x-troy-combo"]) in {"中文模型", "modèle é"}


@pytest.mark.parametrize("name", ["中文模型-🚀", "a\r\nX-Evil: 1", "x" * 10_000])
def test_hd_07_a_name_that_could_split_a_header_is_refused(gateway: Gateway, name: str) -> None:
    answer = gateway.admin("POST", "/api/combos", {"name": name, "members": ["alpha/hd07"]})
    assert answer.status == 422


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("number", range(len(ODD_NAMES)))
def test_hd_07_no_model_name_breaks_a_header(gateway: Gateway, number: int, streams: bool) -> None:
    answer = gateway.post(chat(f"alpha/{ODD_NAMES[number]}", stream=streams))
    assert answer.status == 200
    story = {name: value for name, value in answer.headers.items() if name.startswith("x-troy")}
    assert all(f"{name}{value}".isascii() for name, value in story.items())
    assert sum(len(name) + len(value) for name, value in story.items()) < 1024
    assert "x-evil" not in answer.headers


def test_hd_07_raw_bytes_in_a_clients_header_harm_nobody(gateway: Gateway, upstreams: Upstreams) -> None:
    odd: list[tuple[str, str | bytes]] = [("x-title", "中文 é".encode()), ("x-anything", b"\xff\xfe\x80")]
    headers = [*client_headers(), *odd]
    assert gateway.whole("POST", CHAT, dumps(chat("alpha/hd07-raw")), headers).status == 200
    assert dict(last(upstreams, "hd07-raw").headers)["x-title"].isascii()


@pytest.mark.parametrize("chunked", [False, True], ids=["length", "chunked"])
def test_hd_08_the_upstream_gets_one_true_length(gateway: Gateway, upstreams: Upstreams, chunked: bool) -> None:
    model = f"hd08-{chunked:d}"
    text = f'{{  "model":"alpha/{model}",\n"stream":true, "messages":[{{"role":"user","content":"é 北京"}}]}}'
    upstreams.script("alpha", ECHO, model=model)
    body = text.encode()
    if chunked:
        connection = send(gateway.port, "POST", CHAT, headers=[*client_headers(), ("transfer-encoding", "chunked")])
        for at in range(0, len(body), 7):
            piece = body[at : at + 7]
            connection.send(b"%x\r\n%b\r\n" % (len(piece), piece))
        connection.send(b"0\r\n\r\n")
    else:
        connection = gateway.send("POST", CHAT, body, client_headers())
    with closing(connection):
        answer = connection.getresponse()
        assert (answer.status, ended(answer.read())) == (200, True)
    seen = last(upstreams, model)
    lengths = [value for name, value in seen.headers if name == "content-length"]
    assert lengths == [str(len(seen.body))]
    assert "transfer-encoding" not in dict(seen.headers)
    assert seen.json["messages"] == json.loads(text)["messages"]


def test_hd_08_an_edited_answer_has_its_own_length(gateway: Gateway, upstreams: Upstreams) -> None:
    upstreams.script("alpha", whole(completion(LEAK)), HEALTHY, model="hd08-edited")
    answer = gateway.post(chat("alpha/hd08-edited", tools=TOOLS))
    assert answer.headers["content-length"] == str(len(answer.body))
    said: Any = json.loads(answer.body)["choices"][0]["message"]
    assert "<function" not in json.dumps(said)
    after = streamed(gateway, "alpha/hd08-edited")
    assert "content-length" not in after.headers
    until(lambda: gateway.metric("inflight_requests") == 0)
