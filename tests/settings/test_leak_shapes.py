"""How the leak guard is configured: what may stand where, and what an error says."""

from __future__ import annotations

import pytest

from troyproxy.leaks.blocks import options_of
from troyproxy.leaks.options import Exhausted, Options, Scope, Strictness, Unrepairable, Validate
from troyproxy.settings import leak_shapes
from troyproxy.settings.report import Report, Wrong

WHOLE = {
    "on_unrepairable": "suppress",
    "on_exhausted": "repair",
    "strictness": "markers",
    "scope": "start",
    "formats": ["F03", "orphan"],
    "extra_openers": ["[Tool call]"],
    "echo_check": False,
    "orphan_closers": False,
    "scrub_when_none": True,
    "scrub_with_history": True,
    "coerce": False,
    "validate": "full",
    "limits": {"header": 128, "whole": 4096, "call": 8192},
    "repair_scope": "anywhere",
    "repair_exclude": ["rm"],
}


def test_every_option_of_the_block_becomes_its_value() -> None:
    block = leak_shapes.FILE.read(WHOLE, "leak", Report())
    assert block is not None
    assert options_of(block) == Options(
        on_unrepairable=Unrepairable.SUPPRESS,
        on_exhausted=Exhausted.REPAIR,
        strictness=Strictness.MARKERS,
        scope=Scope.START,
        formats=frozenset({"F03", "orphan"}),
        extra_openers=("[Tool call]",),
        echo_check=False,
        orphan_closers=False,
        scrub_when_none=True,
        scrub_with_history=True,
        coerce=False,
        validate=Validate.FULL,
        header_chars=128,
        whole_chars=4096,
        call_chars=8192,
        repair_scope=Scope.ANYWHERE,
        repair_exclude=frozenset({"rm"}),
    )


def test_what_was_read_is_written_as_plain_json_again() -> None:
    assert leak_shapes.as_written(leak_shapes.FILE.read(WHOLE, "leak", Report())) == WHOLE


@pytest.mark.parametrize("said", ["repair", False, {"mode": "failover", "scope": "start"}, {}])
def test_a_provider_says_a_mode_or_a_mapping(said: object) -> None:
    report = Report()
    leak_shapes.LEAK.read(said, "p.leak", report)
    assert report.problems == []


def test_every_problem_of_a_combo_is_told_with_its_place() -> None:
    with pytest.raises(Wrong) as raised:
        leak_shapes.check_leak({"mode": "loud", "scopes": "start"}, "config.leak")
    assert {place for place, _ in raised.value.problems} == {"config.leak.mode", "config.leak.scopes"}
