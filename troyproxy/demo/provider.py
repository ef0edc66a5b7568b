"""How the demo provider stands in the configuration: its provider entry and the combo ``demo``."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from troyproxy.catalog.combos import Combo, Member
from troyproxy.catalog.models import Capabilities, Limits, Model, Price, ToolCalls
from troyproxy.catalog.providers import NO_AUTH, Origin, Provider

PROVIDER: Final = "demo"
FIRST: Final = "fail-429-retry-1"
"""The first member of the combo: rate-limited for a second, every time."""
SECOND: Final = "chat"
MODELS: Final = (SECOND, FIRST, "ok", "slow", "leak")
"""What the model list shows; every other name of `faults` works too."""


def demo_model(name: str) -> Model:
    """Return what is known of a demo model: tools, reasoning and JSON; no images, no sound; free."""
    return Model(
        id=name,
        capabilities=Capabilities(tools=True, vision=False, reasoning=True, json=True, audio=False),
        limits=Limits(context=128_000, output=8_192),
        price=Price(input=0.0, output=0.0),
        tool_calls=ToolCalls.DRIFTS if name == "leak" else ToolCalls.RELIABLE,
    )


def demo_provider() -> Provider:
    """Return the provider: in process, no key."""
    return Provider(
        id=PROVIDER,
        auth=NO_AUTH,
        default_model=SECOND,
        models=MappingProxyType({name: demo_model(name) for name in MODELS}),
        declared=True,
        app="demo",
        origin=Origin.BUILTIN,
    )


def demo_combo() -> Combo:
    """Return the combo whose first member fails and whose second answers."""
    members = tuple(Member(model=f"{PROVIDER}/{name}") for name in (FIRST, SECOND))
    same = MappingProxyType({"allow_mixed_embeddings": True})  # its vectors come from the input alone
    return Combo(id=PROVIDER, name=PROVIDER, members=members, config=same, origin=Origin.BUILTIN)
