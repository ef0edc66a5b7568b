"""What `/metrics` asks for at each scrape, of a whole gateway."""

from __future__ import annotations

import pytest

from tests.api.house import House

pytestmark = pytest.mark.anyio


async def samples(house: House, name: str) -> dict[str, float]:
    """Return the samples of ``troyproxy_<name>``, by their labels as they stand there."""
    text = (await house.ask("GET", "/metrics")).body.decode()
    lines = (line.rpartition(" ") for line in text.split("\n") if line.startswith(f"troyproxy_{name}"))
    return {labels.removeprefix(f"troyproxy_{name}"): float(value) for labels, _, value in lines}


async def test_each_configured_account_has_a_cooldown_of_0_seconds_until_it_is_locked(house: House) -> None:
    """Otherwise nobody could tell whether all accounts of a provider are locked."""
    shown = await samples(house, "cooldown_remaining_seconds")
    accounts = (("alpha", "team-a"), ("alpha", "team-b"))
    assert {shown[f'{{account="{name}",provider="{provider}"}}'] for provider, name in accounts} == {0.0}


async def test_the_configuration_has_no_age_while_it_is_the_newest(house: House) -> None:
    assert (await samples(house, "config_age_seconds"))[""] == 0.0


async def test_a_configuration_that_refuses_a_change_grows_old(house: House) -> None:
    house.file.write_text("providers: 1\n", encoding="utf-8")
    assert (await house.ask("POST", "/api/config/reload")).status == 422
    house.clock.move(400.0)
    await house.services.snapshots.look()
    assert (await samples(house, "config_age_seconds"))[""] == 400.0
