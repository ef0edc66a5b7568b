"""A leaked call taken out of a text that is kept, not sent: a history, a log."""

from __future__ import annotations

from troyproxy.leaks.formats import CLASSIC_MARKERS, canonical

__all__ = ["strip_textual_tool_call"]


def strip_textual_tool_call(text: str) -> str:
    """Return the empty string when *text* starts with a marker of a textual tool call, else *text*.

    For copies that are kept (history, logs). Seven markers, after leading blanks, in any case; neither the tool's
    name nor what follows is looked at, so call it only where tools were offered.
    """
    return "" if canonical(text).lstrip().startswith(CLASSIC_MARKERS) else text
