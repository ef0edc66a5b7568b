"""Answers that are passed through: byte for byte, failover until the first byte, and no half that looks whole."""

from __future__ import annotations

import json

import pytest

from tests.fakes import Reply, Step
from tests.proxy.rig import ALPHA, Rig, answer, combo, fault, refusal, reset
from troyproxy.accounting.usage import Usage
from troyproxy.proxy.call import Call
from troyproxy.wire.multipart import scan

pytestmark = pytest.mark.anyio

SPEECH = "/v1/audio/{path}"
WAV = ((b"content-type", b"audio/wav"),)
EVENTS = ((b"content-type", b"text/event-stream"),)
FORM = (
    b'--x\r\nContent-Disposition: form-data; name="model"\r\n\r\ntwo\r\n'
    b'--x\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n\x00model\r\n--x--\r\n'
)
HEARD = b'data: {"type":"transcript.text.done","text":"hi","usage":{"input_tokens":7,"output_tokens":3}}\n\n'


def passing(rig: Rig, model: str = "two", **fields: object) -> Call:
    """Return a call as the layers outside make it of a request for speech."""
    call = rig.call(model, route=SPEECH)
    call.upstream_path = "/audio/speech"
    call.body = json.dumps({"model": model, **fields}).encode()
    call.payload = {"model": model}
    return call


def sound(*steps: Step, headers: tuple[tuple[bytes, bytes], ...] = WAV) -> Reply:
    return Reply(200, steps, headers)


# --- requests ---


async def test_of_json_the_model_alone_is_changed_and_the_content_type_stays(rig: Rig) -> None:
    rig.script(alpha=answer())
    call = passing(rig, input="two", stream=True, n=1)
    call.body = b'{ "input":"two" ,"model": "two","x":1.0e2}'
    call.headers = ((b"content-type", b"application/json; charset=UTF-8"), (b"x-title", b"t"))
    await rig.ask(call=call)
    (request,) = rig.upstream.requests
    headers = dict(request.headers)
    assert request.body == b'{ "input":"two" ,"model": "m1","x":1.0e2}'
    assert (request.path, headers[b"content-type"]) == ("/audio/speech", b"application/json; charset=UTF-8")
    assert headers[b"accept-encoding"] == b"identity"


async def test_each_member_gets_a_form_with_its_own_model(rig: Rig) -> None:
    rig.script(alpha=refusal(503), beta=answer())
    call = passing(rig)
    call.body, call.form = FORM, scan(FORM, b"x")
    call.headers = ((b"content-type", b'multipart/form-data; boundary="x"'),)
    await rig.ask(call=call)
    assert [request.body for request in rig.upstream.requests] == [
        FORM.replace(b"two", b"m1"),
        FORM.replace(b"two", b"m2"),
    ]
    assert dict(rig.upstream.requests[1].headers)[b"content-type"] == b'multipart/form-data; boundary="x"'


async def test_a_model_that_was_left_out_is_written_for_the_member(rig: Rig) -> None:
    rig.script(alpha=answer())
    call = passing(rig)
    call.body = b'{"input":"x"}'
    await rig.ask(call=call)
    assert rig.upstream.requests[0].body == b'{"input":"x","model":"m1"}'


# --- answers that flow ---


async def test_sound_flows_as_it_comes(rig: Rig) -> None:
    rig.script(alpha=sound(b"\x00\xff", b"", b"\n", headers=(*WAV, (b"x-request-id", b"u1"))))
    served = await rig.ask(call=passing(rig))
    assert served.exchange.chunks == [b"\x00\xff", b"", b"\n", b""]
    assert (served.exchange.header("content-type"), served.exchange.header("x-troy-model")) == ("audio/wav", "alpha/m1")
    assert served.exchange.header("x-troy-upstream-request-id") == "u1"
    assert (served.exchange.header("cache-control"), served.exchange.header("content-length")) == ("no-store", None)


async def test_without_a_content_type_none_is_made_up(rig: Rig) -> None:
    rig.script(alpha=sound(b"x", headers=()))
    served = await rig.ask(call=passing(rig))
    assert (served.exchange.header("content-type"), served.exchange.body) == (None, b"x")


async def test_a_known_length_is_told(rig: Rig) -> None:
    rig.script(alpha=sound(b"ab", b"c", headers=(*WAV, (b"content-length", b"3"))))
    served = await rig.ask(call=passing(rig))
    assert (served.exchange.header("content-length"), served.exchange.body) == ("3", b"abc")


@pytest.mark.parametrize("lengths", [[b"x"], [b"1", b"2"], [b"9" * 20]])
async def test_a_length_that_cannot_be_is_not_told(rig: Rig, lengths: list[bytes]) -> None:
    rig.script(alpha=sound(b"abc", headers=(*WAV, *((b"content-length", value) for value in lengths))))
    served = await rig.ask(call=passing(rig))
    assert (served.exchange.header("content-length"), served.exchange.body) == (None, b"abc")


async def test_a_coding_that_nobody_could_undo_is_told(rig: Rig) -> None:
    rig.script(alpha=sound(b"x", headers=(*WAV, (b"content-encoding", b"odd"))))
    served = await rig.ask(call=passing(rig))
    assert served.exchange.header("content-encoding") == "odd"


async def test_events_are_no_frames_of_ours(rig: Rig) -> None:
    rig.script(alpha=sound(b": x\r", b"\ndata: {}\r\n\r\n", headers=EVENTS))
    served = await rig.ask(call=passing(rig, stream=True))
    assert (served.exchange.body, served.call.framed) == (b": x\r\ndata: {}\r\n\r\n", False)
    assert (served.exchange.header("cache-control"), served.exchange.header("x-accel-buffering")) == ("no-cache", "no")


async def test_usage_is_heard_in_events(rig: Rig) -> None:
    rig.script(alpha=sound(b'data: {"delta":"h"}\n\ndata: no "usage"\n\n', HEARD[:40], HEARD[40:-2], headers=EVENTS))
    served = await rig.ask(call=passing(rig))
    assert served.row.usage == Usage(7, 3)


async def test_an_event_that_is_too_long_passes_and_is_not_heard(rig: Rig) -> None:
    rig.set(max_event=64)
    rig.script(alpha=sound(b"data: 1\n\ndata: " + b"x" * 999, b"\n\n" + HEARD, headers=EVENTS))
    served = await rig.ask(call=passing(rig))
    assert (served.row.usage, len(served.exchange.body)) == (None, 1015 + len(HEARD) + 1)


# --- answers that are held ---


async def test_json_is_whole_and_its_usage_is_read(rig: Rig) -> None:
    body = b'{ "text" : "\\ud800", "usage":{"input_tokens":5,"output_tokens":2} }'
    rig.script(alpha=answer(body))
    served = await rig.ask(call=passing(rig))
    assert (served.exchange.body, served.row.usage) == (body, Usage(5, 2))
    assert served.exchange.header("content-length") == str(len(body))


async def test_no_usage_is_none(rig: Rig) -> None:
    rig.script(alpha=answer({"text": "a long text"}))
    assert (await rig.ask(call=passing(rig))).row.usage is None


@pytest.mark.parametrize("body", [b"{broken}", b"[1,2]", b"text", b'"text"', b'{"error":null,"text":""}'])
async def test_json_is_not_judged(rig: Rig, body: bytes) -> None:
    rig.script(alpha=answer(body))
    assert (await rig.ask(call=passing(rig))).exchange.body == body


async def test_json_over_the_cap_flows(rig: Rig) -> None:
    rig.set(max_body=4)
    rig.script(alpha=answer(b'{"data":"x"}'))
    served = await rig.ask(call=passing(rig))
    assert (served.exchange.body, served.exchange.header("content-type")) == (b'{"data":"x"}', "application/json")


async def test_an_error_beside_results_is_an_answer(rig: Rig) -> None:
    body = b'{"data":[{"b64_json":"x"}],"error":{"message":"one of two failed"}}'
    rig.script(alpha=answer(body))
    assert (await rig.ask(call=passing(rig))).exchange.body == body


# --- before the commit ---


@pytest.mark.parametrize(
    "first",
    [
        refusal(503),
        refusal(429),
        refusal(404, "no such route"),
        fault(),
        sound(reset()),
        sound(),
        sound(b"", b""),
        sound(b"<html>", headers=((b"content-type", b"text/html; charset=utf-8"),)),
        answer(b""),
        answer(b" \n"),
        answer(b'{"text":"ha'),
        answer(b'[{"text":"ha"},'),
        answer({"error": {"message": "overloaded"}}),
        Reply(200, (b'{"text":"ha', reset())),
        Reply(204, (), ()),
    ],
)
async def test_what_fails_before_its_first_byte_is_followed_by_the_next_member(rig: Rig, first: Reply) -> None:
    rig.script(alpha=first, beta=sound(b"\x01"))
    served = await rig.ask(call=passing(rig))
    assert (served.exchange.body, served.exchange.header("x-troy-model")) == (b"\x01", "beta/m2")
    assert rig.idle


async def test_a_slow_first_byte_is_followed_by_the_next_member(rig: Rig) -> None:
    rig.script(alpha=sound(400.0, b"late"), beta=sound(b"\x01"))
    served = await rig.ask(call=passing(rig))
    assert (served.exchange.body, served.outcomes) == (b"\x01", ["transient", "ok"])


async def test_a_bad_request_stops_and_passes_as_it_is(rig: Rig) -> None:
    rig.script(alpha=refusal(400, "voice: unknown"))
    served = await rig.ask(call=passing(rig))
    assert (served.exchange.status, served.exchange.json()["error"]["message"]) == (400, "voice: unknown")


async def test_the_last_error_passes_as_it_is(rig: Rig) -> None:
    rig.script(alpha=refusal(503), beta=refusal(500, "mine"))
    served = await rig.ask(call=passing(rig))
    assert (served.exchange.status, served.exchange.json()["error"]["message"]) == (500, "mine")


async def test_an_error_under_a_200_is_told_in_our_envelope(rig: Rig) -> None:
    rig.script(alpha=answer({"error": {"message": "boom", "code": 503}}))
    served = await rig.ask(call=passing(rig, "alpha/m1"))
    assert (served.exchange.status, served.exchange.json()["error"]["message"]) == (503, "boom")


@pytest.mark.parametrize(
    ("reply", "words"), [(sound(), "empty"), (sound(b"x", headers=((b"content-type", b"text/html"),)), "page")]
)
async def test_no_answer_is_told_as_what_it_was(rig: Rig, reply: Reply, words: str) -> None:
    rig.script(alpha=reply)
    served = await rig.ask(call=passing(rig, "alpha/m1"))
    assert (served.exchange.status, words in served.exchange.json()["error"]["message"]) == (502, True)


async def test_a_combo_of_one_serves_all_the_same(rig: Rig) -> None:
    rig.use(ALPHA, combo("sole", "alpha/m1"))
    rig.script(alpha=sound(b"x"))
    served = await rig.ask(call=passing(rig, "sole"))
    assert (served.exchange.header("x-troy-combo"), served.row.route) == ("sole", SPEECH)
