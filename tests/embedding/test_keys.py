"""Who may call an embedded gateway, and that two of them share nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.asgi import post
from tests.embedding.hosts import KEY, Wrap, completion, get, inner_config, raw_host
from tests.middleware.apps import RawApp, ask
from troyproxy import TroyProxy
from troyproxy.app import Wiring
from troyproxy.errors import ConfigError

pytestmark = pytest.mark.anyio

BEARER = f"Bearer {KEY}"


async def test_a_key_of_the_config_file_opens_the_door(tmp_path: Path, options: dict[str, object]) -> None:
    config = tmp_path / "troyproxy.yaml"
    config.write_text(f"keys:\n  - {{name: ci, key: {KEY}}}\n")
    app = TroyProxy(raw_host, config=config, settings=options, wiring=Wiring(demo=True))
    async with app.gateway:
        refused, answered = await post(app, ask(model="demo")), await post(app, ask(model="demo"), authorization=BEARER)
    assert (refused.status, answered.status) == (401, 200)


async def test_the_variable_alone_opens_nothing(options: dict[str, object], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TROY_AUTH", "off")
    app = TroyProxy(raw_host, settings=options, wiring=Wiring(demo=True))
    async with app.gateway:
        assert (await post(app, ask(model="demo"))).status == 401


async def test_a_config_that_is_not_there_fails_at_once(tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        TroyProxy(raw_host, config=tmp_path / "nothing.yaml")


async def test_two_gateways_in_one_process_do_not_meet(tmp_path: Path, wrap: Wrap) -> None:
    settings = [
        {"database_url": f"sqlite+aiosqlite:///{tmp_path}/{name}.db", "admin_token": name * 32} for name in "ab"
    ]
    wiring = Wiring(demo=True)
    hosts = [RawApp(chunks=[completion(name)]) for name in "ab"]
    config = inner_config(tmp_path)
    apps = [
        wrap(host, settings=given, config=config, wiring=wiring) for host, given in zip(hosts, settings, strict=True)
    ]
    async with apps[0].gateway, apps[1].gateway:
        said = [(await post(app, ask(model="mine/m1"))).json()["choices"][0]["message"]["content"] for app in apps]
        foreign = await get(apps[0], "/troy/api/status", authorization="Bearer " + "b" * 32)
    assert (said, foreign.status) == (["a", "b"], 401)


async def test_the_wrapped_app_sees_no_key_of_ours(tmp_path: Path, options: dict[str, object]) -> None:
    config = inner_config(tmp_path)
    config.write_text(config.read_text() + f"keys:\n  - {{name: ci, key: {KEY}}}\n")
    app = TroyProxy(host := RawApp(chunks=[completion("a")]), config=config, settings=options)
    async with app.gateway:
        await post(app, ask(model="mine/m1"), authorization=BEARER)
    assert (host.header(b"authorization"), KEY in repr(host.scopes)) == (None, False)
