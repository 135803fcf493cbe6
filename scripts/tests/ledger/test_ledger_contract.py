"""What every ledger promises, over all of them, of groups that came with their run and of those that came later."""

import json
from collections.abc import Iterator

import pytest
from ledger_bench import (
    APPROVE,
    HOLD,
    MAKERS,
    NOW,
    OPENED,
    RECORD,
    a_claim,
    a_draft,
    a_group,
    a_permit,
    an_opening,
    verified,
)
from marks import promise

from assisted_benchmark.kernel.canonical import canonical_bytes, parse
from assisted_benchmark.kernel.errors import CanonicalError, LedgerError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.ledger.protocol import Claimed, Head, Ledger, Lost, Row
from assisted_benchmark.ledger.receipts import first_prev, line_digest
from assisted_benchmark.live_policy.states import LIVE_TABLE, State

A, B = a_group("a"), a_group("b")


@pytest.fixture(params=["with their run", "later"])
def later(request) -> bool:
    return request.param == "later"


@pytest.fixture(params=sorted(MAKERS))
def ledger(request, tmp_path, later) -> Iterator[Ledger]:
    made = MAKERS[request.param](tmp_path)
    assert made.open_run("run-1", RECORD, [] if later else [A, B])
    if later:
        an_opening(made, "run-1", A)
        an_opening(made, "run-1", B)
    yield made
    made.close()


def lines_of(ledger: Ledger, run: str = "run-1") -> list[dict[str, object]]:
    """The run's receipts, without those of groups that came later."""
    return [line for line in map(parse, ledger.receipts(run)) if line["reason"] != OPENED]


def said(ledger: Ledger, run: str = "run-1") -> list[tuple[str, str, str, str]]:
    """What the receipts say, in short: kind, reason, before, state."""
    return [(line["kind"], line["reason"], line["before"], line["state"]) for line in lines_of(ledger, run)]


def test_a_run_is_opened_once_and_its_record_is_kept(ledger):
    assert ledger.open_run("run-1", b'{"other":1}', [a_group("c")]) is False
    assert ledger.run_record("run-1") == RECORD
    assert ledger.run_record("run-2") is None
    assert ledger.row(a_group("c")) is None
    assert ledger.open_run("run-0", b"{}", []) is True
    assert ledger.runs() == ("run-0", "run-1")
    assert (ledger.id, ledger.table) == ("ledger-1", LIVE_TABLE)


@pytest.mark.parametrize("groups", [[A], [a_group("c"), a_group("c")]], ids=["of another run", "named twice"])
def test_a_group_that_exists_is_never_sealed_again(ledger, groups):
    with pytest.raises(LedgerError) as caught:
        ledger.open_run("run-2", b"{}", groups)
    assert caught.value.reason is Reason.ILLEGAL_TRANSITION
    assert ledger.runs() == ("run-1",)
    assert ledger.row(a_group("c")) is None
    assert ledger.open_run("run-2", b"{}", [a_group("c")]) is True


@promise("K10")
def test_a_group_goes_from_sealed_through_dispatching_to_its_end(ledger):
    assert ledger.row(A) == Row("sealed")
    claimed = a_claim(ledger, "run-1", A)
    assert claimed == Claimed(a_permit(A), "run-1")
    assert ledger.row(A) == Row("dispatching", APPROVE)
    ledger.settle(claimed, State.SUCCEEDED, a_draft("outcome", "succeeded"))
    assert ledger.row(A) == Row("succeeded", APPROVE)
    assert ledger.row(B) == Row("sealed")
    assert said(ledger) == [
        ("decision", "admitted", "sealed", "dispatching"),
        ("outcome", "succeeded", "dispatching", "succeeded"),
    ]


@promise("K11")
@pytest.mark.parametrize("candidate", [APPROVE, HOLD], ids=["the same candidate", "its sibling"])
def test_a_second_claim_is_lost_and_leaves_no_receipt(ledger, candidate):
    claimed = a_claim(ledger, "run-1", A)
    assert ledger.claim(a_permit(A, candidate), "run-1", a_draft()) == Lost("dispatching")
    ledger.settle(claimed, State.FAILED, a_draft("outcome", "failed"))
    assert ledger.claim(a_permit(A, candidate), "run-1", a_draft()) == Lost("failed")
    assert len(said(ledger)) == 2


@promise("K10")
@pytest.mark.parametrize("end", sorted(LIVE_TABLE.terminal - {"revoked", "aborted", "exhausted"}))
def test_nothing_leaves_a_terminal_state(ledger, end):
    claimed = a_claim(ledger, "run-1", A)
    ledger.settle(claimed, end, a_draft("outcome", end))
    for after in sorted(LIVE_TABLE.states):
        if ("dispatching", after) in LIVE_TABLE.edges:
            with pytest.raises(LedgerError) as caught:
                ledger.settle(claimed, after, a_draft("outcome", after))
            assert caught.value.reason is Reason.ILLEGAL_TRANSITION
        with pytest.raises(LedgerError) as caught:
            ledger.move(A, "run-1", end, after, a_draft("event"))
        assert caught.value.reason is Reason.ILLEGAL_TRANSITION
    assert ledger.recover("run-1", NOW) == ()
    assert ledger.row(A) == Row(end, APPROVE)


def test_only_the_permit_that_claimed_a_group_settles_it(ledger):
    a_claim(ledger, "run-1", A)
    with pytest.raises(LedgerError) as caught:
        ledger.settle(Claimed(a_permit(A, HOLD), "run-1"), State.SUCCEEDED, a_draft("outcome"))
    assert caught.value.reason is Reason.ILLEGAL_TRANSITION
    assert ledger.row(A) == Row("dispatching", APPROVE)


def test_an_outcome_needs_an_edge_of_the_table(ledger):
    claimed = a_claim(ledger, "run-1", A)
    with pytest.raises(LedgerError) as caught:
        ledger.settle(claimed, State.REVOKED, a_draft("outcome"))
    assert caught.value.reason is Reason.ILLEGAL_TRANSITION
    assert len(said(ledger)) == 1


@promise("K10")
@pytest.mark.parametrize("end", ["expired", "revoked", "aborted", "exhausted"])
def test_a_sealed_group_may_be_closed_without_a_claim(ledger, end):
    assert ledger.move(A, "run-1", State.SEALED, end, a_draft("event", end)) is True
    assert ledger.row(A) == Row(end)
    assert ledger.move(A, "run-1", State.SEALED, end, a_draft("event", end)) is False
    assert ledger.claim(a_permit(A), "run-1", a_draft()) == Lost(end)
    assert said(ledger) == [("event", end, "sealed", end)]


def test_a_claimed_group_may_be_moved_on_only_along_the_table(ledger):
    a_claim(ledger, "run-1", A)
    assert ledger.move(A, "run-1", State.DISPATCHING, State.EXPIRED, a_draft("event", "expired")) is True
    assert ledger.recover("run-1", NOW) == ()
    assert ledger.row(A) == Row("expired", APPROVE)


@promise("K12a")
def test_only_a_claim_claims(ledger):
    with pytest.raises(LedgerError) as caught:
        ledger.move(A, "run-1", State.SEALED, State.DISPATCHING, a_draft())
    assert caught.value.reason is Reason.ILLEGAL_TRANSITION
    assert ledger.row(A) == Row("sealed")


def test_recovering_an_untouched_run_does_nothing(ledger):
    assert ledger.recover("run-1", NOW) == ()
    assert lines_of(ledger) == []


@promise("K12a")
def test_recovery_makes_claimed_groups_unresolved_and_nothing_sealed(ledger):
    first, third = sorted([A, B])[0], a_group("c")
    assert ledger.open_run("run-2", RECORD, [third])
    a_claim(ledger, "run-1", A)
    a_claim(ledger, "run-1", B)
    a_claim(ledger, "run-2", third)
    assert ledger.recover("run-1", NOW) == tuple(sorted([A, B]))
    assert (ledger.row(A), ledger.row(B)) == (Row("unresolved", APPROVE), Row("unresolved", APPROVE))
    assert ledger.row(third) == Row("dispatching", APPROVE)
    assert ledger.recover("run-1", NOW) == ()
    assert said(ledger)[2:] == [("outcome", "outcome_unknown", "dispatching", "unresolved")] * 2
    assert lines_of(ledger)[2]["group"] == first.hex()
    assert ledger.claim(a_permit(A), "run-1", a_draft()) == Lost("unresolved")
    assert verified(ledger, "run-1").findings == ()


@promise("K10")
def test_a_reconciliation_is_a_receipt_beside_unresolved(ledger):
    a_claim(ledger, "run-1", A)
    ledger.recover("run-1", NOW)
    assert ledger.record("run-1", a_draft("reconciliation", "reconciled", group=A.hex())) == 0
    assert ledger.row(A) == Row("unresolved", APPROVE)
    assert said(ledger)[-1] == ("reconciliation", "reconciled", "", "")
    assert verified(ledger, "run-1").findings == ()


def test_refusals_are_counted_by_group_and_all_have_receipts(ledger):
    refusal = a_draft("decision", "not_a_candidate")
    assert [ledger.record("run-1", refusal, A) for _ in range(3)] == [1, 2, 3]
    assert ledger.record("run-1", refusal, B) == 1
    assert ledger.record("run-1", refusal) == 0
    assert (ledger.row(A), ledger.row(B)) == (Row("sealed", "", 3), Row("sealed", "", 1))
    a_claim(ledger, "run-1", A)
    assert ledger.row(A) == Row("dispatching", APPROVE, 3)
    assert said(ledger)[0] == ("decision", "not_a_candidate", "", "sealed")
    assert len(said(ledger)) == 6
    assert verified(ledger, "run-1").findings == ()


@promise("K15")
def test_each_run_has_a_chain_of_its_own_and_a_head(ledger, later):
    ledger.open_run("run-2", b"{}", [a_group("c")])
    assert ledger.head("run-2") == Head(0, first_prev("ledger-1", "run-2"))
    a_claim(ledger, "run-1", A)
    a_claim(ledger, "run-2", a_group("c"))
    a_claim(ledger, "run-1", B)
    for run, length in (("run-1", 4 if later else 2), ("run-2", 1)):
        lines = list(ledger.receipts(run))
        assert [json.loads(line)["seq"] for line in lines] == list(range(1, length + 1))
        assert all(canonical_bytes(parse(line)) == line for line in lines)
        assert ledger.head(run).length == length
        assert verified(ledger, run).findings == ()


@promise("K15")
def test_a_receipt_says_everything_of_its_draft_and_its_place(ledger):
    draft = a_draft(
        "decision", "admitted", grant="g", candidate="c", server="ui", tool="click", arguments="k", detail='é "x"\n'
    )
    ledger.claim(a_permit(A), "run-1", draft)
    (line,) = lines_of(ledger)
    opened = list(ledger.receipts("run-1"))[:-1]
    assert line == {
        "arguments": "k",
        "before": "sealed",
        "candidate": "c",
        "detail": 'é "x"\n',
        "grant": "g",
        "group": A.hex(),
        "id": "id-1",
        "kind": "decision",
        "ledger": "ledger-1",
        "mono_ns": "9007199254740993",
        "prev": line_digest(opened[-1]) if opened else first_prev("ledger-1", "run-1"),
        "reason": "admitted",
        "run": "run-1",
        "schema": "assisted-benchmark/receipt@1",
        "seq": len(opened) + 1,
        "server": "ui",
        "state": "dispatching",
        "tool": "click",
        "wall_ns": "1900000000123456789",
    }


@promise("K15")
@pytest.mark.parametrize("text", ["a\x00b", "\ud800"], ids=["NUL", "lone surrogate"])
def test_a_receipt_that_cannot_be_written_changes_nothing(ledger, text):
    for attempt in (
        lambda draft: ledger.claim(a_permit(A), "run-1", draft),
        lambda draft: ledger.move(A, "run-1", State.SEALED, State.EXPIRED, draft),
        lambda draft: ledger.record("run-1", draft, A),
    ):
        with pytest.raises(CanonicalError) as caught:
            attempt(a_draft(detail=text))
        assert caught.value.reason is Reason.MALFORMED_UNICODE
    assert ledger.row(A) == Row("sealed")
    assert lines_of(ledger) == []
    assert ledger.record("run-1", a_draft(), A) == 1


def test_a_backslash_and_digits_are_not_taken_for_a_nul(ledger):
    ledger.record("run-1", a_draft(detail="\\u0000"))
    (line,) = lines_of(ledger)
    assert line["detail"] == "\\u0000"
    assert verified(ledger, "run-1").findings == ()


def test_unknown_runs_and_groups_are_named(ledger):
    ledger.open_run("run-2", b"{}", [])
    stranger = a_group("stranger")
    for reason, attempt in (
        (Reason.UNKNOWN_GROUP, lambda: ledger.claim(a_permit(stranger), "run-1", a_draft())),
        (Reason.UNKNOWN_GROUP, lambda: ledger.record("run-1", a_draft(), stranger)),
        (Reason.CROSS_RUN, lambda: ledger.claim(a_permit(A), "run-2", a_draft())),
        (Reason.CROSS_RUN, lambda: ledger.move(A, "run-2", State.SEALED, State.EXPIRED, a_draft())),
        (Reason.UNKNOWN_GRANT, lambda: ledger.record("run-9", a_draft())),
        (Reason.UNKNOWN_GRANT, lambda: ledger.recover("run-9", NOW)),
        (Reason.UNKNOWN_GRANT, lambda: ledger.head("run-9")),
        (Reason.UNKNOWN_GRANT, lambda: ledger.groups("run-9")),
        (Reason.UNKNOWN_GRANT, lambda: ledger.open_group("run-9", stranger, RECORD, a_draft())),
    ):
        with pytest.raises(LedgerError) as caught:
            attempt()
        assert caught.value.reason is reason
    assert ledger.row(stranger) is None
    assert list(ledger.receipts("run-9")) == []
    assert lines_of(ledger) == []


def test_closing_twice_is_closing(ledger):
    ledger.close()
    ledger.close()
