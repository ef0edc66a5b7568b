"""Which proxy the environment names."""

from __future__ import annotations

import pytest

from troyproxy.upstream.proxies import proxy_for

ENV = {"HTTPS_PROXY": "http://upper", "https_proxy": "http://lower", "NO_PROXY": "internal.example,127.0.0.1:9"}


@pytest.mark.parametrize(
    ("url", "env", "expected"),
    [
        ("https://api.example/v1", ENV, "http://lower"),
        ("http://api.example/v1", ENV, None),
        ("https://a.internal.example/v1", ENV, None),
        ("https://127.0.0.1:9/v1", ENV, None),
        ("https://u:p@127.0.0.1:9/v1", ENV, None),
        ("https://127.0.0.1:8/v1", ENV, "http://lower"),
        ("https://api.example/v1", {"ALL_PROXY": "http://all"}, "http://all"),
        ("https://api.example/v1", {"ALL_PROXY": "http://all", "no_proxy": "*"}, None),
        ("https://api.example/v1", {"HTTPS_PROXY": ""}, None),
        ("", ENV, None),
    ],
)
def test_the_environment_names_a_proxy_per_scheme_with_exceptions(
    url: str, env: dict[str, str], expected: str | None
) -> None:
    assert proxy_for(url, env) == expected
