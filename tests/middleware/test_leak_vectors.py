"""Every vector through the guard alone, in front of an ASGI app: in one piece, by the character, in random cuts, whole,
and as two choices that come in turns. Leaks never show, clean answers are the same byte for byte."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import pytest

from tests.asgi import Exchange, post
from tests.leaks.corpus import EXAMPLES, VECTORS, Example, Vector
from tests.leaks.scanning import CLEAN as CORPUS
from tests.leaks.scanning import GENERIC
from tests.middleware.apps import DONE, JSON, USAGE, RawApp, delta, stream_app
from troyproxy import ToolLeakGuard
from troyproxy.leaks.scanner import scan

pytestmark = pytest.mark.anyio

LEAKS = [vector for vector in VECTORS if vector.expect == "leak"]
CLEAN = [vector for vector in VECTORS if vector.expect == "clean"]
ALL = {vector.id: vector for vector in VECTORS}
CUTS = 6


@dataclass
class Seen:
    """What a client makes of one choice."""

    text: str = ""
    calls: dict[int, dict[str, str]] = field(default_factory=dict)
    finish: str | None = None

    @property
    def made(self) -> list[dict[str, Any]]:
        """The calls, with decoded arguments."""
        return [{"name": call["name"], "arguments": json.loads(call["arguments"])} for call in self.calls.values()]


def seen(body: bytes) -> dict[int, Seen]:
    """Add up the chunks of a stream as the official client does, and check their order."""
    found: dict[int, Seen] = {}
    for frame in body.split(b"\n\n"):
        if not frame.startswith(b"data: {"):
            continue
        for choice in json.loads(frame[6:]).get("choices", ()):
            _add(found.setdefault(choice["index"], Seen()), choice)
    return found


def _add(one: Seen, choice: dict[str, Any]) -> None:
    assert one.finish is None, "something came behind the finish reason"
    text = choice["delta"].get("content") or ""
    assert not (text and one.calls), "text came behind a call"
    one.text += text
    for call in choice["delta"].get("tool_calls", ()):
        known = one.calls.setdefault(call["index"], {"id": "", "name": "", "arguments": ""})
        assert not (call.get("id") and known["id"]), "the id of a call came twice"
        known["id"] += call.get("id", "")
        known["name"] += call["function"].get("name", "")
        known["arguments"] += call["function"].get("arguments", "")
    one.finish = choice["finish_reason"] or one.finish


def request(vector: Vector, **more: object) -> dict[str, object]:
    tools = [
        {"type": "function", "function": {"name": name, "parameters": vector.schemas.get(name, {"type": "object"})}}
        for name in vector.tools
    ]
    said = [{"role": "user", "content": vector.request.get("input_text", "hi")}]
    offered = {"tools": tools} if tools and vector.format != "trap_no_tools" else {}
    return {"model": "m", "messages": said, **offered, **more}


def shown(vector: Vector) -> str:
    """Return the text in front of the leak: all that may be seen of a leak."""
    found = scan(vector.text, vector.asked())
    assert found is not None
    return vector.text[: found.block_start]


async def streamed(vector: Vector, parts: Sequence[str], *, choices: int = 1, mode: str = "auto") -> Exchange:
    deltas = [delta(part, index=index) for part in parts for index in range(choices)]
    ends = [delta(finish="stop", index=index) for index in range(choices)]
    app = stream_app(*deltas, *ends, USAGE, DONE)
    guarded = ToolLeakGuard(app, mode, repair_scope="anywhere")
    return await post(guarded, request(vector, stream=True, n=choices))


def cuts(text: str, rng: random.Random) -> list[str]:
    places = sorted({0, len(text), *(rng.randrange(len(text) + 1) for _ in range(rng.randrange(1, 9)))})
    return [text[begin:end] for begin, end in pairwise(places)]


def ways(text: str) -> Iterable[list[str]]:
    rng = random.Random(text)
    yield [text]
    yield list(text)
    yield from (cuts(text, rng) for _ in range(CUTS))


@pytest.mark.parametrize("vector", LEAKS, ids=lambda vector: vector.id)
async def test_a_leak_becomes_its_calls_however_it_is_cut_and_is_never_seen(vector: Vector) -> None:
    for parts in ways(vector.text):
        for index, one in seen((await streamed(vector, parts)).body).items():
            assert (index, one.text, one.made) == (0, shown(vector), vector.calls)
            assert one.finish == ("tool_calls" if vector.calls else "stop")


@pytest.mark.parametrize("vector", LEAKS, ids=lambda vector: vector.id)
async def test_a_leak_is_suppressed_however_it_is_cut(vector: Vector) -> None:
    for parts in ways(vector.text):
        one = seen((await streamed(vector, parts, mode="suppress")).body)[0]
        assert (one.text, one.made, one.finish) == (shown(vector), [], "stop")


@pytest.mark.parametrize("vector", CLEAN, ids=lambda vector: vector.id)
async def test_a_clean_answer_is_the_same_byte_for_byte_however_it_is_cut(vector: Vector) -> None:
    for parts in ways(vector.text):
        expected = b"".join([*(delta(part) for part in parts), delta(finish="stop"), USAGE, DONE])
        assert (await streamed(vector, parts)).body == expected


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector.id)
async def test_two_choices_that_come_in_turns_have_the_same_end(vector: Vector) -> None:
    parts = cuts(vector.text, random.Random(vector.id))
    body = (await streamed(vector, parts, choices=2)).body
    if vector.expect == "clean":
        deltas = [delta(part, index=index) for part in parts for index in (0, 1)]
        assert body == b"".join([*deltas, *(delta(finish="stop", index=index) for index in (0, 1)), USAGE, DONE])
    else:
        both = seen(body)
        assert [(one.text, one.made) for one in both.values()] == [(shown(vector), vector.calls)] * 2


async def whole(vector: Vector, mode: str = "auto") -> Exchange:
    message = {"role": "assistant", "content": vector.text}
    answer = {"id": "c1", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
    app = RawApp(chunks=[json.dumps(answer).encode()], headers=[JSON])
    return await post(ToolLeakGuard(app, mode, repair_scope="anywhere"), request(vector))


@pytest.mark.parametrize("vector", LEAKS, ids=lambda vector: vector.id)
async def test_a_whole_answer_has_the_verdict_of_a_stream(vector: Vector) -> None:
    exchange = await whole(vector)
    choice = exchange.json()["choices"][0]
    made = [call["function"] for call in choice["message"].get("tool_calls", ())]
    found = [{"name": call["name"], "arguments": json.loads(call["arguments"])} for call in made]
    assert ((choice["message"]["content"] or ""), found) == (shown(vector), vector.calls)
    assert (exchange.header("x-troy-leak") or "").endswith(";repaired" if vector.calls else ";suppressed")


@pytest.mark.parametrize("vector", CLEAN, ids=lambda vector: vector.id)
async def test_a_clean_whole_answer_is_the_same_byte_for_byte(vector: Vector) -> None:
    message = {"role": "assistant", "content": vector.text}
    answer = {"id": "c1", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
    exchange = await whole(vector)
    assert exchange.body == json.dumps(answer).encode()
    assert exchange.header("x-troy-leak") is None


async def test_every_clean_answer_of_the_corpus_is_the_same_byte_for_byte() -> None:
    for clean in CORPUS:
        vector = Vector(clean.id, "", sorted(GENERIC.names), clean.text, "clean", [], "", "")
        parts = cuts(clean.text, random.Random(clean.id))
        expected = b"".join([*(delta(part) for part in parts), delta(finish="stop"), USAGE, DONE])
        assert (await streamed(vector, parts)).body == expected, clean.id


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.id)
async def test_every_format_is_made_a_call_by_the_character(example: Example) -> None:
    vector = Vector(example.id, "", ["dim_lamp"], example.text, "leak", [], "", "")
    one = seen((await streamed(vector, list(example.text))).body)[0]
    assert one.finish == "tool_calls"
    assert [call["name"] for call in one.made] == ["dim_lamp"] * len(example.calls)
