"""JSON in the shapes of chat bodies, and in any other."""

from __future__ import annotations

from hypothesis import strategies as st

NAMES = st.sampled_from(
    [
        "choices",
        "delta",
        "message",
        "content",
        "text",
        "index",
        "finish_reason",
        "error",
        "code",
        "usage",
        "data",
        "tools",
    ]
)
LEAVES = st.none() | st.booleans() | st.integers(-1, 600) | st.floats() | st.sampled_from(["", "x", "503", "error"])
JSON = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4))
