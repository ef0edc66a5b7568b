from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from troyproxy.leaks.arming import asked
from troyproxy.leaks.options import Options

TOOL = {"type": "function", "function": {"name": "get_weather"}}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["", "none", "name", "x"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["name", "type", "function", "custom"]), inner, max_size=3)
    ),
)


def armed(payload: Any) -> frozenset[str] | None:  # noqa: ANN401 -- any JSON
    """Return the names that arm the guard; None: it is off."""
    found = asked(payload)
    return found.names if found else None


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


def test_what_a_request_tells_the_guard() -> None:
    schema = {"type": "object"}
    tool = {"type": "function", "function": {"name": "get_weather", "parameters": schema}}
    choice = {"type": "function", "function": {"name": "get_weather"}}
    extra = {"parallel_tool_calls": False, "response_format": {"type": "json_schema"}, "tool_choice": choice}
    found = asked({"tools": [tool, TOOL], **extra})
    assert found is not None
    assert (found.schemas, found.forced, found.parallel) == ({"get_weather": schema}, "get_weather", False)
    assert (found.json_answer, found.only_special, found.legacy) == (True, False, False)


@pytest.mark.parametrize(
    ("fields", "forced"),
    [
        ({"tools": [TOOL], "tool_choice": "required"}, None),
        ({"tools": [TOOL], "tool_choice": {"type": "custom", "custom": {"name": "grep"}}}, "grep"),
        ({"tools": [TOOL], "tool_choice": {"type": "function", "name": "flat"}}, "flat"),
        ({"functions": [{"name": "old"}], "function_call": {"name": "old"}}, "old"),
    ],
)
def test_a_forced_tool_is_named(fields: dict[str, Any], forced: str | None) -> None:
    found = asked(fields)
    assert found is not None
    assert (found.forced, found.legacy) == (forced, "functions" in fields)


def test_tools_that_must_not_be_called_arm_it_for_special_tokens_if_wished() -> None:
    payload = {"tools": [TOOL], "tool_choice": "none"}
    found = asked(payload, Options(scrub_when_none=True))
    assert found is not None
    assert (found.names, found.only_special, found.known_only) == (frozenset({"get_weather"}), True, False)
    assert asked(payload, Options(scrub_with_history=True)) is None


HISTORY: dict[str, Any] = {
    "messages": [
        3,
        {"role": "assistant", "tool_calls": [TOOL, 3]},
        {"role": "assistant", "function_call": {"name": "old"}},
        {"role": "tool", "name": "grep"},
        {"role": "user", "name": "Ada"},
    ]
}


def test_a_history_with_calls_arms_it_for_their_special_tokens_if_wished() -> None:
    found = asked(HISTORY, Options(scrub_with_history=True))
    assert found is not None
    assert (found.names, found.only_special, found.known_only) == (
        frozenset({"get_weather", "old", "grep"}),
        True,
        True,
    )
    assert asked(HISTORY) is None
    assert asked({"messages": []}, Options(scrub_with_history=True)) is None


FUNCTION = {"type": "function", "function": {"name": "old"}}
CUSTOM = {"type": "custom", "custom": {"name": "grep"}}


@pytest.mark.parametrize(
    ("choice", "barred"),
    [
        ("auto", {"grep"}),
        ({"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [TOOL]}}, {"grep", "old"}),
        ({"type": "allowed_tools", "mode": "auto", "tools": [TOOL["function"], FUNCTION]}, {"grep"}),
        ({"type": "allowed_tools", "allowed_tools": {"tools": 3}}, {"get_weather", "grep", "old"}),
    ],
)
def test_custom_tools_and_those_that_are_not_allowed_are_declared_and_barred(choice: object, barred: set[str]) -> None:
    found = asked({"tools": [TOOL, FUNCTION, CUSTOM, 3], "tool_choice": choice})
    assert found is not None
    assert found.barred == barred
    assert found.names == {"get_weather", "old", "grep"}
