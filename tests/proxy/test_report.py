from __future__ import annotations

from dataclasses import replace

import pytest

from tests.proxy.rig import Rig, combo
from troyproxy.accounting.records import AttemptRecord
from troyproxy.catalog.secret import Secret
from troyproxy.proxy.call import Call
from troyproxy.proxy.policy import WalkPolicy
from troyproxy.proxy.report import commit_headers, early_headers, exposed, story
from troyproxy.routing.eligibility import Skip, SkipReason

POLICY = WalkPolicy()


def _full(rig: Rig, name: str = "x" * 100) -> Call:
    call = rig.call()
    assert call.resolution is not None
    call.resolution = replace(call.resolution, combo=combo(name, strategy="round-robin"))
    ledger = call.ledger
    ledger.attempts = [AttemptRecord(name, name, name, "transient", 500, 0, 0) for _ in range(30)]
    for number in range(30):
        ledger.skip(Skip(f"{name}/{number}", SkipReason.UNKNOWN_PROVIDER))
    ledger.adapted = [f"{name}=high"] * 9
    ledger.leak = f"{name};suppressed"
    ledger.serve(name, name, name)
    ledger.overhead_s = 123456.789
    return call


@pytest.mark.parametrize("name", ["x" * 100, "中文模型-🚀" * 20, "a\r\nX-Evil: 1", "%41" * 50, "\ud800" * 80])
def test_all_of_it_is_ascii_without_line_ends_and_under_a_kibibyte(rig: Rig, name: str) -> None:
    headers = story(_full(rig, name), POLICY)
    assert sum(len(key) + len(value) + 4 for key, value in headers) < 1024
    assert all(value.isascii() and not {10, 13} & set(value) for _, value in headers)


@pytest.mark.parametrize(
    ("seconds", "told"), [(0.0, b"0.0"), (0.00034, b"0.3"), (0.00996, b"10.0"), (61.5, b"61500.0")]
)
def test_the_overhead_is_told_in_tenths_of_a_millisecond(rig: Rig, seconds: float, told: bytes) -> None:
    call = rig.call()
    call.ledger.overhead_s = seconds
    assert dict(story(call, POLICY))[b"x-troy-overhead-ms"] == told


@pytest.mark.parametrize("cut", range(60, 80))
def test_a_cut_leaves_no_half_escape(rig: Rig, cut: int) -> None:
    call = _full(rig)
    call.ledger.account = "x" * cut + "é" * 20
    value = dict(story(call, POLICY))[b"x-troy-account"]
    assert not value.endswith((b"%", b"%C", b"%A"))


def test_changes_are_told_whole_and_the_rest_is_counted(rig: Rig) -> None:
    call = rig.call()
    call.ledger.adapted = ["-reasoning_effort", "-temperature", "max_tokens:1000"]
    assert dict(story(call, POLICY))[b"x-troy-adapted"] == b"-reasoning_effort,-temperature,max_tokens:1000"
    call.ledger.adapted = ["thinking.budget_tokens=2048"] * 8
    told = dict(story(call, POLICY))[b"x-troy-adapted"].split(b",")
    assert told == [b"thinking.budget_tokens=2048"] * 5 + [b"+3"]


def test_names_are_encoded_once(rig: Rig) -> None:
    call = rig.call()
    call.ledger.attempts = [AttemptRecord("alpha", "é", "A", "ok", 200, 0, 0)]
    assert dict(story(call, POLICY))[b"x-troy-trail"] == b"alpha/%C3%A9#A=ok"


def test_nothing_known_is_not_told(rig: Rig) -> None:
    assert [name for name, _ in story(rig.call("alpha/m1"), POLICY)] == [b"x-troy-request-id", b"x-troy-attempts"]


def test_a_call_without_a_name_has_a_story_too() -> None:
    assert len(story(Call("r", 0.0, 0.0, "/r"), POLICY)) == 2


def test_a_client_that_is_told_little_gets_id_and_attempts(rig: Rig) -> None:
    headers = story(_full(rig), replace(POLICY, expose="id"))
    assert [name for name, _ in headers] == [b"x-troy-request-id", b"x-troy-attempts"]


def test_what_is_not_ours_stays_exposed() -> None:
    headers = ((b"x-should-retry", b"false"), (b"retry-after", b"1"), (b"x-troy-upstream-status", b"500"))
    assert exposed(headers, replace(POLICY, expose="id")) == headers[:2]


def test_the_upstreams_request_id_is_hidden_from_a_client_that_is_told_little(rig: Rig) -> None:
    given = ((b"x-request-id", b"up-1"),)
    told = [dict(commit_headers(rig.call(), replace(POLICY, expose=how), given)) for how in ("full", "id")]
    assert [b"x-troy-upstream-request-id" in headers for headers in told] == [True, False]


@pytest.mark.parametrize(
    ("streamed", "given", "kind"),
    [
        (True, b"text/event-stream; charset=x", b"text/event-stream; charset=x"),
        (True, b"text/plain", b"text/event-stream; charset=utf-8"),
        (True, None, b"text/event-stream; charset=utf-8"),
        (False, b"application/json; charset=utf-8", b"application/json; charset=utf-8"),
        (False, b"text/html", b"application/json"),
        (False, None, b"application/json"),
    ],
)
def test_the_content_type_is_what_the_body_is(rig: Rig, streamed: bool, given: bytes | None, kind: bytes) -> None:
    upstream = ((b"content-type", given),) if given is not None else ()
    headers = commit_headers(rig.call(stream=streamed), POLICY, upstream)
    assert [value for name, value in headers if name == b"content-type"] == [kind]


@pytest.mark.parametrize(("streamed", "kept"), [(True, b"no-cache"), (False, b"no-store")])
def test_no_cache_keeps_an_answer(rig: Rig, streamed: bool, kept: bytes) -> None:
    assert dict(commit_headers(rig.call(stream=streamed), POLICY, ()))[b"cache-control"] == kept


def test_an_early_head_says_nothing_of_who_serves(rig: Rig) -> None:
    assert [name for name, _ in early_headers(rig.call(stream=True))] == [
        b"content-type",
        b"cache-control",
        b"x-accel-buffering",
        b"x-troy-request-id",
    ]


@pytest.mark.parametrize("shown", [b"r-sk-up-A-1234567890", b"sk-u-***7890"])
def test_an_id_that_shows_the_accounts_secret_is_not_told_and_the_others_are(rig: Rig, shown: bytes) -> None:
    given = ((b"x-request-id", shown), (b"request-id", b"r1"), (b"content-type", b"application/json"))
    told = dict(commit_headers(rig.call(), POLICY, given, Secret("sk-up-A-1234567890")))
    assert (told[b"x-troy-upstream-request-id"], told[b"content-type"]) == (b"r1", b"application/json")


@pytest.mark.parametrize("name", ["m1", "x" * 100, "模型" * 30, "a%b c/d"])
@pytest.mark.parametrize("asked", ["three", "alpha/m1"])
@pytest.mark.parametrize("adapted", [[], ["-temperature"], ["x" * 100], ["-a", "-b"]])
@pytest.mark.parametrize("marks", [[], ["explored", "probe"]])
def test_a_plain_story_is_told_as_any_other(
    rig: Rig, name: str, asked: str, adapted: list[str], marks: list[str]
) -> None:
    call = rig.call(asked)
    call.ledger.adapted, call.ledger.marks = adapted, marks
    call.ledger.attempts = [AttemptRecord("alpha", name, f"{name}A", "ok", 200, 0, 0)]
    call.ledger.serve("alpha", name, f"{name}A")
    call.ledger.overhead_s = 0.0123
    plain = story(call, POLICY)
    call.ledger.leak = "F01;repaired"
    assert tuple(pair for pair in story(call, POLICY) if pair[0] != b"x-troy-leak") == plain
