"""What users of such brokers have reported, and the tests that hold each of it.

A report is held where it would happen: at the wire, in the router, at the gateway, or between the official SDK's client
and its server with the gateway in between.
"""

import ast
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
HELD = {
    "a call with an id that fails to parse is dropped, and its caller hangs": [
        "wire/test_frames.py::test_a_bad_line_is_refused_with_its_reason_and_its_id_where_it_can_be_read",
        "gateway/test_agent_session.py::test_a_bad_line_is_answered_and_the_question_stays_open",
    ],
    "one bad byte kills the client": [
        "wire/test_client_calls.py::test_a_bad_line_is_recorded_and_ends_nothing",
        "wire/test_server_session.py::test_a_bad_line_is_answered_and_the_session_goes_on",
    ],
    "duplicate ids in flight cross-wire answers": [
        "wire/test_server_session.py::test_a_duplicate_id_in_flight_is_refused_and_acts_once",
        "gateway/test_live_calls_served.py::"
        "test_a_call_with_an_id_that_is_in_flight_is_refused_once_and_leaves_its_receipt",
    ],
    "a cancellation has the wrong side's id": [
        "wire/test_server_questions.py::"
        "test_an_agent_that_cancels_while_a_person_is_asked_cancels_the_servers_call_by_the_servers_id",
        "gateway/test_agent_session.py::test_only_the_agents_own_call_in_flight_can_be_cancelled",
    ],
    "a proxy does not forward a cancellation, or shows a cancelled call as a success": [
        "cli/test_serve_carrying_sdk.py::"
        "test_a_question_progress_and_a_cancellation_go_through_in_both_eras_on_both_sides",
        "gateway/test_live_calls_served.py::test_a_cancelled_call_is_told_of_only_if_it_may_have_gone_out",
    ],
    "integers above 2^53 are rounded on the way through": [
        "wire/test_frames.py::test_a_bad_line_is_refused_with_its_reason_and_its_id_where_it_can_be_read",
        "wire/test_client_calls.py::test_an_answer_that_is_no_sound_result_is_uncertain",
        "wire/test_sdk_peers.py::test_our_client_speaks_with_servers_of_both_eras",
    ],
    "a server's standard error fills up, and everything stands still": [
        "wire/test_hostile_servers.py::test_a_server_that_fills_its_standard_error_is_not_held_up",
        "mcp_router/test_router.py::test_a_server_that_fills_its_standard_error_in_a_call_does_not_stand_still",
    ],
    "a declined elicitation is read as truthy": [
        "wire/test_server_questions.py::test_an_acceptance_is_one_by_its_word_and_everything_but_a_decline_is_a_cancel",
        "gateway/test_sdk_agents.py::test_what_the_person_at_an_sdk_client_answers_decides",
    ],
    "a person answers later than the outer timeout": [
        "wire/test_server_questions.py::"
        "test_while_a_person_is_asked_the_calls_budget_stands_still_and_the_persons_is_bounded",
        "gateway/test_agent_session.py::test_the_time_of_a_person_is_not_taken_from_the_time_of_the_call",
    ],
    "a fabricated progress token loses progress": [
        "wire/test_client_calls.py::test_progress_is_bounded_and_nobody_hears_it_who_did_not_ask",
        "cli/test_serve_carrying_sdk.py::"
        "test_a_question_progress_and_a_cancellation_go_through_in_both_eras_on_both_sides",
    ],
    "names collide, so that a tool overwrites another or is dropped": [
        "gateway/test_served_names.py::test_two_tools_that_would_have_one_name_are_not_served",
        "mcp_router/test_router.py::test_two_servers_with_the_same_tool_never_get_each_others_calls",
    ],
    "joined names collide": [
        "gateway/test_served_names.py::test_names_that_would_be_joined_to_the_same_are_two",
        "properties/test_served_name_laws.py::test_tools_and_their_names_are_one_to_one",
    ],
    "orphans are left after the exit": [
        "mcp_router/test_server_process.py::test_no_orphan_is_left_when_the_harness_is_killed",
    ],
    "a version fallback replays a call": [
        "wire/test_client_calls.py::test_a_call_is_never_made_again_in_another_version",
    ],
}


@pytest.mark.parametrize("report", HELD)
def test_each_report_has_tests_that_hold_it(report):
    for each in HELD[report]:
        file, _, name = each.partition("::")
        tree = ast.parse((TESTS / file).read_text())
        assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, each
