from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.proxy.rig import Rig, provider
from troyproxy.catalog.providers import NO_AUTH, Provider
from troyproxy.proxy.pairs import Pairs, somebody_behind
from troyproxy.routing.members import Candidate, candidate_of

PROVIDERS = {
    "two accounts": provider("alpha", "m1", accounts="AB"),
    "one": provider("beta", "m1"),
    "no account": provider("gamma", "m1", accounts=""),
    "needs none": Provider("delta", "http://127.0.0.1/v1", auth=NO_AUTH),
}
KINDS = st.lists(st.sampled_from([*PROVIDERS, "unknown"]), min_size=1, max_size=5)


def _candidate(kind: str) -> Candidate:
    return candidate_of(PROVIDERS[kind], "m1") if kind in PROVIDERS else Candidate("unknown/m1", None, "m1")


@settings(deadline=None)
@given(KINDS, st.integers(0, 4))
def test_where_nothing_bars_anybody_the_short_question_has_the_answer_of_the_long_one(
    kinds: list[str], at: int
) -> None:
    rig, candidates = Rig(), tuple(map(_candidate, kinds))
    others = Pairs(rig.gear, candidates).others(at, second=False)
    assert somebody_behind(candidates, at, rig.clock.now()) == (others > 0)


def test_counting_the_others_ends_where_more_do_not_matter() -> None:
    rig, candidates = Rig(), tuple(_candidate("one") for _ in range(5))
    pairs = Pairs(rig.gear, candidates)
    assert [pairs.others(0, second=False, most=most) for most in (1, 3, None)] == [1, 3, 4]
