"""The official SDK on every route but chat, against the demo provider: through a combo whose first member fails."""

from __future__ import annotations

import base64
import io
import wave
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import openai
import pytest
from openai import OpenAI

from tests.e2e.cases.house import combo
from tests.e2e.gateway import Gateway, run_gateway

FAILING: Final = combo("demo/fail-503", "demo/chat")
SOUND: Final = ("sound.wav", b"RIFF\x00\xff\r\n--" * 1000, "audio/wav")


@pytest.fixture(scope="module")
def gateway(folder: Path) -> Iterator[Gateway]:
    members = {"vectors": combo("demo/fail-503", "demo/fail-503", "demo/chat", config={"allow_mixed_embeddings": True})}
    combos = {"second": FAILING, "strict": FAILING, **members}
    with run_gateway(folder, {"combos": combos}, "--demo", TROY_RETRY_BUDGET="0") as running:
        yield running


def test_a_text_completion(client: OpenAI) -> None:
    answer = client.completions.create(model="second", prompt=["hello", "again"])
    assert answer.choices[0].text.startswith("Hello")
    assert answer.usage is not None


def test_a_streamed_text_completion_shows_usage_to_whoever_asks(client: OpenAI) -> None:
    plain = list(client.completions.create(model="second", prompt="hello", stream=True))
    asked = list(
        client.completions.create(model="second", prompt="hello", stream=True, stream_options={"include_usage": True})
    )
    assert "".join(chunk.choices[0].text for chunk in plain).startswith("Hello")
    assert [sum(chunk.usage is not None for chunk in chunks) for chunks in (plain, asked)] == [0, 1]


def test_embeddings(client: OpenAI) -> None:
    answer = client.embeddings.create(model="vectors", input=["one", "two"], dimensions=4)
    assert [len(item.embedding) for item in answer.data] == [4, 4]
    assert answer.usage.prompt_tokens > 0


def test_embeddings_of_tokens_and_as_floats(client: OpenAI) -> None:
    floats = client.embeddings.create(model="demo/chat", input=[[1, 2], [3]], encoding_format="float")
    packed = client.embeddings.create(model="demo/chat", input=[[1, 2], [3]])
    pairs = zip(floats.data, packed.data, strict=True)
    assert all(one.embedding == pytest.approx(two.embedding) for one, two in pairs)


def test_the_combo_of_the_demo_gives_vectors_too(client: OpenAI) -> None:
    assert client.embeddings.create(model="demo", input="one").data


def test_embeddings_do_not_move_to_another_model(client: OpenAI) -> None:
    with pytest.raises(openai.InternalServerError) as caught:
        client.embeddings.create(model="strict", input="x")
    assert caught.value.status_code == 503
    assert caught.value.response.headers["x-troy-skipped"] == "demo/chat=mixed-embeddings"


def test_a_transcription(client: OpenAI) -> None:
    answer = client.audio.transcriptions.create(model="second", file=SOUND)
    assert answer.text == f"The demo provider heard {len(SOUND[1])} bytes."


def test_a_transcription_as_subtitles(client: OpenAI) -> None:
    answer = client.audio.transcriptions.create(model="second", file=SOUND, response_format="vtt")
    assert str(answer).startswith("WEBVTT")


def test_a_streamed_transcription(client: OpenAI) -> None:
    events = list(client.audio.transcriptions.create(model="second", file=SOUND, stream=True))
    assert [event.type for event in events][-1] == "transcript.text.done"
    assert "".join(event.delta for event in events if event.type == "transcript.text.delta").startswith("The demo")


def test_a_translation(client: OpenAI) -> None:
    with pytest.deprecated_call():  # the SDK's word for the route, which is served all the same
        answer = client.audio.translations.create(model="second", file=SOUND, response_format="json")
    assert answer.text == f"The demo provider heard {len(SOUND[1])} bytes."


def test_speech_streams(client: OpenAI) -> None:
    with client.audio.speech.with_streaming_response.create(model="second", voice="alloy", input="one two") as answer:
        pieces = list(answer.iter_bytes())
        assert answer.headers["x-troy-model"] == "demo/chat"
    with wave.open(io.BytesIO(b"".join(pieces))) as sound:
        assert (sound.getframerate(), sound.getnframes()) == (8000, 1600)


def test_speech_that_breaks_off_is_no_speech(client: OpenAI) -> None:
    with pytest.raises(openai.APIConnectionError):
        client.audio.speech.create(model="demo/cut", voice="alloy", input="one two three four")


def test_images(client: OpenAI) -> None:
    answer = client.images.generate(model="second", prompt="a cat", n=2)
    assert answer.data is not None
    pictures = [base64.b64decode(item.b64_json or "") for item in answer.data]
    assert [picture[:4] for picture in pictures] == [b"\x89PNG"] * 2


def test_an_image_is_edited(client: OpenAI) -> None:
    answer = client.images.edit(model="second", prompt="a dog", image=("a.png", b"\x89PNG\r\n", "image/png"))
    assert answer.data
    assert answer.data[0].b64_json


def test_moderations(client: OpenAI) -> None:
    answer = client.moderations.create(model="second", input=["peace", "violence"])
    assert [result.flagged for result in answer.results] == [False, True]


@pytest.mark.parametrize("name", ["second", "auto", "demo/chat", "DEMO/chat"])
def test_a_model_is_retrieved_by_any_of_its_names(client: OpenAI, name: str) -> None:
    assert client.models.retrieve(name).object == "model"
