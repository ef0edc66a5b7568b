"""Adapters of `ports.Upstream`: over pooled connections of our own, an httpx transport, into an ASGI app in process.

No policy, and no clock but the time to connect.
"""
