"""A provider's entry laid over what is built in: the same for the config file and the database. No I/O."""

from __future__ import annotations

from dataclasses import replace

from troyproxy.catalog.providers import Auth, Origin, Provider
from troyproxy.settings.builtin import Builtin
from troyproxy.settings.checks import effective_auth
from troyproxy.settings.document import ProviderEntry

Target = tuple[str, Auth, frozenset[tuple[str, str]], str | None, str | None]


def target(provider: Provider) -> Target:
    """Return where a credential of *provider* goes, and how: a key that was given for one target is for no other.

    A proxy sees what is sent in the clear, and with a CA of its own the rest.
    """
    return provider.base_url, provider.auth, frozenset(provider.headers), provider.proxy, provider.ca_file


def merged(name: str, entry: ProviderEntry, builtin: Builtin | None, origin: Origin) -> Provider:
    """Return the provider that *entry* describes, without accounts and models. Headers and query are as written."""
    base = builtin.provider(name) if builtin is not None else Provider(id=name)
    said, accepts = entry.accepts, base.accepts
    return replace(
        base,
        base_url="" if entry.app is not None else entry.base_url or base.base_url,
        app=entry.app,
        aliases=(*base.aliases, *entry.aliases),
        auth=effective_auth(entry, builtin),
        headers=tuple(entry.headers.items()),
        query=tuple(entry.query.items()),
        default_model=entry.default_model or base.default_model,
        accepts=replace(
            accepts,
            stream_options=accepts.stream_options if said.stream_options is None else said.stream_options,
            effort=said.effort or accepts.effort,
        ),
        ca_file=entry.ca_file,
        proxy=entry.proxy,
        timeouts=entry.timeouts,
        max_inflight=entry.max_inflight,
        leak=entry.leak,
        origin=origin,
    )
