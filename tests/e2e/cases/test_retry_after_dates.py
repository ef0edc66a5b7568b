"""Field case RA-01: dates in Retry-After are GMT, whatever their spelling and wherever the gateway runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import Final

import pytest

from tests.e2e.cases.house import failed, provider
from tests.e2e.gateway import Gateway, chat, run_gateway
from tests.e2e.upstreams import Upstreams, error

VALID: Final[dict[str, Callable[[datetime], str]]] = {
    "IMF": lambda at: format_datetime(at, usegmt=True),
    "-0000": lambda at: format_datetime(at.replace(tzinfo=None)),
    "+0000": format_datetime,
    "asctime": lambda at: at.strftime("%a %b %d %H:%M:%S %Y"),
    "RFC 850": lambda at: at.strftime("%A, %d-%b-%y %H:%M:%S GMT"),
    "UTC": lambda at: at.strftime("%a, %d %b %Y %H:%M:%S UTC"),
    "no zone": lambda at: at.strftime("%a, %d %b %Y %H:%M:%S"),
}
PAST: Final = ("Wed, 21 Oct 2015 07:28:00 GMT", "Wed Oct 21 07:28:00 2015", "Thu, 01 Jan 1970 00:00:00 GMT")
ABSURD: Final = (
    "Wed, 21 Oct 99999 07:28:00 GMT",
    "Wed, 21 Oct 2026 07:28:00 +9999",
    "Wed, 32 Oct 2026 07:28:00 GMT",
    "Wed, 21 Oct 2026 25:61:00 GMT",
    "tomorrow",
    "Wed,",
    "0x10",
)


@pytest.fixture(scope="module", params=["Asia/Tokyo", "America/New_York"])
def gateway(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, upstreams: Upstreams
) -> Iterator[Gateway]:
    config = {"providers": {"alpha": provider(upstreams, "alpha")}}
    with run_gateway(tmp_path_factory.mktemp("zone"), config, TZ=request.param) as running:
        yield running


def locked_s(gateway: Gateway, upstreams: Upstreams, model: str, retry_after: str) -> float:
    """Return how long the model is left alone after a 429 with this header."""
    upstreams.script("alpha", error(429, "slow down", retry_after=retry_after), model=model)
    assert gateway.post(chat(f"alpha/{model}")).status == 429
    return float(failed(gateway, "alpha", model)[0]["cooldown_s"])


@pytest.mark.parametrize("form", VALID)
def test_ra_01_every_form_of_a_date_is_gmt(gateway: Gateway, upstreams: Upstreams, form: str) -> None:
    moment = datetime.fromtimestamp(int(time.time()) + 120, UTC)
    found = locked_s(gateway, upstreams, f"ra01-{list(VALID).index(form)}", VALID[form](moment))
    assert found == pytest.approx(120, abs=4)


@pytest.mark.parametrize("number", range(len(PAST)))
def test_ra_01_a_date_in_the_past_is_the_minimum(gateway: Gateway, upstreams: Upstreams, number: int) -> None:
    assert locked_s(gateway, upstreams, f"ra01-past-{number}", PAST[number]) == 1


@pytest.mark.parametrize("number", range(len(ABSURD)))
def test_ra_01_an_absurd_date_is_the_default(gateway: Gateway, upstreams: Upstreams, number: int) -> None:
    assert 1.8 <= locked_s(gateway, upstreams, f"ra01-absurd-{number}", ABSURD[number]) <= 2.2
