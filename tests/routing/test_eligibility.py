from __future__ import annotations

import pytest

from tests.routing.builders import candidate, combo, model, provider, snapshot
from troyproxy.catalog.models import Capabilities, Model
from troyproxy.routing.eligibility import Skip, SkipReason, embedding_model, model_name, room_needed, shortfall
from troyproxy.routing.members import Candidate, Group, candidate_of, expand
from troyproxy.routing.needs import Needs


def having(capability: str, *, value: bool) -> Candidate:
    """A candidate of which one capability is known."""
    return candidate(Model("m", Capabilities(**{capability: value})))


REASONS = [
    (Needs(tools=True), "tools", SkipReason.NO_TOOLS),
    (Needs(vision=True), "vision", SkipReason.NO_VISION),
    (Needs(json=True), "json", SkipReason.NO_JSON),
    (Needs(audio=True), "audio", SkipReason.NO_AUDIO),
]


@pytest.mark.parametrize(("needs", "capability", "reason"), REASONS)
def test_a_missing_capability_that_is_needed_is_the_reason(needs: Needs, capability: str, reason: SkipReason) -> None:
    lacking = having(capability, value=False)
    assert shortfall(lacking, needs, deny_unknown=False) is reason


@pytest.mark.parametrize(("needs", "capability", "reason"), REASONS)
def test_a_missing_capability_that_is_not_needed_is_no_reason(
    needs: Needs, capability: str, reason: SkipReason
) -> None:
    assert shortfall(having(capability, value=False), Needs(), deny_unknown=True) is None
    assert shortfall(having(capability, value=True), needs, deny_unknown=True) is not reason


@pytest.mark.parametrize(("needs", "capability", "reason"), REASONS)
def test_an_unknown_capability_passes_unless_denied(needs: Needs, capability: str, reason: SkipReason) -> None:
    unknown = candidate(model("m"))
    assert shortfall(unknown, needs, deny_unknown=False) is None
    assert shortfall(unknown, needs, deny_unknown=True) is reason


def test_a_member_without_a_provider_is_unknown() -> None:
    lost = Candidate("nosuch/x", None, "")
    assert shortfall(lost, Needs(), deny_unknown=False) is SkipReason.UNKNOWN_PROVIDER


@pytest.mark.parametrize(
    ("context", "output", "estimate", "asked", "skipped"),
    [
        (100, None, 100, None, False),
        (100, None, 101, None, True),
        (100, None, 60, 41, True),
        (100, 30, 60, 1000, False),
        (100, 41, 60, 1000, True),
        (None, 10, 10**9, 10**9, False),
    ],
)
def test_the_window_holds_the_estimate_and_the_output_the_member_can_give(
    context: int | None, output: int | None, estimate: int, asked: int | None, *, skipped: bool
) -> None:
    needs = Needs(est_tokens=estimate, max_output=asked)
    reason = shortfall(candidate(model("m", context=context, output=output)), needs, deny_unknown=True)
    assert reason is (SkipReason.CONTEXT if skipped else None)


def test_the_room_needed_is_estimate_plus_clamped_output() -> None:
    assert room_needed(candidate(model("m", output=5)), Needs(est_tokens=7, max_output=9)) == 12


def test_the_reasons_are_those_of_the_design() -> None:
    written = (
        "no-tools no-vision no-json no-audio context unknown-provider no-model no-account disabled not-allowed circuit "
        "cooldown provider-down budget excluded mixed-embeddings"
    )
    assert [str(reason) for reason in SkipReason] == written.split()


def test_what_stands_for_no_model_is_left_out_for_that() -> None:
    nothing = Candidate("alpha/*", provider("alpha"), "")
    assert shortfall(nothing, Needs(), deny_unknown=False) is SkipReason.NO_MODEL
    assert embedding_model(Group(combo("c"), (nothing, candidate_of(provider("beta", "emb-1"), "emb-1")))) == "emb-1"


EMBEDDERS = (provider("alpha", "emb-1"), provider("beta", "emb-2", "vendor/emb-1"))


@pytest.mark.parametrize(
    ("members", "config", "only"),
    [
        (("alpha/emb-1", "beta/emb-2"), {}, "emb-1"),
        (("nosuch/x", "beta/vendor/emb-1"), {}, "emb-1"),
        (("alpha/emb-1", "beta/emb-2"), {"allow_mixed_embeddings": True}, None),
        (("alpha/emb-1",), {"allow_mixed_embeddings": "yes"}, "emb-1"),
        (("nosuch/x",), {}, None),
    ],
)
def test_embeddings_stay_with_the_first_members_model(
    members: tuple[str, ...], config: dict[str, object], only: str | None
) -> None:
    root = combo("c", *members, config=config)
    assert embedding_model(expand(root, snapshot(*EMBEDDERS))) == only


def test_the_same_model_at_two_providers_has_one_name() -> None:
    assert model_name("vendor/emb-1") == model_name("emb-1")


def test_a_skip_names_its_member_with_the_account_if_pinned() -> None:
    skips = [Skip("a/m", SkipReason.CIRCUIT, "a", account) for account in (None, "one")]
    assert [skip.member for skip in skips] == ["a/m", "a/m#one"]
