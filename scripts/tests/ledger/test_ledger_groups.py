"""Groups that are opened later than their run, and tables with steps before the claim: in every ledger alike."""

from collections.abc import Iterator

import pytest
from ledger_bench import (
    APPROVE,
    BORN_IN_FLIGHT,
    MAKERS,
    NOW,
    PROMPTED,
    RECORD,
    a_claim,
    a_draft,
    a_group,
    a_permit,
    an_opening,
    verified,
)
from marks import promise

from assisted_benchmark.kernel.canonical import parse
from assisted_benchmark.kernel.errors import CanonicalError, LedgerError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.ledger.protocol import Draft, Ledger, Lost, Row

A, B, C = a_group("a"), a_group("b"), a_group("c")


@pytest.fixture(params=sorted(MAKERS))
def maker(request, tmp_path):
    made: list[Ledger] = []

    def make(table) -> Ledger:
        made.append(MAKERS[request.param](tmp_path, table=table))
        return made[0]

    yield make
    made[0].close()


@pytest.fixture
def ledger(maker) -> Iterator[Ledger]:
    """A run with one group from its begin."""
    made = maker(PROMPTED)
    made.open_run("run-1", RECORD, [A])
    return made


def asked(ledger: Ledger, group: bytes) -> None:
    assert ledger.move(group, "run-1", "sealed", "asking", a_draft("event", "asked"))


def said(ledger: Ledger, run: str = "run-1") -> list[tuple[str, str, str, str, str]]:
    """What the receipts say, in short: kind, reason, group, before, state."""
    return [
        tuple(line[key] for key in ("kind", "reason", "group", "before", "state"))
        for line in map(parse, ledger.receipts(run))
    ]


@promise("M11")
def test_a_group_is_opened_once_with_its_record_and_its_receipt(ledger):
    assert ledger.open_group("run-1", B, b'{"spec":1}', a_draft("decision", "proposed", detail="new")) is True
    assert ledger.row(B) == Row("sealed")
    assert (ledger.group_record(A), ledger.group_record(B), ledger.group_record(C)) == (None, b'{"spec":1}', None)
    assert said(ledger) == [("decision", "proposed", B.hex(), "", "sealed")]
    assert verified(ledger, "run-1").findings == ()


@pytest.mark.parametrize("group", [A, B], ids=["came with its run", "came later"])
@pytest.mark.parametrize("run", ["run-1", "run-2"])
def test_a_group_that_exists_is_not_opened_again_by_any_run(ledger, group, run):
    an_opening(ledger, "run-1", B)
    ledger.open_run("run-2", RECORD, [])
    asked(ledger, B)
    assert ledger.open_group(run, group, b"{}", a_draft("event", "again")) is False
    assert ledger.group_record(B) == RECORD
    assert ledger.row(B) == Row("asking")
    assert (len(said(ledger)), said(ledger, "run-2")) == (2, [])
    with pytest.raises(LedgerError) as caught:
        ledger.open_run("run-3", RECORD, [C, group])
    assert caught.value.reason is Reason.ILLEGAL_TRANSITION
    assert ledger.row(C) is None
    assert ledger.runs() == ("run-1", "run-2")


def test_groups_are_told_in_the_order_in_which_they_were_opened(ledger):
    ledger.open_run("run-2", RECORD, [])
    others = [a_group(str(number)) for number in range(4)]
    for number, group in enumerate(others):
        an_opening(ledger, f"run-{1 + number % 2}", group)
    asked(ledger, others[2])
    assert list(ledger.groups("run-1")) == [(A, Row("sealed")), (others[0], Row("sealed")), (others[2], Row("asking"))]
    assert [name for name, _ in ledger.groups("run-2")] == [others[1], others[3]]


@promise("K10")
def test_a_claim_starts_from_ready_and_from_nowhere_else(ledger):
    an_opening(ledger, "run-1", B)
    for group in (A, B):
        assert ledger.claim(a_permit(group), "run-1", a_draft()) == Lost("sealed")
        asked(ledger, group)
        with pytest.raises(LedgerError) as caught:
            ledger.move(group, "run-1", "asking", "sending", a_draft())
        assert caught.value.reason is Reason.ILLEGAL_TRANSITION
        claimed = a_claim(ledger, "run-1", group)
        assert ledger.row(group) == Row("sending", APPROVE)
        ledger.settle(claimed, "done", a_draft("outcome", "succeeded"))
        assert ledger.claim(a_permit(group), "run-1", a_draft()) == Lost("done")
    assert [each[3:] for each in said(ledger)[-3:]] == [
        ("sealed", "asking"),
        ("asking", "sending"),
        ("sending", "done"),
    ]
    assert verified(ledger, "run-1").findings == ()


@promise("K12a", "M11")
def test_a_crash_ends_what_was_claimed_as_unknown_and_what_was_not_as_unsent(ledger):
    for group in (B, C):
        an_opening(ledger, "run-1", group)
        asked(ledger, group)
    a_claim(ledger, "run-1", C)
    asked(ledger, A)
    still = a_group("still sealed")
    an_opening(ledger, "run-1", still)
    before = len(said(ledger))
    assert ledger.recover("run-1", NOW) == tuple(sorted([A, B, C]))
    assert ledger.recover("run-1", NOW) == ()
    assert dict(ledger.groups("run-1")) == {
        A: Row("refused"),
        B: Row("refused"),
        C: Row("unresolved", APPROVE),
        still: Row("sealed"),
    }
    ends = {A: ("cancelled", "asking", "refused"), B: ("cancelled", "asking", "refused")}
    ends[C] = ("outcome_unknown", "sending", "unresolved")
    assert said(ledger)[before:] == [
        ("outcome", ends[group][0], group.hex(), *ends[group][1:]) for group in sorted([A, B, C])
    ]
    details = {line["group"]: line["detail"] for line in map(parse, ledger.receipts("run-1"))}
    assert details[A.hex()] == "the process ended before a marker, while this was asking"
    assert details[C.hex()] == "the process ended between the marker and the outcome"
    assert verified(ledger, "run-1").findings == ()


@promise("C23", "K12a")
def test_what_is_in_flight_from_its_birth_is_cancelled_by_a_crash(maker):
    ledger = maker(BORN_IN_FLIGHT)
    ledger.open_run("run-1", RECORD, [A])
    ledger.open_run("run-2", RECORD, [a_group("d")])
    for group in (B, C):
        an_opening(ledger, "run-1", group)
    a_claim(ledger, "run-1", B)
    ledger.settle(a_claim(ledger, "run-1", C), "done", a_draft("outcome", "completed"))
    assert ledger.recover("run-1", NOW) == tuple(sorted([A, B]))
    assert list(ledger.groups("run-1")) == [
        (A, Row("cancelled")),
        (B, Row("unknown", APPROVE)),
        (C, Row("done", APPROVE)),
    ]
    assert ledger.row(a_group("d")) == Row("admitted")
    assert verified(ledger, "run-1").findings == ()
    assert ledger.recover("run-2", NOW) == (a_group("d"),)


def test_an_opening_whose_receipt_cannot_be_written_changes_nothing(ledger):
    with pytest.raises(CanonicalError) as caught:
        ledger.open_group("run-1", B, RECORD, a_draft(detail="\x00"))
    assert caught.value.reason is Reason.MALFORMED_UNICODE
    assert (ledger.row(B), ledger.group_record(B), said(ledger)) == (None, None, [])
    an_opening(ledger, "run-1", B)
    assert ledger.head("run-1").length == 1


@promise("K15")
def test_an_outcome_beside_a_group_that_a_claim_is_still_ahead_of_is_inconsistent(ledger):
    an_opening(ledger, "run-1", B)
    asked(ledger, B)
    ledger.record("run-1", Draft("outcome", "id", NOW, "succeeded"), B)
    assert [(each.reason, each.line) for each in verified(ledger, "run-1").findings] == [
        (Reason.RECEIPT_INCONSISTENT, 3)
    ]
