"""How a call that is no candidate is explained."""

from live_bench import SERVERS, a_group, a_policy, a_server, a_tool

from assisted_benchmark.contract.model import Contract
from assisted_benchmark.kernel.canonical import canonical_bytes
from assisted_benchmark.live_policy.compiler import compile_plan
from assisted_benchmark.live_policy.matching import differences, nearest, only_target_differs
from assisted_benchmark.live_policy.proposal import Proposal

TOOL = a_tool("set", {"at": {}, "list": {}, "inner": {}}, required=[])
CONTRACT = Contract(schema=SERVERS.schema, id="c", servers=(a_server("s", TOOL),))


def a_step(target="", **candidates):
    return compile_plan(a_policy(a_group("s", "set", target, **candidates), contract=CONTRACT), "t-1").steps[0]


def proposing(arguments):
    return Proposal("s", "set", arguments, canonical_bytes(arguments))


def told(sealed, proposed, sensitive=()):
    step = a_step(one=sealed, two={"at": "two"})
    return differences(step.candidates[0], proposing(proposed), sensitive)


def test_each_place_that_differs_is_one_line_and_tells_only_what_was_proposed():
    sealed = {"at": "x", "list": [1, {"deep": "yes"}], "inner": {"a": 1, "b": 2}}
    proposed = {"at": "x", "list": [1, {"deep": "no"}], "inner": {"a": True, "c/d": 2}}
    assert told(sealed, proposed) == (
        "/inner/a differs: true was proposed",
        "/inner/b is missing",
        "/inner/c~1d is extra",
        '/list/1/deep differs: "no" was proposed',
    )


def test_a_list_of_another_length_and_another_type_differ_as_a_whole():
    assert told({"list": [1, 2], "at": {}}, {"list": [1], "at": []}) == (
        "/at differs: [] was proposed",
        "/list differs: [1] was proposed",
    )


def test_a_sensitive_value_is_not_told():
    assert told({"at": "x"}, {"at": "secret"}, ("/at",)) == ("/at differs: [redacted] was proposed",)


def test_of_a_value_in_another_shape_nothing_is_told_if_something_sensitive_would_be_within():
    marks = ("/list/0/token", "/inner/token")
    sealed = {"list": [{"token": "x"}], "inner": {"token": "x"}}
    assert told(sealed, {"list": [{"token": "s"}, {"token": "s"}], "inner": "s"}, marks) == (
        "/inner differs: [redacted] was proposed",
        "/list differs: [redacted] was proposed",
    )
    assert told(sealed, {"list": [{"token": "s"}], "inner": {"token": "x"}}, marks) == (
        "/list/0/token differs: [redacted] was proposed",
    )


def test_of_a_sensitive_value_not_even_the_keys_are_told():
    assert told({"inner": {"a": 1}}, {"inner": {"secret": 1}}, ("/inner",)) == (
        "/inner differs: [redacted] was proposed",
    )
    assert told({"list": [[1]]}, {"list": [[2]]}, ("/list",)) == ("/list differs: [redacted] was proposed",)


def test_an_extra_key_beside_a_sensitive_value_may_be_the_secret_itself_and_is_not_named():
    assert told({"inner": {"token": "x"}}, {"inner": {"token": "x", "secret": 1}}, ("/inner/token",)) == (
        "/inner has a key too many",
    )
    assert told({"at": 1}, {"at": 1, "list": 1}, ("/at",)) == ("/ has a key too many",)


def test_equal_numbers_do_not_differ_however_they_are_spelled():
    assert told({"at": 1}, {"at": 1.0}) == ()


def test_the_nearest_candidate_differs_in_the_fewest_places_and_of_equals_the_first_counts():
    step = a_step(one={"at": 1, "list": 1}, two={"at": 2, "list": 2})
    assert nearest(step, proposing({"at": 2, "list": 1})).name == "one"
    assert nearest(step, proposing({"at": 3, "list": 2})).name == "two"


def test_only_the_target_differs_if_all_else_is_one_candidates():
    step = a_step("at", one={"at": "x", "list": 1}, two={"at": "y", "list": 2})
    assert only_target_differs(step, proposing({"at": "z", "list": 2}))
    assert only_target_differs(step, proposing({"at": "y", "list": 1}))
    assert not only_target_differs(step, proposing({"at": "x", "list": 1}))
    assert not only_target_differs(step, proposing({"at": "z", "list": 3}))
    assert not only_target_differs(step, proposing({"list": 1}))
    assert not only_target_differs(a_step(one={"at": 1}, two={"at": 2}), proposing({"at": 3}))
