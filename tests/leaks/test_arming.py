from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from troyproxy.leaks.arming import armed

TOOL = {"type": "function", "function": {"name": "get_weather"}}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["", "none", "name", "x"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["name", "type", "function", "custom"]), inner, max_size=3)
    ),
)


@pytest.mark.parametrize(
    ("payload", "names"),
    [
        ({"tools": [TOOL]}, {"get_weather"}),
        ({"tools": [TOOL], "tool_choice": "auto"}, {"get_weather"}),
        ({"tools": [TOOL], "tool_choice": {"type": "function", "function": {"name": "get_weather"}}}, {"get_weather"}),
        ({"functions": [{"name": "old"}]}, {"old"}),
        ({"tools": [], "functions": [{"name": "old"}]}, {"old"}),
        ({"tools": [{"type": "custom", "custom": {"name": "grep"}}]}, {"grep"}),
        ({"tools": [{"type": "web_search"}, 7, {"function": {"name": 3}}]}, set()),
    ],
)
def test_offered_tools_arm_the_guard(payload: dict[str, Any], names: set[str]) -> None:
    assert armed(payload) == frozenset(names)


@pytest.mark.parametrize(
    "payload",
    [
        {},
        {"tools": []},
        {"tools": None},
        {"tools": {"get_weather": {}}},
        {"tools": [TOOL], "tool_choice": "none"},
        {"tools": [TOOL], "tool_choice": {"type": "none"}},
        {"functions": [{"name": "old"}], "function_call": "none"},
        [],
        None,
    ],
)
def test_without_a_possible_call_the_guard_is_off(payload: dict[str, Any]) -> None:
    assert armed(payload) is None


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.fixed_dictionaries({}, optional={"tools": JSON, "functions": JSON, "tool_choice": JSON}))
def test_odd_shapes_never_raise(payload: dict[str, Any]) -> None:
    names = armed(payload)
    assert names is None or all(isinstance(name, str) for name in names)
