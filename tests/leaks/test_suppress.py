"""A leaked call taken out of a text that is kept."""

from __future__ import annotations

import pytest

from troyproxy.leaks.formats import CLASSIC_MARKERS
from troyproxy.leaks.suppress import strip_textual_tool_call


@pytest.mark.parametrize("marker", CLASSIC_MARKERS)
def test_a_kept_copy_that_starts_with_a_marker_becomes_empty(marker: str) -> None:
    assert strip_textual_tool_call(f"\n {marker.upper()} anything") == ""


@pytest.mark.parametrize("text", ["", "Hello", "Use <tool_call> here", "<f, g>"])
def test_any_other_copy_stays_as_it_is(text: str) -> None:
    assert strip_textual_tool_call(text) == text
