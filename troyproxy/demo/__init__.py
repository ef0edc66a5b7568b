"""The demo provider: an OpenAI-shaped ASGI app with scripted faults. It needs no network, no key and no model.

It serves three masters: a person's first minutes with ``troyproxy serve``, the tests, and staging.
"""
