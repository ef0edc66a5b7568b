"""A strict reader of YAML: safe tags only, no duplicate keys, no aliases, bounded size and depth.

Errors name the line, never the text: a broken line may hold a secret.
"""

from __future__ import annotations

from typing import Final

import yaml

from troyproxy.errors import ConfigError

MAX_BYTES: Final = 1 << 20
_MAX_DEPTH: Final = 30


class _Refused(yaml.MarkedYAMLError):
    """A construct that YAML allows and this reader does not."""

    def __init__(self, problem: str, mark: object) -> None:
        super().__init__(problem=problem, problem_mark=mark)  # type: ignore[arg-type]  # two classes of marks


class _Loader(yaml.SafeLoader):
    """`yaml.SafeLoader` that refuses what makes a file mean something else than it seems to."""

    depth = 0

    def compose_node(self, parent: yaml.Node | None, index: object) -> yaml.Node | None:
        """Compose one node. Aliases are refused: nested ones grow a small file without bound."""
        event = self.peek_event()  # type: ignore[no-untyped-call]  # the stub has no types here
        if isinstance(event, yaml.AliasEvent):
            raise _Refused("aliases (*name) are not read", event.start_mark)
        if self.depth >= _MAX_DEPTH:
            raise _Refused("nested too deeply", event.start_mark)
        self.depth += 1
        try:
            return super().compose_node(parent, index)  # type: ignore[arg-type]  # the stub knows integers only
        finally:
            self.depth -= 1

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[object, object]:  # noqa: FBT001, FBT002 -- PyYAML's signature
        """Construct a mapping whose keys are different texts."""
        seen: dict[object, int] = {}
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, str):
                raise _Refused("a key is no text (put it in quotes)", key_node.start_mark)
            if key in seen:
                raise _Refused(f"the key {key[:60]} stands here and in line {seen[key]}", key_node.start_mark)
            seen[key] = key_node.start_mark.line + 1
        return super().construct_mapping(node, deep=deep)


def read_yaml(raw: bytes, source: str) -> object:
    """Return the decoded value of *raw*, None for an empty file. *source* names it. Raises ConfigError."""
    if len(raw) > MAX_BYTES:
        raise ConfigError(f"{source}: is larger than {MAX_BYTES} bytes")
    try:
        return _load(raw.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise ConfigError(f"{source}: is not UTF-8 text (byte {error.start})") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark is not None else ""
        raise ConfigError(f"{source}: {place}{error.problem or error.context}") from None
    except (yaml.YAMLError, ValueError, OverflowError):
        # A character that YAML forbids, or an impossible date or number; the library's text quotes it.
        raise ConfigError(
            f"{source}: is not readable as YAML (a character, date or number that YAML refuses)"
        ) from None


def _load(text: str) -> object:
    loader = _Loader(text)
    try:
        return loader.get_single_data()
    finally:
        loader.dispose()
