"""What a request needs of whoever serves it, read from the parsed body. Never from its text: a message may talk about
``image_url`` without showing an image. Total over any JSON: wrong types are InvalidRequest in the validators and are
ignored by `needs_of`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import msgspec

from troyproxy.errors import InvalidRequest

PAYLOAD_TOKENS: Final = 1000
"""What one inline image, audio or file is charged in the estimate, whatever its bytes."""

_BYTES_PER_TOKEN: Final = 4
_IMAGES: Final = frozenset({"image_url", "input_image", "image"})
_AUDIO: Final = "input_audio"
_FILES: Final = frozenset({"file", "input_file", "document", "audio", "video", "video_url", "input_video"})
_MEDIA: Final = _IMAGES | _FILES | {_AUDIO}
_PAYLOAD_KEYS: Final = _MEDIA | {"source", "data", "file_data", "file_url", "url", "b64_json"}
TOOL_KEYS: Final = ("tools", "functions")
_TEXTS: Final = (*TOOL_KEYS, "prompt", "input")
"""Members beside the messages whose text is counted."""
_MANY: Final = 64
"""Lists of tools whose size is kept, at most."""
_LONG: Final = 1 << 17
"""Bytes of the longest one."""
_NUMBER: Final = ((int, float), "a number")
_OF_ALL: Final[Mapping[str, tuple[tuple[type, ...], str]]] = {
    "stream": ((bool,), "a boolean"),
    "stream_options": ((dict,), "an object"),
    "max_tokens": _NUMBER,
    "max_completion_tokens": _NUMBER,
}
_OF_CHAT: Final[Mapping[str, tuple[tuple[type, ...], str]]] = {
    **_OF_ALL,
    "tools": ((list,), "an array"),
    "functions": ((list,), "an array"),
    "response_format": ((dict,), "an object"),
}
"""Types of members that the gateway itself reads, and what they are called."""
_SPECIAL: Final = (frozenset(_OF_CHAT) | frozenset(_TEXTS)) - {"stream"}
"""Members beside the messages that are checked or counted."""
_LABELS: Final = frozenset({"role", "type", "id", "tool_call_id"})
"""Members of messages and parts that are structure, not text."""


class Needs(msgspec.Struct, frozen=True, gc=False):
    """The needs of one request."""

    tools: bool = False
    vision: bool = False
    json: bool = False
    audio: bool = False
    est_tokens: int = 0
    """Estimated input tokens: UTF-8 bytes of the text / 4, plus 1,000 for each inline payload."""
    max_output: int | None = None
    """The longest answer asked for, in tokens."""


Size = Callable[[object], int]


class Sizes:
    """The bytes of the texts in tools, kept by how they are written: agents send the same tools with every request."""

    def __init__(self) -> None:
        self._known: dict[bytes, int] = {}

    def of(self, value: object) -> int:
        """Return what `text_bytes` does."""
        try:
            written = msgspec.json.encode(value)
        except (UnicodeEncodeError, OverflowError, RecursionError):
            return text_bytes(value)
        size = self._known.get(written)
        if size is None:
            size = text_bytes(value)
            if len(written) <= _LONG and b"null" not in written:  # NaN is written as null, too
                if len(self._known) >= _MANY:
                    self._known.clear()
                self._known[written] = size
        return size


def plain_needs(payload: Mapping[str, object]) -> Needs | None:
    """Return what `needs_of` does, of a chat request as most are, which `validate_chat` passes; None of any other.

    One look for both: nothing but a role and a text in each message, and nothing beside them that matters.
    """
    messages, size = payload.get("messages"), 0
    if not messages or messages.__class__ is not list or not _SPECIAL.isdisjoint(payload):
        return None
    if "stream" in payload and payload["stream"].__class__ is not bool:
        return None
    for message in messages:
        if message.__class__ is not dict or len(message) != 2 or "role" not in message or "content" not in message:
            return None
        content = message["content"]
        if content.__class__ is not str:
            return None
        size += len(content) if content.isascii() else _utf8(content)
    return Needs(est_tokens=-(-size // _BYTES_PER_TOKEN))


def needs_of(payload: Mapping[str, object], tool_bytes: Size | None = None) -> Needs:
    """Return the needs of a chat, completion or embedding request. Never raises. *tool_bytes*: `Sizes.of`."""
    scan = _Scan()
    messages = payload.get("messages")
    if isinstance(messages, list):
        scan.messages(messages)
    size = scan.bytes
    for key in _TEXTS:
        if key in payload:
            size += (tool_bytes if tool_bytes is not None and key in TOOL_KEYS else text_bytes)(payload[key])
    return Needs(
        tools=("tools" in payload or "functions" in payload) and wants_tools(payload),
        vision=scan.vision,
        json="response_format" in payload and _kind(payload["response_format"]) == "json_schema",
        audio=scan.audio,
        est_tokens=-(-size // _BYTES_PER_TOKEN) + PAYLOAD_TOKENS * scan.payloads,
        max_output=_max_output(payload),
    )


def wants_tools(payload: Mapping[str, object]) -> bool:
    """Whether the request offers tools: a non-empty ``tools`` or ``functions`` array, whatever ``tool_choice`` says."""
    tools, functions = payload.get("tools"), payload.get("functions")
    return bool((tools and isinstance(tools, list)) or (functions and isinstance(functions, list)))


def as_tokens(value: object) -> int | None:
    """Return a positive whole number of tokens, or None for what is none (a boolean, NaN, a string, 0)."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 1 <= value < math.inf:
        return None
    return int(value)


def _max_output(payload: Mapping[str, object]) -> int | None:
    for key in ("max_completion_tokens", "max_tokens"):
        if key in payload and payload[key] is not None:
            return as_tokens(payload[key])
    return None


class _Scan:
    """Totals of a walk over ``messages``."""

    __slots__ = ("audio", "bytes", "payloads", "vision")

    def __init__(self) -> None:
        self.bytes = self.payloads = 0
        self.vision = self.audio = False

    def messages(self, messages: list[Any]) -> None:
        """Walk every message; its ``content``, and content inside parts, is searched for media."""
        for message in messages:
            if message.__class__ is not dict:
                continue
            content = message.get("content")
            if content.__class__ is str and "role" in message and len(message) == 2:  # as most are
                self.bytes += len(content) if content.isascii() else _utf8(content)
            else:
                self._message(message)

    def _message(self, message: Mapping[str, object]) -> None:
        """Count one message of any kind."""
        if "type" in message:  # it may be a part by itself
            self._content([message])
            return
        for key, value in message.items():
            if value is None or key in _LABELS:
                continue
            if value.__class__ is str:
                self.bytes += _utf8(value)
            elif key == "content":
                self._content([value])
            else:
                self.bytes += text_bytes(value)

    def _content(self, todo: list[object]) -> None:
        """Walk what is *todo* without recursion: JSON may nest deeper than the stack."""
        while todo:
            node = todo.pop()
            if isinstance(node, list):
                todo.extend(node)
            elif isinstance(node, dict):
                todo.extend(self._inside(node))
            else:
                self.bytes += text_bytes(node)

    def _inside(self, node: Mapping[str, object]) -> Iterator[object]:
        """Count one message or part; yield the content in it that is still to be walked."""
        media = self._media(node)
        for key, value in node.items():
            if key == "content":
                yield value
            elif key not in _LABELS and not (media and key in _PAYLOAD_KEYS):
                self.bytes += text_bytes(value)

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


def text_bytes(value: object) -> int:
    """Return the UTF-8 bytes of all strings and keys in *value*; a number counts as one token."""
    texts: list[str] = []
    numbers = 0
    todo: list[Any] = [value]  # Any: their classes are looked at, in the cheapest way there is
    for node in todo:  # which grows meanwhile
        kind = node.__class__
        if kind is str:
            texts.append(node)
        elif kind is dict:
            texts += node
            todo += node.values()
        elif kind is list:
            todo += node
        elif node is not None:
            numbers += 1
    return _utf8("".join(texts)) + _BYTES_PER_TOKEN * numbers


def _utf8(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def validate_chat(payload: Mapping[str, object]) -> None:
    """Refuse what the gateway itself must understand of a chat request and cannot. Raises InvalidRequest with `param`.

    Everything else (roles, kinds of parts, ranges) is the upstream's to judge, since upstreams differ.
    """
    _check(payload, _OF_CHAT)
    messages = payload.get("messages")
    if not isinstance(messages, list) or not messages:
        raise InvalidRequest("messages: a non-empty array is required", param="messages")
    for index, message in enumerate(messages):
        if message.__class__ is not dict:
            raise InvalidRequest(f"messages[{index}]: an object is required", param=f"messages[{index}]")
        content = message.get("content")
        if content.__class__ is not str and content is not None and not isinstance(content, list):
            where = f"messages[{index}].content"
            raise InvalidRequest(f"{where}: must be a string, an array or null", param=where)


def validate_common(payload: Mapping[str, object]) -> None:
    """Refuse wrong types of the fields that all generating routes share. Raises InvalidRequest with `param`."""
    _check(payload, _OF_ALL)


def _check(payload: Mapping[str, object], fields: Mapping[str, tuple[tuple[type, ...], str]]) -> None:
    """Refuse the first of *fields* that is there with another type; a boolean is no number."""
    for key in fields:
        if key in payload and payload[key] is not None:
            kinds, what = fields[key]
            value = payload[key]
            if not isinstance(value, kinds) or (isinstance(value, bool) and what == "a number"):
                raise InvalidRequest(f"{key}: must be {what} or null", param=key)
