"""What the soak's upstream does: a good answer, or one of every way to fail, as steps. Pure.

`WHOLE` and `STREAMED` are the ways to fail. Some of them report tokens first: those are wasted, and must be in the
ledger all the same. `NOISE` are oddities that an answer survives.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from tests.soak.plan import Generation

CUT_S: Final = 0.05
"""Between the last bytes and a cut, so that the bytes are read before the cut is seen."""
JSON: Final = "content-type: application/json\r\n"
SSE: Final = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
HEAD: Final[Mapping[str, object]] = {"id": "chatcmpl-soak", "created": 1, "model": "m"}
LAST_CHUNK: Final = b"0\r\n\r\n"
END_MARK: Final = b"e\r\ndata: [DONE]\n\n\r\n" + LAST_CHUNK


@dataclass(frozen=True, slots=True)
class Write:
    """Send bytes; *usage* is what they report, input and output tokens."""

    data: bytes
    usage: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Wait:
    """Let time pass."""

    seconds: float


@dataclass(frozen=True, slots=True)
class End:
    """End the connection: ``close``, ``reset``, or ``hang`` until the gateway leaves."""

    how: str


Step = Write | Wait | End
Steps = list[Step]


def _counts(usage: Mapping[str, int]) -> tuple[int, int]:
    return usage["prompt_tokens"], usage["completion_tokens"]


# --- whole answers ---


def answer(body: bytes, status: int = 200, extra: str = JSON, usage: tuple[int, int] | None = None) -> Steps:
    """Return an answer with a length."""
    head = f"HTTP/1.1 {status} Soak\r\n{extra}content-length: {len(body)}\r\n\r\n"
    return [Write(head.encode() + body, usage)]


def error(status: int, message: str = "scripted", code: str | None = None, extra: str = "") -> Steps:
    """Return a vendor's error."""
    return answer(json.dumps({"error": {"message": message, "type": "x", "code": code}}).encode(), status, JSON + extra)


def completion(it: Generation) -> bytes:
    """Return the body of a whole completion."""
    message: dict[str, object] = {"role": "assistant", "content": None if it.tool_call else it.text}
    if it.tool_call:
        arguments = json.dumps({"text": it.text})
        call = {"id": "call_1", "type": "function", "function": {"name": "note", "arguments": arguments}}
        message["tool_calls"] = [call]
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if it.tool_call else "stop"}
    usage = {} if it.usage_in == "none" else {"usage": it.usage()}
    return json.dumps({**HEAD, "object": "chat.completion", "choices": [choice], **usage}).encode()


def whole(it: Generation) -> Steps:
    """Return a good whole answer."""
    usage = None if it.usage_in == "none" else _counts(it.usage())
    return [Wait(it.seconds), *answer(completion(it), usage=usage)]


def _cut_body(it: Generation, how: str) -> Steps:
    body = completion(it)
    return [Write(f"HTTP/1.1 200 OK\r\n{JSON}content-length: {len(body)}\r\n\r\n".encode() + body[:30]), End(how)]


def _no_choices(it: Generation) -> Steps:
    body = json.dumps({**HEAD, "choices": [], "usage": it.usage()}).encode()
    return answer(body, usage=_counts(it.usage()))


# --- streams ---


def chunk(data: bytes, usage: Mapping[str, int] | None = None) -> Write:
    """Return one chunk of a body."""
    return Write(b"%x\r\n%b\r\n" % (len(data), data), None if usage is None else _counts(usage))


def _event(delta: Mapping[str, object], finish: str | None = None, usage: Mapping[str, int] | None = None) -> Write:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    told = {} if usage is None else {"usage": usage}
    body = {**HEAD, "object": "chat.completion.chunk", "choices": [choice], **told}
    return chunk(b"data: " + json.dumps(body).encode() + b"\n\n", usage)


def _role() -> Write:
    return _event({"role": "assistant", "content": ""})


def _usage(it: Generation) -> Write:
    body = {**HEAD, "choices": [], "usage": it.usage()}
    return chunk(b"data: " + json.dumps(body).encode() + b"\n\n", it.usage())


def _part(it: Generation, text: str, *, first: bool) -> dict[str, object]:
    if not it.tool_call:
        return {"content": text}
    named = {"id": "call_1", "type": "function", "function": {"name": "note", "arguments": text}} if first else {}
    return {"tool_calls": [{"index": 0, "function": {"arguments": text}, **named}]}


def _words(it: Generation, count: int) -> Steps:
    """Return the events of the first *count* words, spread over the generation's time."""
    spoken = json.dumps({"text": it.text})[:-2] if it.tool_call else it.text
    head, *words = spoken.split(" word")
    pieces = [head, *([" word"] * len(words))][: count + 1]
    steps: Steps = []
    for at, piece in enumerate(pieces):
        usage = it.usage(at) if it.usage_in == "every" else None
        steps += [Wait(it.seconds / (it.words + 1)), _event(_part(it, piece, first=at == 0), usage=usage)]
    return steps


def _body(it: Generation) -> Steps:
    closing = [_event(_part(it, '"}', first=False))] if it.tool_call else []
    finish = _event({}, "tool_calls" if it.tool_call else "stop", it.usage() if it.usage_in == "finish" else None)
    last = [_usage(it)] if it.usage_in in {"last", "every"} else []
    return [Write(SSE), _role(), *_words(it, it.words), *closing, finish, *last]


def streamed(it: Generation) -> Steps:
    """Return a good stream."""
    return [*_body(it), Write(END_MARK)]


def _begun(it: Generation, *then: Step) -> Steps:
    """Return a stream that fails after its first words."""
    return [Write(SSE), _role(), *_words(it, it.words // 2), *then]


def _error_event(code: int = 503) -> Write:
    body = {"error": {"message": "overloaded", "type": "overloaded_error", "code": code}}
    return chunk(b"data: " + json.dumps(body).encode() + b"\n\n")


Way = Callable[[Generation], Steps]
BOTH: Final[dict[str, Way]] = {
    "reset before the head": lambda _: [End("reset")],
    "closed before the head": lambda _: [End("close")],
    "half a head": lambda _: [Write(b"HTTP/1.1 200 OK\r\ncontent-ty"), End("close")],
    "no HTTP": lambda _: [Write(b"SSH-2.0-OpenSSH_9.7\r\n"), End("close")],
    "silence": lambda _: [End("hang")],
    "a head and silence": lambda _: [Write(f"HTTP/1.1 200 OK\r\n{JSON}\r\n".encode()), End("hang")],
    "400": lambda _: error(400, "a bad request", "invalid_value"),
    "401": lambda _: error(401, "bad key"),
    "402": lambda _: error(402, "pay first"),
    "404": lambda _: error(404, "model not found", "model_not_found"),
    "413": lambda _: error(413, "too large"),
    "429": lambda _: error(429, "slow down", "rate_limit_exceeded", "retry-after: 1\r\n"),
    "500": lambda _: error(500),
    "503 in HTML": lambda _: answer(b"<html>busy</html>", 503, "content-type: text/html\r\n"),
    "529": lambda _: error(529, "overloaded"),
    "a redirect": lambda _: answer(b"", 302, "location: http://127.0.0.1:9/\r\n"),
    "HTML under 200": lambda _: answer(b"<html>hello</html>", 200, "content-type: text/html\r\n"),
    "nothing under 200": lambda _: answer(b""),
    "an error under 200": lambda _: error(200, "over the limit", "rate_limit_exceeded"),
    "broken gzip": lambda it: answer(gzip.compress(completion(it))[:-9], 200, JSON + "content-encoding: gzip\r\n"),
}
WHOLE: Final[dict[str, Way]] = {
    **BOTH,
    "a body cut short": lambda it: _cut_body(it, "close"),
    "a reset in the body": lambda it: _cut_body(it, "reset"),
    "silence in the body": lambda it: _cut_body(it, "hang"),
    "JSON cut short": lambda it: answer(completion(it)[:-40]),
    "tokens and no choices": _no_choices,
    "a stream": lambda _: [Write(SSE), _role(), Write(LAST_CHUNK)],
}
STREAMED: Final[dict[str, Way]] = {
    **BOTH,
    "a role and a cut": lambda _: [Write(SSE), _role(), Wait(CUT_S), End("close")],
    "a role, tokens and a cut": lambda it: [Write(SSE), _role(), _usage(it), Wait(CUT_S), End("close")],
    "a role and an error": lambda _: [Write(SSE), _role(), _error_event(), Write(LAST_CHUNK)],
    "a role and silence": lambda _: [Write(SSE), _role(), End("hang")],
    "an end mark alone": lambda _: [Write(SSE), Write(END_MARK)],
    "no JSON": lambda _: [Write(SSE), chunk(b"data: {]\n\n"), Write(LAST_CHUNK)],
    "words and a cut": lambda it: _begun(it, Wait(CUT_S), End("close")),
    "words and a reset": lambda it: _begun(it, Wait(CUT_S), End("reset")),
    "words and an end": lambda it: _begun(it, Write(LAST_CHUNK)),
    "words and an error": lambda it: _begun(it, _error_event(500), Write(LAST_CHUNK)),
    "words and silence": lambda it: _begun(it, End("hang")),
    "words, tokens and a cut": lambda it: _begun(it, _usage(it), Wait(CUT_S), End("close")),
}
NOISE: Final[dict[str, Way]] = {
    "no end mark": lambda it: [*_body(it), Write(LAST_CHUNK)],
    "no end mark and a cut": lambda it: [*_body(it), Wait(CUT_S), End("close")],
    "a line of noise": lambda it: [*streamed(it)[:-1], chunk(b"data: noise\n\n"), Write(END_MARK)],
}
UNSEEN: Final = frozenset({"reset before the head", "closed before the head"})
"""On a kept connection the gateway sends such a request once more, without calling it an attempt."""
