from __future__ import annotations

import pytest

from troyproxy.routing.inference import infer


@pytest.mark.parametrize(
    ("name", "provider"),
    [
        ("claude-x", "openrouter"),
        ("Gemini-2", "openrouter"),
        ("gpt-5", "openai"),
        ("deepseek-chat", "deepseek"),
        ("glm-4", "zai-cn"),
        ("my-Grok-2", "xai"),
        ("whatever", "openai"),
        ("", "openai"),
    ],
)
def test_a_bare_name_suggests_a_provider(name: str, provider: str) -> None:
    assert infer(name) == provider
