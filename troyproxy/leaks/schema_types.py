"""What types a JSON Schema allows. Only what coercion and validation need; an odd schema allows everything."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import Final

MAX_DEPTH: Final = 16
_NO_SCHEMA: Final[Mapping[str, object]] = {}
_SCALARS: Final = ((bool, "boolean"), (int, "integer"), (float, "number"), (str, "string"), (dict, "object"))

Types = frozenset[str]


def type_of(value: object) -> str:
    """Return the JSON type of a decoded value; whole numbers written as such are integers."""
    if value is None:
        return "null"
    return next((name for kind, name in _SCALARS if isinstance(value, kind)), "array")


@dataclass(frozen=True, slots=True)
class Schema:
    """A schema inside *root*, where local references point. *depth* bounds references and nesting.

    Types found are kept by node, so that a schema that refers to itself, or to one part often, costs no more.
    """

    node: Mapping[str, object] = field(default_factory=lambda: _NO_SCHEMA)
    root: Mapping[str, object] = field(default_factory=lambda: _NO_SCHEMA)
    depth: int = 0
    _found: dict[int, Types | None] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(cls, document: Mapping[str, object]) -> Schema:
        """Return the schema of a whole document."""
        return cls(document, document)

    def at(self, node: object) -> Schema:
        """Return a schema found inside this one, references followed; beyond the depth limit it allows everything."""
        depth = self.depth + 1
        while isinstance(node, Mapping) and isinstance(node.get("$ref"), str) and depth <= MAX_DEPTH:
            node, depth = _pointed(self.root, str(node["$ref"])), depth + 1
        if not isinstance(node, Mapping) or depth > MAX_DEPTH:
            node = _NO_SCHEMA
        return Schema(node, self.root, depth, self._found)

    def members(self, keyword: str) -> Iterator[Schema]:
        """Yield the schemas listed under *keyword* (``anyOf`` and its like)."""
        listed = self.node.get(keyword)
        for node in listed if isinstance(listed, list) else ():
            yield self.at(node)

    def parts(self) -> Iterator[Schema]:
        """Yield this schema and the members of its ``allOf``, all of which hold at once; none of them twice."""
        waiting, seen = [self], {id(self.node)}
        while waiting:
            part = waiting.pop()
            yield part
            members = [member for member in part.members("allOf") if id(member.node) not in seen]
            seen.update(id(member.node) for member in members)
            waiting.extend(reversed(members))

    def property(self, key: str) -> Schema | None:
        """Return the schema of a property of an object, or None where it is not declared."""
        for part in self.parts():
            properties = part.node.get("properties")
            if isinstance(properties, Mapping) and key in properties:
                return self.at(properties[key])
        return None

    def items(self) -> Schema:
        """Return the schema of the items of an array."""
        return self.at(self.node.get("items"))

    def required(self) -> frozenset[str]:
        """Return the names of the properties an object must have, those of ``allOf`` too."""
        return frozenset(key for part in self.parts() for key in part.own_required())

    def own_required(self) -> frozenset[str]:
        """Return the names listed under ``required`` here."""
        listed = self.node.get("required")
        return frozenset(key for key in listed if isinstance(key, str)) if isinstance(listed, list) else frozenset()

    def types(self) -> Types | None:
        """Return the allowed JSON types, or None where the schema does not say.

        ``type``, else the types of ``const``/``enum``, else the union over ``anyOf``/``oneOf``, cut with ``allOf``.
        ``number`` includes ``integer``.
        """
        key = id(self.node)
        if key not in self._found:
            self._found[key] = None  # what a schema says by way of itself says nothing
            self._found[key] = self._types()
        return self._found[key]

    def _types(self) -> Types | None:
        own = self.named_types() or self._listed() or self._united()
        every = [own, *(member.types() for member in self.members("allOf"))]
        known = [types for types in every if types is not None]
        return reduce(frozenset.intersection, known) if known else None

    def named_types(self) -> Types | None:
        """Return what ``type`` says, or None where it is missing or odd."""
        named = self.node.get("type")
        names = [named] if isinstance(named, str) else named
        if not isinstance(names, list) or not names:
            return None
        found = frozenset(name for name in names if isinstance(name, str))
        return found | {"integer"} if "number" in found else found

    def _listed(self) -> Types | None:
        if "const" in self.node:
            return frozenset({type_of(self.node["const"])})
        values = self.node.get("enum")
        return frozenset(map(type_of, values)) if isinstance(values, list) and values else None

    def _united(self) -> Types | None:
        branches = [member.types() for keyword in ("anyOf", "oneOf") for member in self.members(keyword)]
        known = [types for types in branches if types is not None]
        return frozenset[str]().union(*known) if branches and len(known) == len(branches) else None


def _pointed(root: Mapping[str, object], reference: str) -> object:
    """Follow a local reference (``#/$defs/name``); a foreign or broken one leads nowhere."""
    head, *steps = reference.split("/")
    node: object = root if head == "#" else None
    for step in steps:
        key = step.replace("~1", "/").replace("~0", "~")
        node = node.get(key) if isinstance(node, Mapping) else None
    return node
