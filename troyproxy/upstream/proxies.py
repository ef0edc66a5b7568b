"""Which proxy the environment names for a URL."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit
from urllib.request import proxy_bypass_environment  # type: ignore[attr-defined]  # typeshed lacks it


def proxy_variables(env: Mapping[str, str]) -> dict[str, str]:
    """Return those of *env* that name proxies, to be asked again and again: os.environ decodes at each look."""
    return {name: value for name, value in env.items() if name.lower().endswith("_proxy")}


def proxy_for(url: str, env: Mapping[str, str]) -> str | None:
    """Return the proxy that *env* names for *url*, or None. Lower-case variables win, as in curl."""
    proxies = {
        name.lower().removesuffix("_proxy"): value
        for name, value in sorted(env.items())  # upper case sorts first, so lower case overrides it
        if name.lower().endswith("_proxy") and value
    }
    parts = urlsplit(url)
    if parts.hostname is None or proxy_bypass_environment(parts.netloc.rpartition("@")[2], proxies):
        return None
    return proxies.get(parts.scheme) or proxies.get("all")
