from __future__ import annotations

import pytest
from hypothesis import given

from tests.routing.bodies import BODIES, MESSAGES
from troyproxy.routing.needs import Needs, needs_of, plain_needs, validate_chat


@given(BODIES, MESSAGES)
def test_what_is_plain_at_a_glance_is_so_on_a_close_look(body: dict[str, object], messages: list[object]) -> None:
    for asked in (body, {"messages": messages}, {**body, "messages": messages}):
        glanced = plain_needs(asked)
        if glanced is not None:
            validate_chat(asked)
            assert glanced == needs_of(asked)


def test_most_requests_are_plain() -> None:
    messages = [{"role": "system", "content": "a"}, {"role": "user", "content": "b\u00e9\ud83d"}]
    assert plain_needs({"model": "m", "temperature": 1, "stream": True, "messages": messages}) == Needs(est_tokens=2)


@pytest.mark.parametrize(
    "odd",
    [
        {"stream": 1},
        {"max_tokens": 5},
        {"messages": []},
        {"messages": ["hello"]},
        {"messages": [{"role": "user", "content": None}]},
        {"messages": [{"content": "x", "type": "text"}]},
    ],
)
def test_whatever_has_to_be_looked_at_is_not_plain(odd: dict[str, object]) -> None:
    assert plain_needs({"messages": [{"role": "user", "content": "x"}], **odd}) is None
