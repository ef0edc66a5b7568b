"""The demo provider beyond text: sound, transcripts, pictures, verdicts, rankings."""

from __future__ import annotations

import base64
import io
import json
import wave
import zlib
from typing import Any

import pytest

from tests.asgi import Exchange, Message, drive, http_scope, request_body
from troyproxy.demo.app import Cut, demo_app

pytestmark = pytest.mark.anyio
APP = demo_app(pace_s=0, now=lambda: 1.8e9)
FORM = {"content-type": "multipart/form-data; boundary=b"}


async def ask(path: str, **body: Any) -> Exchange:  # noqa: ANN401 -- a JSON body
    return await drive(APP, http_scope(path), request_body({"model": "ok", **body}))


async def upload(path: str = "/v1/audio/transcriptions", /, **fields: str) -> Exchange:
    """Post a form with a file of five bytes."""
    parts = [f'Content-Disposition: form-data; name="{name}"\r\n\r\n{text}' for name, text in fields.items()]
    parts.append('Content-Disposition: form-data; name="file"; filename="a.wav"\r\n\r\nhello')
    body = "".join(f"--b\r\n{part}\r\n" for part in parts) + "--b--"
    return await drive(APP, http_scope(path, headers=FORM), request_body(body.encode()))


async def test_speech_is_a_sound_as_long_as_its_words() -> None:
    lengths = []
    for text in ("", "one", "one two three", "word " * 99):
        done = await ask("/v1/audio/speech", input=text, voice="x")
        with wave.open(io.BytesIO(done.body)) as sound:
            lengths.append(sound.getnframes() / sound.getframerate())
    assert (lengths, done.header("content-type")) == ([0.1, 0.1, pytest.approx(0.3), pytest.approx(3.0)], "audio/wav")


async def test_the_same_speech_is_the_same_bytes() -> None:
    assert (await ask("/v1/audio/speech", input="a b")).body == (await ask("/v1/audio/speech", input="c d")).body


@pytest.mark.parametrize("path", ["/v1/audio/transcriptions", "/audio/translations"])
async def test_a_transcript_names_the_size_of_the_file(path: str) -> None:
    body = (await upload(path, model="ok")).json()
    assert (body["text"], body["usage"]["output_tokens"]) == ("The demo provider heard 5 bytes.", 6)


@pytest.mark.parametrize(
    ("wanted", "kind", "start"),
    [
        ("text", "text/plain; charset=utf-8", "The demo"),
        ("srt", "text/plain; charset=utf-8", "1\n00:00:00,000 -->"),
        ("vtt", "text/vtt; charset=utf-8", "WEBVTT\n"),
        ("json", "application/json", '{"text":'),
        ("verbose_json", "application/json", '{"text":'),
    ],
)
async def test_a_transcript_has_the_form_that_was_asked_for(wanted: str, kind: str, start: str) -> None:
    done = await upload(model="ok", response_format=wanted)
    assert (done.header("content-type"), done.body.decode().startswith(start)) == (kind, True)


async def test_a_verbose_transcript_has_segments() -> None:
    assert (await upload(model="ok", response_format="verbose_json")).json()["segments"][0]["id"] == 0


async def test_a_transcript_is_streamed() -> None:
    done = await upload(model="ok", stream="true")
    events = [json.loads(line[6:]) for line in done.body.decode().split("\n\n") if line]
    assert "".join(event["delta"] for event in events[:-1]) == events[-1]["text"]
    assert (events[-1]["type"], done.header("content-type")) == (
        "transcript.text.done",
        "text/event-stream; charset=utf-8",
    )


async def test_pictures_are_pictures_and_as_many_as_were_asked_for() -> None:
    body = (await ask("/v1/images/generations", prompt="a cat", n=3)).json()
    picture = base64.b64decode(body["data"][0]["b64_json"])
    assert (len(body["data"]), picture[:8], picture[12:16]) == (3, b"\x89PNG\r\n\x1a\n", b"IHDR")
    size = int.from_bytes(picture[33:37], "big")
    assert len(zlib.decompress(picture[41 : 41 + size])) == 4


async def test_another_prompt_is_another_colour() -> None:
    pictures = [(await ask("/v1/images/generations", prompt=text)).json()["data"] for text in ("a", "b", "a")]
    assert pictures[0] == pictures[2] != pictures[1]


async def test_a_picture_is_edited_by_a_form() -> None:
    body = (await upload("/v1/images/edits", model="ok", prompt="x", n="2")).json()
    assert len(body["data"]) == 2


async def test_a_picture_is_streamed() -> None:
    done = await ask("/v1/images/generations", prompt="x", stream=True)
    kinds = [json.loads(line[6:])["type"] for line in done.body.decode().split("\n\n") if line]
    assert kinds == ["image_generation.partial_image", "image_generation.completed"]


@pytest.mark.parametrize(
    ("given", "flags"),
    [
        ("peace", [False]),
        ("Violence!", [True]),
        (["violence", "x"], [True, False]),
        ([{"type": "text", "text": "violence"}], [True]),
        (None, [False]),
    ],
)
async def test_a_moderation_flags_one_word(given: object, flags: list[bool]) -> None:
    body = (await ask("/v1/moderations", input=given)).json()
    assert [result["flagged"] for result in body["results"]] == flags
    assert [result["categories"]["violence"] for result in body["results"]] == flags


async def test_documents_are_ranked_by_the_words_they_share() -> None:
    documents = ["green pears", {"text": "red apples"}, "apples", 7]
    body = (await ask("/v1/rerank", query="Red apples", documents=documents, top_n=3)).json()
    assert [(item["index"], item["relevance_score"]) for item in body["results"]] == [(1, 1.0), (2, 0.5), (0, 0.0)]


async def test_nothing_to_rank_is_an_empty_ranking() -> None:
    assert (await ask("/v1/rerank", query="x")).json()["results"] == []


@pytest.mark.parametrize("path", ["/v1/audio/speech", "/v1/rerank", "/v1/images/generations"])
async def test_the_scripted_faults_are_the_same(path: str) -> None:
    failed = await ask(path, model="fail-429-retry-7")
    empty, page = await ask(path, model="empty"), await ask(path, model="garbage")
    error = await ask(path, model="error-event")
    assert (failed.status, failed.header("retry-after"), empty.body) == (429, "7", b"")
    assert (page.header("content-type"), error.status, "error" in error.json()) == (
        "text/html; charset=utf-8",
        200,
        True,
    )


@pytest.mark.parametrize(
    ("path", "pieces"), [("/v1/audio/speech", 2), ("/v1/rerank", 1), ("/v1/images/generations", 1)]
)
async def test_a_cut_comes_before_the_end(path: str, pieces: int) -> None:
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": b'{"model":"cut","input":"a b c"}'}

    async def send(message: Message) -> None:
        sent.append(message)

    with pytest.raises(Cut):
        await APP({"type": "http", "method": "POST", "path": path, "headers": []}, receive, send)
    assert (len(sent) - 1, all(message["more_body"] for message in sent[1:])) == (pieces, True)


@pytest.mark.parametrize(
    "body",
    [b"--b--", b"--b\r\nbroken", b'--b\r\nContent-Disposition: form-data; name="x"\r\n\r\ny\r\n--b--'],
)
async def test_a_form_without_a_model_is_refused(body: bytes) -> None:
    done = await drive(APP, http_scope("/v1/audio/transcriptions", headers=FORM), request_body(body))
    assert done.status == 400


async def test_a_number_in_a_form_may_be_none() -> None:
    assert len((await upload("/v1/images/edits", model="ok", n="many")).json()["data"]) == 1
