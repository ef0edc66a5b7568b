"""Cost is exact where prices are known and None where they are not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troyproxy.accounting.price import cost_usd
from troyproxy.accounting.usage import Usage

MILLION = 1_000_000


def test_prices_are_per_million_tokens() -> None:
    assert cost_usd(Usage(MILLION, 2 * MILLION), 3.0, 15.0, None) == 33.0


def test_cached_tokens_have_their_own_price() -> None:
    assert cost_usd(Usage(2 * MILLION, 0, cached=MILLION), 3.0, 15.0, 0.3) == pytest.approx(3.3)


def test_cached_tokens_cost_the_input_price_when_no_other_is_known() -> None:
    assert cost_usd(Usage(2 * MILLION, 0, cached=MILLION), 3.0, 15.0, None) == 6.0


def test_free_is_known() -> None:
    assert cost_usd(Usage(5, 5), 0.0, 0.0, None) == 0.0


@pytest.mark.parametrize(("input_price", "output_price"), [(None, 1.0), (1.0, None), (None, None)])
def test_an_unknown_price_gives_no_cost(input_price: float | None, output_price: float | None) -> None:
    assert cost_usd(Usage(1, 1), input_price, output_price, None) is None


def test_embeddings_need_no_output_price() -> None:
    assert cost_usd(Usage(MILLION), 0.1, None, None) == pytest.approx(0.1)


@given(st.builds(Usage, *[st.integers(0, 10**12)] * 3), st.floats(0, 100), st.floats(0, 100), st.floats(0, 100))
def test_a_cost_is_never_negative(usage: Usage, price_in: float, price_out: float, price_cached: float) -> None:
    cost = cost_usd(usage, price_in, price_out, price_cached)
    assert cost is not None
    assert cost >= 0
