"""Field cases RE-01 to RE-08: an effort is asked for once, sent in one spelling, never guessed and never raised."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.e2e.cases.house import NO_BUDGET, circuit, combo, failures, keys_used, locks, provider, streamed
from tests.e2e.gateway import Gateway, chat, run_gateway
from tests.e2e.shapes import dumps
from tests.e2e.upstreams import HEALTHY, Reply, Upstreams, error, whole

REASONS: Final = {"reasoning": True}
KNOWS_NONE: Final = {"reasoning": True, "efforts": ["none", "low", "medium", "high", "xhigh"]}
PLAIN: Final = {"reasoning": False}
SPEAKS: Final = frozenset({"reasoning_effort", "reasoning", "thinking"})
REFUSED: Final = whole(
    dumps({"error": {"message": "unsupported value", "type": "invalid_request_error", "param": "reasoning_effort"}}),
    400,
)
TOO_LONG: Final = (
    b'{"error":{"message":"max_tokens too large. request: {\\"max_tokens\\":999999,\\"reasoning_effort\\":\\"high\\"}",'
    b'"type":"invalid_request_error","param":"max_tokens","code":"invalid_value"}}'
)
BODIES: Final[dict[str, dict[str, object]]] = {
    "object": {"reasoning": {"effort": "low"}},
    "budget": {"reasoning": {"max_tokens": 2000}},
    "field": {"reasoning_effort": "low", "include_reasoning": True},
}


@pytest.fixture(scope="module")
def gateway(folder: Path, upstreams: Upstreams) -> Iterator[Gateway]:
    models = [
        f"re{number}" for number in ("01", "03", "03-walk", "03-told", "03-suffix", "04", "05", "07", "08", "08-walk")
    ]
    listed = {**dict.fromkeys(models, REASONS), "m0": PLAIN, "qwen3-max": REASONS, "codex-max": REASONS}
    knowing = dict.fromkeys(("re03", "re04"), KNOWS_NONE)
    providers = {
        "alpha": provider(upstreams, "alpha", "AB", models=listed),
        "beta": provider(upstreams, "beta", models={**knowing, "m0": PLAIN}),
        "router": provider(upstreams, "router", accepts={"effort": "reasoning"}, models=dict.fromkeys(models, REASONS)),
        "thinker": provider(
            upstreams, "thinker", accepts={"effort": "thinking"}, models=dict.fromkeys(models, REASONS)
        ),
        "open": provider(upstreams, "open"),
    }
    combos = {
        "re03-combo": combo("alpha/re03-walk", "beta/re03"),
        "re08-combo": combo("alpha/re08-walk", "beta/m0"),
    }
    with run_gateway(folder, {"providers": providers, "combos": combos}, **NO_BUDGET) as running:
        yield running


@pytest.fixture(scope="module")
def medium(tmp_path_factory: pytest.TempPathFactory, upstreams: Upstreams) -> Iterator[Gateway]:
    """A gateway that is configured to ask for a medium effort, and with a table of budgets of its own."""
    models = {"re04": REASONS, "re08": REASONS, "m0": PLAIN, "vague": {}}
    providers = {
        "delta": provider(upstreams, "delta", models=models),
        "epsilon": provider(upstreams, "epsilon", accepts={"effort": "thinking"}, models=models),
    }
    config = {"providers": providers, "effort": {"budgets": {"medium": 5000}}}
    with run_gateway(tmp_path_factory.mktemp("medium"), config, TROY_DEFAULT_EFFORT="medium") as running:
        yield running


def said(body: dict[str, Any]) -> dict[str, Any]:
    """Return what a body says of reasoning."""
    return {name: value for name, value in body.items() if name in SPEAKS}


def sent(gateway: Gateway, upstreams: Upstreams, model: str, **fields: object) -> dict[str, Any]:
    """Ask for a stream and return the body that reached the provider of *model* last."""
    assert streamed(gateway, model, **fields).status == 200
    return upstreams.requests(model.partition("/")[0])[-1].json


# --- RE-01: a suffix is an effort only where the name as written is unknown and the name without it is not ---


@pytest.mark.parametrize(
    ("asked", "model", "effort"),
    [
        ("alpha/qwen3-max", "qwen3-max", None),
        ("alpha/codex-max", "codex-max", None),
        ("alpha/re01-high", "re01", "high"),
        ("alpha/re01:high", "re01", "high"),
        ("re01-low", "re01", "low"),
        ("alpha/re01-max", "re01", "high"),
        ("alpha/codex-max-high", "codex-max", "high"),
        ("alpha/m0-high", "m0", None),
        ("open/m1-high", "m1-high", None),
    ],
)
def test_re_01_the_catalogue_tells_a_product_from_an_effort(
    gateway: Gateway, upstreams: Upstreams, asked: str, model: str, effort: str | None
) -> None:
    assert streamed(gateway, asked).status == 200
    name = asked.partition("/")[0] if "/" in asked else "alpha"
    body = upstreams.requests(name)[-1].json
    assert (body["model"], body.get("reasoning_effort")) == (model, effort)


def test_re_01_what_is_known_of_a_model_is_known_of_it_with_every_suffix(
    gateway: Gateway, upstreams: Upstreams
) -> None:
    upstreams.script("alpha", error(429, retry_after="600"), HEALTHY, model="re01")
    answer = streamed(gateway, "alpha/re01-high")
    assert (answer.status, answer.headers["x-troy-model"]) == (200, "alpha/re01")
    assert {lock["model"] for lock in locks(gateway, "alpha", "re01")} == {"re01"}
    assert failures(gateway, "alpha", "re01", "rate") == 1


# --- RE-03: levels are clamped per member; what is no level is refused here ---


@pytest.mark.parametrize(
    ("asked", "level"), [("xhigh", "high"), ("max", "high"), ("minimal", "low"), ("medium", "medium"), ("low", "low")]
)
@pytest.mark.parametrize("nested", [False, True])
def test_re_03_a_level_becomes_the_nearest_that_the_model_takes(
    gateway: Gateway, upstreams: Upstreams, asked: str, level: str, *, nested: bool
) -> None:
    fields: dict[str, object] = {"reasoning": {"effort": asked}} if nested else {"reasoning_effort": asked}
    assert said(sent(gateway, upstreams, "alpha/re03", **fields)) == {"reasoning_effort": level}


def test_re_03_the_change_is_told(gateway: Gateway) -> None:
    answer = streamed(gateway, "alpha/re03", reasoning_effort="xhigh")
    assert answer.headers["x-troy-adapted"] == "reasoning_effort=high,stream_options.include_usage=true"
    story = gateway.admin("GET", f"/api/requests/{answer.headers['x-troy-request-id']}").json()
    assert story["adapted"] == answer.headers["x-troy-adapted"]


@pytest.mark.parametrize("value", ["ultra", "HIGH", "", 5, True, ["high"], {"level": "high"}])
@pytest.mark.parametrize("nested", [False, True])
def test_re_03_what_is_no_level_is_refused_before_anybody_is_called(
    gateway: Gateway, upstreams: Upstreams, value: object, *, nested: bool
) -> None:
    before = len(upstreams.requests("alpha", model="re03"))
    fields: dict[str, object] = {"reasoning": {"effort": value}} if nested else {"reasoning_effort": value}
    answer = streamed(gateway, "alpha/re03", **fields)
    assert (answer.status, answer.code) == (400, "invalid_effort")
    assert len(upstreams.requests("alpha", model="re03")) == before
    assert locks(gateway, "alpha", "re03") == []


def test_re_03_null_asks_for_nothing(gateway: Gateway, upstreams: Upstreams) -> None:
    assert said(sent(gateway, upstreams, "alpha/re03", reasoning_effort=None)) == {"reasoning_effort": None}


def test_re_03_each_member_gets_its_own_nearest_level(gateway: Gateway, upstreams: Upstreams) -> None:
    upstreams.script("alpha", error(500), model="re03-walk")
    assert streamed(gateway, "re03-combo", reasoning_effort="xhigh").status == 200
    bodies = [upstreams.requests(name, model=m)[-1].json for name, m in (("alpha", "re03-walk"), ("beta", "re03"))]
    assert [body["reasoning_effort"] for body in bodies] == ["high", "xhigh"]


@pytest.mark.parametrize(
    ("model", "suffix", "own"), [("re03-told", "", {"reasoning_effort": "high"}), ("re03-suffix", "-high", {})]
)
def test_re_03_a_refusal_that_names_the_field_is_learned_on_the_same_account(
    gateway: Gateway, upstreams: Upstreams, model: str, suffix: str, own: dict[str, object]
) -> None:
    upstreams.script("alpha", REFUSED, HEALTHY, model=model)
    first, second = (streamed(gateway, f"alpha/{model}{suffix}", **own) for _ in range(2))
    bodies = [request.json for request in upstreams.requests("alpha", model=model)]
    assert [body.get("reasoning_effort") for body in bodies] == ["high", None, None]
    assert [answer.headers["x-troy-attempts"] for answer in (first, second)] == ["2", "1"]
    used = keys_used(upstreams, "alpha", model)
    assert used[0] == used[1]
    assert (locks(gateway, "alpha", model), circuit(gateway, "alpha", model)) == ([], "closed")
    if own:
        assert "-reasoning_effort" in second.headers["x-troy-adapted"]


# --- RE-04: none is an instruction ---

NONE: Final[dict[str, dict[str, object]]] = {
    "field": {"reasoning_effort": "none"},
    "object": {"reasoning": {"effort": "none"}},
    "switch": {"reasoning": {"enabled": False}},
}


@pytest.mark.parametrize("how", NONE)
@pytest.mark.parametrize("model", ["alpha/re04", "router/re04", "thinker/re04"])
def test_re_04_none_is_taken_out_where_it_is_not_known(
    gateway: Gateway, upstreams: Upstreams, how: str, model: str
) -> None:
    answer = streamed(gateway, model, **NONE[how])
    assert said(upstreams.requests(model.partition("/")[0])[-1].json) == {}
    assert "-reasoning" in answer.headers["x-troy-adapted"]


@pytest.mark.parametrize("how", NONE)
def test_re_04_none_reaches_a_model_that_knows_it(gateway: Gateway, upstreams: Upstreams, how: str) -> None:
    assert said(sent(gateway, upstreams, "beta/re04", **NONE[how])) == {"reasoning_effort": "none"}


@pytest.mark.parametrize("how", NONE)
def test_re_04_none_is_not_replaced_by_the_configured_effort(medium: Gateway, upstreams: Upstreams, how: str) -> None:
    assert said(sent(medium, upstreams, "delta/re04", **NONE[how])) == {}


def test_re_04_none_as_a_suffix_is_no_more_than_that(medium: Gateway, upstreams: Upstreams) -> None:
    assert said(sent(medium, upstreams, "delta/re04-none")) == {}


# --- RE-05: one spelling, the client's word before ours, a budget alone ---


@pytest.mark.parametrize(
    ("model", "body", "upstream"),
    [
        ("alpha/re05-high", "object", {"reasoning_effort": "low"}),
        ("alpha/re05-high", "budget", {"reasoning": {"max_tokens": 2000}}),
        ("alpha/re05-high", "field", {"reasoning_effort": "low"}),
        ("router/re05-high", "object", {"reasoning": {"effort": "low"}}),
        ("router/re05-high", "budget", {"reasoning": {"max_tokens": 2000}}),
        ("router/re05-high", "field", {"reasoning": {"effort": "low"}}),
        ("thinker/re05-high", "object", {"thinking": {"type": "enabled", "budget_tokens": 2048}}),
        ("thinker/re05-high", "budget", {"thinking": {"type": "enabled", "budget_tokens": 2000}}),
        ("thinker/re05-high", "field", {"thinking": {"type": "enabled", "budget_tokens": 2048}}),
        ("alpha/m0-high", "object", {}),
        ("alpha/m0-high", "budget", {}),
        ("alpha/m0-high", "field", {}),
    ],
)
def test_re_05_one_form_goes_upstream_in_the_providers_dialect(
    gateway: Gateway, upstreams: Upstreams, model: str, body: str, upstream: dict[str, object]
) -> None:
    got = sent(gateway, upstreams, model, **BODIES[body])
    assert said(got) == upstream
    assert got.get("include_reasoning") is BODIES[body].get("include_reasoning")


def test_re_05_a_budget_leaves_room_for_the_answer(gateway: Gateway, upstreams: Upstreams) -> None:
    got = sent(gateway, upstreams, "thinker/re05-high", max_tokens=4000)
    assert 1024 <= got["thinking"]["budget_tokens"] < got["max_tokens"] == 4000


# --- RE-07: only a place that names the field teaches ---


def test_re_07_a_refusal_that_only_quotes_the_field_is_the_clients_answer(
    gateway: Gateway, upstreams: Upstreams
) -> None:
    upstreams.script("alpha", whole(TOO_LONG, 400), HEALTHY, model="re07")
    ask: dict[str, object] = {"max_tokens": 999_999, "reasoning_effort": "high"}
    answer = streamed(gateway, "alpha/re07", **ask)
    assert (answer.status, answer.body) == (400, TOO_LONG)
    assert len(upstreams.requests("alpha", model="re07")) == 1
    assert locks(gateway, "alpha", "re07") == []
    assert sent(gateway, upstreams, "alpha/re07", **ask)["reasoning_effort"] == "high"


# --- RE-08: being able to reason is not being asked to ---


@pytest.mark.parametrize("model", ["alpha/re08", "alpha/m0", "open/any"])
def test_re_08_nothing_is_added_when_nobody_asked(gateway: Gateway, upstreams: Upstreams, model: str) -> None:
    got = sent(gateway, upstreams, model)
    assert got.keys() == {"model", "messages", "stream", "stream_options"}


@pytest.mark.parametrize(
    ("model", "upstream"),
    [
        ("delta/re08", {"reasoning_effort": "medium"}),
        ("delta/re08-low", {"reasoning_effort": "low"}),
        ("delta/m0", {}),
        ("delta/vague", {}),
        ("delta/vague-low", {"reasoning_effort": "low"}),
        ("epsilon/re08", {"thinking": {"type": "enabled", "budget_tokens": 5000}}),
    ],
)
def test_re_08_a_configured_effort_is_for_models_that_are_known_to_reason(
    medium: Gateway, upstreams: Upstreams, model: str, upstream: dict[str, object]
) -> None:
    assert said(sent(medium, upstreams, model)) == upstream


def test_re_08_each_member_gets_what_it_can(gateway: Gateway, upstreams: Upstreams) -> None:
    reply: Reply = error(500)
    upstreams.script("alpha", reply, model="re08-walk")
    answer = gateway.post(chat("re08-combo-high"))
    bodies = [upstreams.requests(name, model=m)[-1].json for name, m in (("alpha", "re08-walk"), ("beta", "m0"))]
    assert (answer.status, [said(body) for body in bodies]) == (200, [{"reasoning_effort": "high"}, {}])
