"""What the demo provider answers where nothing is said: sound, pictures, transcripts, verdicts, rankings. Pure.

speech            a valid WAV, a beep of a tenth of a second for each word (at most thirty)
transcriptions    a fixed sentence that names the file's size; ``response_format`` text, srt, vtt or (verbose_)json
images            one PNG of one pixel for each that was asked for; its colour comes from the prompt
moderations       flagged when the text has the word "violence"
rerank            documents by the number of words they share with the query

What a model name does instead is in ``faults.py``; the same model and input always give the same bytes.
"""

from __future__ import annotations

import base64
import hashlib
import math
import re
import struct
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeGuard

from troyproxy.demo.asks import Ask, text_of
from troyproxy.demo.shapes import Body, dumps, event

JSON: Final = "application/json"
EVENTS: Final = "text/event-stream; charset=utf-8"
_PLAIN: Final = {
    "text": ("text/plain; charset=utf-8", "{}\n"),
    "srt": ("text/plain; charset=utf-8", "1\n00:00:00,000 --> 00:00:01,000\n{}\n\n"),
    "vtt": ("text/vtt; charset=utf-8", "WEBVTT\n\n00:00.000 --> 00:01.000\n{}\n"),
}
"""Forms of a transcript that are no JSON."""
RATE: Final = 8000
"""Samples a second, one byte each."""
MAX_BEEPS: Final = 30
MAX_IMAGES: Final = 10
MAX_DOCUMENTS: Final = 1000
CATEGORIES: Final = ("harassment", "hate", "self-harm", "sexual", "violence")
_WORD: Final = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Media:
    """An answer: its pieces, one a write, and what they are."""

    kind: str
    pieces: tuple[bytes, ...]


def media_of(path: str, ask: Ask, created: int) -> Media | None:
    """Return the answer to *ask* at *path* (without the version), None for a path that there is not."""
    make = _MAKERS.get(path)
    return None if make is None else make(ask, created)


def _speech(ask: Ask, _created: int) -> Media:
    words = max(1, min(len(_WORD.findall(ask.text)), MAX_BEEPS))
    beep = bytes(round(128 + 60 * math.sin(440 * math.tau * at / RATE)) for at in range(RATE // 10))
    size = len(beep) * words
    form = struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, 1, RATE, RATE, 1, 8)
    head = struct.pack("<4sI4s", b"RIFF", 36 + size, b"WAVE") + form + struct.pack("<4sI", b"data", size)
    return Media("audio/wav", (head, *(beep for _ in range(words))))


def _transcript(ask: Ask, _created: int) -> Media:
    text = f"The demo provider heard {ask.file_bytes} bytes."
    usage = {"type": "tokens", **_usage(ask, written=6)}
    if ask.stream:
        deltas = (event({"type": "transcript.text.delta", "delta": word}) for word in re.findall(r"\S+\s*", text))
        return Media(EVENTS, (*deltas, event({"type": "transcript.text.done", "text": text, "usage": usage})))
    wanted = str(ask.body.get("response_format", "json"))
    if wanted in _PLAIN:
        kind, pattern = _PLAIN[wanted]
        return Media(kind, (pattern.format(text).encode(),))
    more: Body = {}
    if wanted == "verbose_json":
        segment = {"id": 0, "start": 0.0, "end": 1.0, "text": text}
        more = {"task": "transcribe", "language": "english", "duration": 1.0, "segments": [segment]}
    return _json({"text": text, **more, "usage": usage})


def _usage(ask: Ask, *, written: int) -> Body:
    return {"input_tokens": ask.prompt_tokens, "output_tokens": written, "total_tokens": ask.prompt_tokens + written}


def _images(ask: Ask, created: int) -> Media:
    picture = base64.b64encode(_png(hashlib.sha256(ask.text.encode("utf-8", "replace")).digest()[:3])).decode()
    usage = _usage(ask, written=1)
    if ask.stream:
        partial = {"type": "image_generation.partial_image", "b64_json": picture, "partial_image_index": 0}
        done = {"type": "image_generation.completed", "b64_json": picture, "usage": usage}
        events = tuple(event({**one, "created_at": created}) for one in (partial, done))
        return Media(EVENTS, events)
    count = min(max(1, ask.choices), MAX_IMAGES)
    return _json({"created": created, "data": [{"b64_json": picture} for _ in range(count)], "usage": usage})


def _png(colour: bytes) -> bytes:
    """Return a picture of one pixel."""
    header = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(b"\0" + colour)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)) for name, data in chunks
    )


def _moderation(ask: Ask, _created: int) -> Media:
    given = ask.body.get("input")
    texts = [text_of(item) for item in given[:MAX_DOCUMENTS]] if _all_texts(given) else [text_of(given)]
    return _json({"id": "modr-demo", "model": ask.model, "results": [_verdict(text) for text in texts]})


def _all_texts(value: object) -> TypeGuard[list[str]]:
    return isinstance(value, list) and bool(value) and all(isinstance(item, str) for item in value)


def _verdict(text: str) -> Body:
    flagged = "violence" in {word.lower() for word in _WORD.findall(text)}
    scores = {name: 0.9 if flagged and name == "violence" else 0.01 for name in CATEGORIES}
    applied = {name: ["text"] for name in CATEGORIES}
    marks = {name: score > 0.5 for name, score in scores.items()}
    return {"flagged": flagged, "categories": marks, "category_scores": scores, "category_applied_input_types": applied}


def _ranking(ask: Ask, _created: int) -> Media:
    documents = ask.body.get("documents")
    texts = [_document(item) for item in documents[:MAX_DOCUMENTS]] if isinstance(documents, list) else []
    wanted = _words(str(ask.body.get("query", "")))
    scored = [(len(wanted & _words(text)) / max(1, len(wanted)), at) for at, text in enumerate(texts)]
    scored.sort(key=lambda pair: (-pair[0], pair[1]))
    top = ask.body.get("top_n")
    kept = scored[:top] if isinstance(top, int) and top > 0 else scored
    results = [{"index": at, "relevance_score": score} for score, at in kept]
    usage = {"prompt_tokens": ask.prompt_tokens, "total_tokens": ask.prompt_tokens}
    return _json({"id": "rerank-demo", "model": ask.model, "results": results, "usage": usage})


def _document(value: object) -> str:
    return value if isinstance(value, str) else str(value.get("text", "")) if isinstance(value, dict) else ""


def _words(text: str) -> set[str]:
    return {word.lower() for word in _WORD.findall(text)}


def _json(body: Body) -> Media:
    return Media(JSON, (dumps(body),))


_MAKERS: Final[Mapping[str, Callable[[Ask, int], Media]]] = {
    "/audio/speech": _speech,
    "/audio/transcriptions": _transcript,
    "/audio/translations": _transcript,
    "/images/generations": _images,
    "/images/edits": _images,
    "/images/variations": _images,
    "/moderations": _moderation,
    "/rerank": _ranking,
}
PATHS: Final = frozenset(_MAKERS)
