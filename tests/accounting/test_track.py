"""The running record of one candidate: windows, bounds, figures."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troyproxy.accounting.track import SAMPLES, Measures, Track, quantile

NOW = 1_700_000_000.0
HOUR, DAY = 3600.0, 86_400.0


def tracked(*attempts: tuple[float, bool | None, float | None]) -> Track:
    track = Track()
    for at, ok, latency_ms in attempts:
        track.note(at, ok=ok, latency_ms=latency_ms)
    return track


def test_nothing_measured_is_unknown() -> None:
    assert Track().measures(NOW) == Measures()
    assert Measures().error_rate is None


def test_requests_count_for_sixty_minutes() -> None:
    track = tracked((NOW - HOUR - 60, True, None), (NOW - HOUR + 120, True, None), (NOW, None, None))
    assert track.measures(NOW).recent == 2
    assert track.measures(NOW).last_used_at == NOW


def test_successes_count_for_a_day() -> None:
    track = tracked((NOW - DAY - HOUR, True, None), (NOW - HOUR, True, None), (NOW, False, None), (NOW, None, None))
    assert track.measures(NOW).success_rate == 0.5
    assert track.measures(NOW).error_rate == 0.5


def test_latencies_of_successes_have_their_quantiles_and_spread() -> None:
    track = tracked(*((NOW, True, float(ms)) for ms in range(1, 101)), (NOW, False, 9999.0), (NOW, True, math.nan))
    found = track.measures(NOW)
    assert (found.samples, found.p50_ms, found.p95_ms) == (100, 50.0, 95.0)
    assert found.sigma_ms == pytest.approx(28.866, abs=1e-3)


def test_latencies_of_more_than_a_day_ago_are_forgotten() -> None:
    assert tracked((NOW - DAY - 1, True, 5.0), (NOW, True, 7.0)).measures(NOW).p50_ms == 7.0


def test_figures_are_reckoned_at_most_once_a_second() -> None:
    track = tracked((NOW, True, 5.0))
    before = track.measures(NOW)
    track.note(NOW, ok=True, latency_ms=9.0)
    assert track.measures(NOW + 0.9) is before
    assert track.measures(NOW + 1.0).samples == 2


def test_figures_of_which_nothing_is_new_are_good_for_a_minute() -> None:
    track = tracked((NOW, True, 5.0))
    before = track.measures(NOW)
    assert track.measures(NOW + 59.0) is before
    assert track.measures(NOW + 60.0) is not before


def test_a_clock_that_went_back_does_not_keep_old_figures() -> None:
    track = tracked((NOW, True, 5.0))
    before = track.measures(NOW)
    assert track.measures(NOW - 5) is not before


def test_a_late_attempt_counts_with_the_newest_minute() -> None:
    assert tracked((NOW, True, None), (NOW - 120, True, None)).measures(NOW).recent == 2


def test_the_quantile_of_nothing_is_nothing() -> None:
    assert quantile([], 0.5) is None
    assert quantile([3.0], 0.95) == 3.0


@given(st.lists(st.tuples(st.floats(0, 3000), st.sampled_from([True, False, None]), st.floats(0, 1e6)), max_size=400))
def test_a_track_is_bounded_and_its_figures_are_sane(steps: list[tuple[float, bool | None, float]]) -> None:
    track, now = Track(), NOW
    for gap_s, ok, latency_ms in steps:
        now += gap_s
        track.note(now, ok=ok, latency_ms=latency_ms)
    found = track.measures(now)
    assert found.samples <= SAMPLES
    assert 0 <= found.recent <= len(steps)
    assert found.success_rate is None or 0 <= found.success_rate <= 1
    assert found.p50_ms is None or found.p95_ms is None or found.p50_ms <= found.p95_ms


def test_the_newest_attempt_is_told_at_once() -> None:
    track = tracked((NOW, True, None))
    track.note(NOW + 0.5, ok=None)
    assert (track.last_used_at, track.recent(NOW + 0.5)) == (NOW + 0.5, 2)
