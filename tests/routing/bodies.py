"""Request bodies that are JSON and otherwise anything, for properties of whoever reads them."""

from __future__ import annotations

from hypothesis import strategies as st

SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
KEYS = (
    st.sampled_from(["type", "content", "image_url", "source", "role", "text", "data", "input_audio", "file", "id"])
    | st.text()
)
KINDS = st.sampled_from(["image_url", "image", "input_audio", "document", "text", "tool_result"])
JSON = st.recursive(
    SCALARS | KINDS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4), max_leaves=20
)
FIELDS = st.sampled_from(
    [
        "messages",
        "tools",
        "functions",
        "stream",
        "stream_options",
        "response_format",
        "max_tokens",
        "prompt",
        "input",
        "max_completion_tokens",
        "reasoning",
        "reasoning_effort",
        "thinking",
    ]
)
BODIES = st.dictionaries(FIELDS, JSON | st.lists(st.dictionaries(KEYS, JSON, max_size=3), max_size=3))
MESSAGES = st.lists(
    st.fixed_dictionaries({"role": SCALARS, "content": st.text() | SCALARS})
    | st.dictionaries(KEYS, SCALARS, max_size=3)
    | SCALARS,
    max_size=3,
)
