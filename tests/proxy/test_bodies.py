from __future__ import annotations

import json

import pytest

from tests.fakes import FakeClock
from tests.proxy.rig import Rig
from troyproxy.proxy.bodies import adaptations, learned_name, member_body
from troyproxy.proxy.call import Call
from troyproxy.proxy.learned import LearnedParameters
from troyproxy.routing.changes import Changes
from troyproxy.routing.members import Candidate, candidate_of
from troyproxy.wire.multipart import Form, scan


def _call(rig: Rig, **fields: object) -> Call:
    return Call(
        "r", 0.0, 0.0, "/v1/chat/completions", body=json.dumps(fields).encode(), payload=fields, usage_wanted=True
    )


def _member(rig: Rig) -> Candidate:
    return candidate_of(rig.snapshot.providers["alpha"], "m1")


def test_usage_is_asked_for_in_streams_only(rig: Rig, clock: FakeClock) -> None:
    learned = LearnedParameters(clock)
    bodies = [member_body(_call(rig, model="m1", stream=on), _member(rig), learned) for on in (True, False)]
    assert [b"include_usage" in body.content for body in bodies] == [True, False]


def test_usage_is_asked_for_beside_the_clients_own_options(rig: Rig, clock: FakeClock) -> None:
    call = _call(rig, model="m1", stream=True, stream_options={"include_obfuscation": False})
    sent = json.loads(member_body(call, _member(rig), LearnedParameters(clock)).content)
    assert sent["stream_options"] == {"include_obfuscation": False, "include_usage": True}


def test_routes_that_do_not_know_the_field_do_not_get_it(rig: Rig, clock: FakeClock) -> None:
    call = _call(rig, model="m1", stream=True)
    call.route = "/v1/embeddings"
    assert member_body(call, _member(rig), LearnedParameters(clock)).content == call.body


def test_stream_options_beside_no_stream_are_dropped(rig: Rig, clock: FakeClock) -> None:
    call = _call(rig, model="m1", stream_options={"include_usage": True})
    assert b"stream_options" not in member_body(call, _member(rig), LearnedParameters(clock)).content


def test_what_needs_no_change_is_the_same_object(rig: Rig, clock: FakeClock) -> None:
    call = _call(rig, model="m1")
    assert member_body(call, _member(rig), LearnedParameters(clock)).content is call.body


def test_a_member_without_a_provider_gets_a_body_too(rig: Rig, clock: FakeClock) -> None:
    call = _call(rig, model="x")
    assert b"m9" in member_body(call, Candidate("a/m9", None, "m9"), LearnedParameters(clock)).content


def test_only_what_was_added_may_be_learned(rig: Rig, clock: FakeClock) -> None:
    call = _call(rig, model="m1", stream=True)
    body = member_body(call, _member(rig), LearnedParameters(clock))
    assert (body.may_learn("stream_options", call), body.may_learn("temperature", call)) == (True, False)


def test_a_parameter_is_remembered_under_one_name() -> None:
    assert learned_name("body.stream_options.include_usage") == "stream_options"


def test_adaptations_name_parameter_and_action() -> None:
    changes = Changes(adapted=("reasoning_effort=high", "-tools", "max_tokens:100"))
    assert list(adaptations(changes)) == [("reasoning_effort", "set"), ("tools", "dropped"), ("max_tokens", "set")]


FORM = b'--b\r\nContent-Disposition: form-data; name="model"\r\n\r\nalpha/m1\r\n--b--\r\n'


@pytest.mark.parametrize(
    ("body", "form"), [(b'{"model":"alpha/m1","x":1.0}', None), (FORM, scan(FORM, b"b"))], ids=["json", "form"]
)
def test_what_is_passed_through_is_held_once_and_renamed_for_each_member(
    rig: Rig, clock: FakeClock, body: bytes, form: Form | None
) -> None:
    call = Call("r", 0.0, 0.0, "/v1/images/{path}", body=body, payload={"model": "alpha/m1"})
    call.form = form
    for name in ("m1", "another", "m1"):
        sent = member_body(call, candidate_of(rig.snapshot.providers["alpha"], name), LearnedParameters(clock)).content
        assert (sent, call.body is sent) == (body.replace(b"alpha/m1", name.encode()), True)
