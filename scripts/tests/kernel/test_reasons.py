"""The closed list of reasons: pinned code by code, and complete in every column."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from marks import promise

from assisted_benchmark.kernel.reasons import LIVE_ORDER, REASONS, Coarse, Layer, Reason, Severity

GOLDEN = Path(__file__).parent.parent / "golden" / "reason_codes.txt"
DOCS = Path(__file__).parents[3] / "docs"

# The fixed order of the live broker's checks, as the specification lists it; a code that it names twice stands once.
WRITTEN_ORDER = """
    unknown_grant unknown_group store_unavailable seal_invalid cross_run wrong_principal wrong_vm wrong_host
    policy_drift contract_drift grant_not_from_policy not_yet_valid expired clock_rollback revoked
    already_selected group_terminal exhausted out_of_order replayed skipped
    unknown_server server_substituted unknown_tool effect_mismatch arguments_invalid
    wrong_target arguments_altered not_a_candidate
    lost_race late_result outcome_unknown result_invalid failed
"""


@promise("K6")
def test_the_list_is_the_pinned_one_so_that_no_code_is_reworded_unseen():
    assert sorted(Reason) == GOLDEN.read_text(encoding="ascii").split()


@promise("K6")
@pytest.mark.parametrize("reason", Reason)
def test_a_code_is_snake_case_and_says_everything_about_itself(reason):
    info = REASONS[reason]
    assert re.fullmatch(r"[a-z]+(_[a-z]+)*", reason.value)
    assert reason.name == reason.value.upper()
    assert info.text == info.text.strip().rstrip(".") != ""
    assert (type(info.layer), type(info.severity), type(info.coarse)) == (Layer, Severity, Coarse)
    assert info.rule == f"AB/{info.layer.value}/{reason.value}"
    assert info.anchor == f"docs/reasons.md#{reason.value}"


@promise("K6")
def test_the_table_has_every_reason_once_with_a_text_and_a_rule_of_its_own():
    assert set(REASONS) == set(Reason)
    assert len({info.text for info in REASONS.values()}) == len(Reason)
    assert len({info.rule for info in REASONS.values()}) == len(Reason)
    assert {info.layer for info in REASONS.values()} == set(Layer)
    assert {info.coarse for info in REASONS.values()} == set(Coarse)


@promise("K6")
def test_every_anchor_is_a_heading_of_the_documentation():
    headings = re.findall(r"^### (.+)$", (DOCS / "reasons.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(headings) == sorted(Reason)
    assert {info.anchor for info in REASONS.values()} == {f"docs/reasons.md#{heading}" for heading in headings}


def test_only_a_torn_tail_is_less_than_an_error():
    assert [reason for reason, info in REASONS.items() if info.severity is not Severity.ERROR] == [Reason.TORN_TAIL]


def test_the_live_order_names_each_code_once_bytes_first_and_then_as_written():
    assert len(set(LIVE_ORDER)) == len(LIVE_ORDER)
    layers = [REASONS[reason].layer for reason in LIVE_ORDER]
    assert layers.index(Layer.GRANT) == layers.count(Layer.BYTES) - 1 + layers.count(Layer.CALL)
    written = WRITTEN_ORDER.split()
    assert [reason for reason in LIVE_ORDER if reason.value in written] == written
