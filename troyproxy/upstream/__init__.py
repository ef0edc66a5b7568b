"""Adapters of `ports.Upstream`: over an httpx transport, and into an ASGI app of this process. No policy, no clocks."""
