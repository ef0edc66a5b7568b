"""The JSON Schema of the config file, for editors. Made of the shapes that read the file: no second truth."""

from __future__ import annotations

from troyproxy.settings.sections import DOCUMENT


def json_schema() -> dict[str, object]:
    """Return the schema (draft 2020-12) of ``troyproxy.yaml``.

    It is a little wider than the reader: names, cross references and what an environment variable holds are checked at
    the start only.
    """
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "troyproxy.yaml",
        **DOCUMENT.schema,
    }
