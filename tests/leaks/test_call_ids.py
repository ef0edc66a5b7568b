from __future__ import annotations

import re
from itertools import product

from troyproxy.leaks.call_ids import call_id


def test_an_id_is_call_and_24_letters_and_digits() -> None:
    assert re.fullmatch(r"call_[A-Za-z0-9]{24}", call_id("chatcmpl-1", 0, 0))


def test_the_same_place_has_the_same_id() -> None:
    assert call_id("chatcmpl-1", 1, 2) == call_id("chatcmpl-1", 1, 2)


def test_another_place_has_another_id() -> None:
    places = list(product(["a", "b", "a1", "\ud800"], range(12), range(12)))
    assert len({call_id(*place) for place in places}) == len(places)


def test_an_id_that_the_conversation_has_already_is_not_given_again() -> None:
    first = call_id("chatcmpl-7", 0, 0)
    second = call_id("chatcmpl-7", 0, 0, {first})
    assert len({first, second, call_id("chatcmpl-7", 0, 0, {first, second})}) == 3
