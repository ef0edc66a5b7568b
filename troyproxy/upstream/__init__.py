"""Adapters of `ports.Upstream`: over an httpx transport, and into an ASGI app of this process.

No policy, and no clock but the time to connect.
"""
