"""What a request needs of whoever serves it, read from the parsed body. Never from its text: a message may talk about
``image_url`` without showing an image. Total over any JSON: wrong types are InvalidRequest in the validators and are
ignored by `needs_of`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from troyproxy.errors import InvalidRequest

PAYLOAD_TOKENS: Final = 1000
"""What one inline image, audio or file is charged in the estimate, whatever its bytes."""

_BYTES_PER_TOKEN: Final = 4
_IMAGES: Final = frozenset({"image_url", "input_image", "image"})
_AUDIO: Final = "input_audio"
_FILES: Final = frozenset({"file", "input_file", "document", "audio", "video", "video_url", "input_video"})
_MEDIA: Final = _IMAGES | _FILES | {_AUDIO}
_PAYLOAD_KEYS: Final = _MEDIA | {"source", "data", "file_data", "file_url", "url", "b64_json"}
_LABELS: Final = frozenset({"role", "type", "id", "tool_call_id"})
"""Members of messages and parts that are structure, not text."""


@dataclass(frozen=True, slots=True)
class Needs:
    """The needs of one request."""

    tools: bool = False
    vision: bool = False
    json: bool = False
    audio: bool = False
    est_tokens: int = 0
    """Estimated input tokens: UTF-8 bytes of the text / 4, plus 1,000 for each inline payload."""
    max_output: int | None = None
    """The longest answer asked for, in tokens."""


def needs_of(payload: Mapping[str, object]) -> Needs:
    """Return the needs of a chat, completion or embedding request. Never raises."""
    scan = _Scan()
    scan.messages(payload.get("messages"))
    texts = sum(_text_bytes(payload.get(key)) for key in ("tools", "functions", "prompt", "input"))
    return Needs(
        tools=wants_tools(payload),
        vision=scan.vision,
        json=_kind(payload.get("response_format")) == "json_schema",
        audio=scan.audio,
        est_tokens=math.ceil((scan.bytes + texts) / _BYTES_PER_TOKEN) + PAYLOAD_TOKENS * scan.payloads,
        max_output=_max_output(payload),
    )


def wants_tools(payload: Mapping[str, object]) -> bool:
    """Whether the request offers tools: a non-empty ``tools`` or ``functions`` array, whatever ``tool_choice`` says."""
    return any(isinstance(payload.get(key), list) and bool(payload.get(key)) for key in ("tools", "functions"))


def as_tokens(value: object) -> int | None:
    """Return a positive whole number of tokens, or None for what is none (a boolean, NaN, a string, 0)."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 1 <= value < math.inf:
        return None
    return int(value)


def _max_output(payload: Mapping[str, object]) -> int | None:
    newer = payload.get("max_completion_tokens")
    return as_tokens(newer if newer is not None else payload.get("max_tokens"))


@dataclass(slots=True)
class _Scan:
    """Totals of a walk over ``messages``."""

    bytes: int = 0
    payloads: int = 0
    vision: bool = False
    audio: bool = False

    def messages(self, messages: object) -> None:
        """Walk every message; its ``content``, and content inside parts, is searched for media."""
        for message in messages if isinstance(messages, list) else ():
            if isinstance(message, dict):
                self._content(message)

    def _content(self, message: Mapping[str, object]) -> None:
        """Walk *message* without recursion: JSON may nest deeper than the stack."""
        todo: list[object] = [message]
        while todo:
            node = todo.pop()
            if isinstance(node, list):
                todo.extend(node)
            elif isinstance(node, dict):
                todo.extend(self._inside(node))
            else:
                self.bytes += _text_bytes(node)

    def _inside(self, node: Mapping[str, object]) -> Iterator[object]:
        """Count one message or part; yield the content in it that is still to be walked."""
        media = self._media(node)
        for key, value in node.items():
            if key == "content":
                yield value
            elif key not in _LABELS and not (media and key in _PAYLOAD_KEYS):
                self.bytes += _text_bytes(value)

    def _media(self, part: Mapping[str, object]) -> bool:
        kind = _kind(part)
        if kind not in _MEDIA or _kind(part.get("source")) in {"text", "content"}:
            return False
        self.payloads += 1
        self.vision |= kind in _IMAGES
        self.audio |= kind == _AUDIO
        return True


def _kind(part: object) -> str:
    kind = part.get("type") if isinstance(part, dict) else None
    return kind if isinstance(kind, str) else ""


def _text_bytes(value: object) -> int:
    """Return the UTF-8 bytes of all strings and keys in *value*; a number counts as one token."""
    total, todo = 0, [value]
    while todo:
        node = todo.pop()
        if isinstance(node, str):
            total += _utf8(node)
        elif isinstance(node, list):
            todo.extend(node)
        elif isinstance(node, dict):
            todo.extend(node.keys())
            todo.extend(node.values())
        elif node is not None:
            total += _BYTES_PER_TOKEN
    return total


def _utf8(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def validate_chat(payload: Mapping[str, object]) -> None:
    """Refuse what the gateway itself must understand of a chat request and cannot. Raises InvalidRequest with `param`.

    Everything else (roles, kinds of parts, ranges) is the upstream's to judge, since upstreams differ.
    """
    validate_common(payload)
    for key in ("tools", "functions"):
        _check(payload, key, list, "an array")
    _check(payload, "response_format", dict, "an object")
    messages = payload.get("messages")
    if not isinstance(messages, list) or not messages:
        raise InvalidRequest("messages: a non-empty array is required", param="messages")
    for index, message in enumerate(messages):
        if not isinstance(message, dict):
            raise InvalidRequest(f"messages[{index}]: an object is required", param=f"messages[{index}]")
        if not isinstance(message.get("content"), str | list | None):
            where = f"messages[{index}].content"
            raise InvalidRequest(f"{where}: must be a string, an array or null", param=where)


def validate_common(payload: Mapping[str, object]) -> None:
    """Refuse wrong types of the fields that all generating routes share. Raises InvalidRequest with `param`."""
    _check(payload, "stream", bool, "a boolean")
    _check(payload, "stream_options", dict, "an object")
    for key in ("max_tokens", "max_completion_tokens"):
        if isinstance(payload.get(key), bool):
            raise InvalidRequest(f"{key}: must be a number or null", param=key)
        _check(payload, key, (int, float), "a number")


def _check(payload: Mapping[str, object], key: str, kind: type | tuple[type, ...], what: str) -> None:
    value = payload.get(key)
    if value is not None and not isinstance(value, kind):
        raise InvalidRequest(f"{key}: must be {what} or null", param=key)
