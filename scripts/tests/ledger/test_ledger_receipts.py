"""What verifying finds: every way a chain can be wrong, and nothing in one that is right."""

import json

import orjson
import pytest
from ledger_bench import APPROVE, NOW, RECORD, a_claim, a_draft, a_group, a_permit
from marks import promise

from assisted_benchmark.kernel.canonical import canonical_bytes
from assisted_benchmark.kernel.digest import digest_of
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.ledger.exported import Chain, verify_export
from assisted_benchmark.ledger.memory import MemoryLedger
from assisted_benchmark.ledger.protocol import Head
from assisted_benchmark.ledger.receipts import (
    Finding,
    Verification,
    first_prev,
    line_digest,
    verify,
)
from assisted_benchmark.live_policy.states import LIVE_TABLE, State

RUN, LEDGER = "run-1", "ledger-1"


def a_chain(run: str = RUN, ledger: str = LEDGER, detail: str = 'a "quoted" detail') -> tuple[list[bytes], Head]:
    """Two groups: one succeeded, one refused twice and then claimed. Five receipts."""
    memory = MemoryLedger(ledger, LIVE_TABLE)
    a, b = a_group("a"), a_group("b")
    memory.open_run(run, RECORD, [a, b])
    claimed = a_claim(memory, run, a)
    memory.settle(claimed, State.SUCCEEDED, a_draft("outcome", "succeeded"))
    memory.record(run, a_draft("decision", "not_a_candidate"), b)
    memory.record(run, a_draft("decision", "wrong_target", detail=detail), b)
    a_claim(memory, run, b)
    return list(memory.receipts(run)), memory.head(run)


LINES, HEAD = a_chain()


def found(lines: list[bytes], head: Head = HEAD) -> list[tuple[str, int, int]]:
    """What was found, in short: reason, line, seq."""
    verification = verify(lines, run=RUN, ledger_id=LEDGER, head=head, table=LIVE_TABLE)
    return [(finding.reason.value, finding.line, finding.seq) for finding in verification.findings]


def changed(line: bytes, **fields: object) -> bytes:
    return canonical_bytes(json.loads(line) | fields)


def chained(values: list[dict[str, object]]) -> tuple[list[bytes], Head]:
    """The lines and the head of a forger who computes every link anew."""
    prev, lines = str(first_prev(LEDGER, RUN)), []
    for seq, value in enumerate(values, 1):
        lines.append(canonical_bytes(value | {"seq": seq, "prev": prev}))
        prev = line_digest(lines[-1])
    return lines, Head(len(lines), prev)


@promise("K15")
def test_an_untouched_chain_has_no_finding():
    verification = verify(LINES, run=RUN, ledger_id=LEDGER, head=HEAD, table=LIVE_TABLE)
    assert verification == Verification(5, ())
    assert verification.sound is True
    assert found([], Head(0, first_prev(LEDGER, RUN))) == []


@promise("K15")
def test_a_receipt_names_the_digest_of_the_one_before_it():
    assert first_prev(LEDGER, RUN) == digest_of("receipt-chain@1", LEDGER.encode(), RUN.encode())
    assert [json.loads(line)["prev"] for line in LINES[1:]] == [digest_of("receipt@1", line) for line in LINES[:-1]]
    assert Head(5, digest_of("receipt@1", LINES[-1])) == HEAD


@promise("K15")
@pytest.mark.parametrize(
    ("lines", "findings"),
    [
        pytest.param([LINES[0], changed(LINES[1], detail="x"), *LINES[2:]], [("chain_broken", 3, 3)], id="edited"),
        pytest.param([*LINES[:4], changed(LINES[4], detail="x")], [("chain_broken", 5, 5)], id="the last one edited"),
        pytest.param(
            [LINES[0], LINES[2], LINES[1], *LINES[3:]],
            [("chain_broken", 2, 3), ("chain_broken", 3, 2), ("chain_broken", 4, 4)],
            id="reordered",
        ),
        pytest.param([*LINES[:3], LINES[2], *LINES[3:]], [("chain_broken", 4, 3)], id="repeated"),
        pytest.param([LINES[0], *LINES[2:]], [("chain_broken", 2, 3)], id="removed"),
        pytest.param(LINES[1:], [("chain_broken", 1, 2)], id="the first one removed"),
        pytest.param(LINES[:3], [("chain_truncated", 3, 3)], id="truncated"),
        pytest.param([], [("chain_missing", 0, 0)], id="missing"),
        pytest.param([*LINES, LINES[4]], [("chain_broken", 6, 5)], id="repeated at the end"),
    ],
)
def test_every_change_of_the_lines_is_found_where_it_is(lines, findings):
    assert found(lines) == findings


@promise("K15")
def test_a_foreign_runs_receipt_is_found_and_does_not_hide_the_rest():
    foreign = a_chain(run="run-2")[0][1]
    assert found([*LINES[:2], foreign, *LINES[2:]]) == [("run_mismatch", 3, 2)]
    assert found(a_chain(ledger="ledger-2")[0])[0] == ("run_mismatch", 1, 1)
    assert found([changed(LINES[0], schema="assisted-benchmark/receipt@2"), *LINES[1:]])[0] == ("run_mismatch", 1, 1)


@promise("K15")
def test_a_chain_computed_anew_does_not_end_in_the_anchored_head():
    values = [json.loads(line) for line in LINES]
    values[1]["detail"] = "forged"
    assert found(chained(values)[0]) == [("chain_broken", 5, 5)]
    assert found(chained([*values, values[2]])[0]) == [("chain_broken", 6, 6)]


@promise("K15")
@pytest.mark.parametrize("kept", [0, 1, 20, -1], ids=["a byte", "two", "some", "all but one"])
def test_a_torn_tail_is_reported(kept):
    torn = LINES[4][: kept + 1] if kept >= 0 else LINES[4][:-1]
    assert found([*LINES[:4], torn]) == [("torn_tail", 5, 0)]
    verification = verify([*LINES[:4], torn], run=RUN, ledger_id=LEDGER, head=HEAD, table=LIVE_TABLE)
    assert (verification.sound, verification.count) == (False, 4)
    assert found([*LINES, torn]) == [("torn_tail", 6, 0)]


def test_a_torn_tail_does_not_excuse_what_is_missing_beside_it():
    assert found([*LINES[:2], LINES[2][:50]]) == [("torn_tail", 3, 0), ("chain_truncated", 2, 2)]
    assert found([LINES[0][:50]]) == [("torn_tail", 1, 0), ("chain_missing", 0, 0)]
    only = Head(1, line_digest(LINES[0]))
    assert found([LINES[0][:50]], only) == [("torn_tail", 1, 0), ("chain_missing", 0, 0)]


def test_a_whole_document_at_the_end_is_not_torn():
    assert found([*LINES[:4], b'{"arguments":"","seq":5}'])[0] == ("chain_broken", 5, 0)


BAD_LINES = {
    "garbage": b"garbage",
    "not an object": b"[]",
    "a number alone": b"7",
    "a space": LINES[2].replace(b'","', b'", "', 1),
    "another key order": orjson.dumps(dict(reversed(json.loads(LINES[2]).items()))),
    "a key too many": changed(LINES[2], zzz="1"),
    "a key too few": canonical_bytes({k: v for k, v in json.loads(LINES[2]).items() if k != "tool"}),
    "an escape too many": LINES[2].replace(b'"decision"', b'"\\u0064ecision"'),
    "a number for a text": changed(LINES[2], detail=1.5),
    "null for a text": changed(LINES[2], detail=None),
    "a text for a number": changed(LINES[2], seq="3"),
    "true for a number": changed(LINES[2], seq=True),
    "a number for a text beside quotes": changed(LINES[2], detail=1, reason='""'),
    "nested too deeply to be written": LINES[2].replace(b'"detail":""', b'"detail":' + b"[" * 300 + b"]" * 300),
    "a NUL": orjson.dumps(json.loads(LINES[2]) | {"detail": "\x00"}),
    "a control character as it is": LINES[2].replace(b'"detail":""', b'"detail":"\t"'),
    "a seq that begins with a zero": LINES[2].replace(b'"seq":3', b'"seq":03'),
    "not UTF-8": LINES[2].replace(b'"detail":""', b'"detail":"\xff"'),
}


@promise("K15")
@pytest.mark.parametrize("line", BAD_LINES.values(), ids=BAD_LINES)
def test_a_line_in_any_other_spelling_is_no_receipt(line):
    assert ("chain_broken", 3, 0) in found([*LINES[:2], line, *LINES[3:]])
    assert found([line], Head(1, line_digest(line)))[0] == ("chain_broken", 1, 0)


# Of lines that nobody had to escape anything in many are read at once.
PLAIN_LINES, PLAIN_HEAD = a_chain(detail="nothing to escape")


@promise("K15")
@pytest.mark.parametrize("line", BAD_LINES.values(), ids=BAD_LINES)
@pytest.mark.parametrize("place", range(len(PLAIN_LINES) + 1))
def test_a_line_in_another_spelling_is_found_wherever_it_stands_among_plain_ones(line, place):
    assert found(PLAIN_LINES, PLAIN_HEAD) == []
    assert ("chain_broken", place + 1, 0) in found([*PLAIN_LINES[:place], line, *PLAIN_LINES[place:]], PLAIN_HEAD)


@promise("K15")
def test_a_receipt_of_another_run_ledger_or_schema_is_found_among_plain_ones():
    strangers = [
        a_chain(run="run-2", detail="")[0][1],
        a_chain(ledger="ledger-2", detail="")[0][1],
        changed(PLAIN_LINES[1], schema="assisted-benchmark/receipt@2"),
    ]
    for stranger in strangers:
        assert found([*PLAIN_LINES[:2], stranger, *PLAIN_LINES[2:]], PLAIN_HEAD) == [("run_mismatch", 3, 2)]


@promise("K15")
@pytest.mark.parametrize("escape", [b"\\u0064", b"\\/", b"\\u002F"])
def test_a_chain_computed_anew_with_an_escape_too_many_is_found_though_every_link_and_the_head_hold(escape):
    prev, lines = str(first_prev(LEDGER, RUN)), []
    for line in PLAIN_LINES:
        line = canonical_bytes(json.loads(line) | {"prev": prev}).replace(b'"detail":"', b'"detail":"' + escape)
        prev = line_digest(line)
        lines.append(line)
    assert [each[0] for each in found(lines, Head(len(lines), prev))] == ["chain_broken"] * len(lines)


def without_links(line: bytes, **fields: object) -> dict[str, object]:
    return json.loads(line) | fields


@promise("K15")
@pytest.mark.parametrize(
    ("values", "place"),
    [
        pytest.param([without_links(LINES[1])], 1, id="an outcome before its claim"),
        pytest.param([without_links(LINES[0]), without_links(LINES[0])], 2, id="two claims of a group"),
        pytest.param([without_links(LINES[0]), without_links(LINES[1]), without_links(LINES[1])], 3, id="two outcomes"),
        pytest.param([without_links(LINES[0], state="revoked"), without_links(LINES[0])], 2, id="a claim when revoked"),
        pytest.param([without_links(LINES[0], state="succeeded")], 1, id="no such edge"),
        pytest.param([without_links(LINES[1], before="")], 1, id="an outcome that moved nothing"),
    ],
)
def test_a_sequence_that_contradicts_the_table_is_found_even_if_the_chain_holds(values, place):
    lines, head = chained(values)
    assert found(lines, head) == [("receipt_inconsistent", place, place)]


def test_findings_say_what_was_found():
    verification = verify(LINES[:3], run=RUN, ledger_id=LEDGER, head=HEAD, table=LIVE_TABLE)
    detail = "2 receipts are missing at the end"
    assert verification.findings == (Finding(Reason.CHAIN_TRUNCATED, 3, 3, detail),)


OTHER_LINES, OTHER_HEAD = a_chain(run="run-2")
CHAINS = {RUN: Chain(HEAD, LIVE_TABLE), "run-2": Chain(OTHER_HEAD, LIVE_TABLE)}


def written(*lines: bytes) -> bytes:
    return b"".join(line + b"\n" for line in lines)


def in_file(raw: bytes, chains: dict[str, Chain] = CHAINS) -> list[tuple[str, str, int]]:
    """What was found in a file, in short: of which run, the reason, the line."""
    return [(run, finding.reason.value, finding.line) for run, finding in verify_export(raw, chains, LEDGER)]


@promise("K15")
def test_the_chains_of_many_runs_in_one_file_verify_until_it_is_cut():
    raw = written(*LINES, *OTHER_LINES)
    assert in_file(raw) == []
    assert in_file(raw[:-1]) == []
    assert in_file(raw[:-10]) == [("run-2", "torn_tail", 10), ("run-2", "chain_truncated", 10)]
    assert in_file(raw + OTHER_LINES[4][:80]) == [("run-2", "torn_tail", 11)]
    assert in_file(written(*LINES[:2], b"", *LINES[2:], *OTHER_LINES)) == [
        (RUN, "chain_broken", 3),
        (RUN, "chain_broken", 4),
    ]
    assert in_file(written(*LINES[:4], *OTHER_LINES)) == [(RUN, "chain_truncated", 4)]
    assert in_file(written(*LINES)) == [("run-2", "chain_missing", 0)]
    assert in_file(b"") == [(RUN, "chain_missing", 0), ("run-2", "chain_missing", 0)]
    assert in_file(b"", {}) == []


@promise("K15")
def test_receipts_out_of_place_and_of_unknown_runs_are_found_in_a_file():
    assert in_file(written(*LINES[:4], *OTHER_LINES, LINES[4])) == [
        (RUN, "chain_broken", 10),
        (RUN, "chain_truncated", 4),
    ]
    stranger, nameless = a_chain(run="run-3")[0][0], a_chain(run="")[0][0]
    for line in (stranger, nameless):
        assert in_file(written(line, *LINES, *OTHER_LINES)) == [("", "run_mismatch", 1)]
        assert in_file(written(line), {}) == [("", "run_mismatch", 1)]
    moved = changed(LINES[1], run=7)
    assert in_file(written(LINES[0], moved, *LINES[2:], *OTHER_LINES))[0] == (RUN, "chain_broken", 2)


def test_a_receipt_that_quotes_another_runs_is_still_its_own_runs():
    quoting = MemoryLedger(LEDGER, LIVE_TABLE)
    for run in CHAINS:
        quoting.open_run(run, RECORD, [])
    quoting.record(RUN, a_draft(detail=',"run":"run-2","schema":"'))
    quoting.record("run-2", a_draft(detail=',"run":"run-1","schema":"'))
    chains = {run: Chain(quoting.head(run), LIVE_TABLE) for run in CHAINS}
    assert in_file(written(*quoting.receipts(RUN), *quoting.receipts("run-2")), chains) == []


def test_receipts_of_a_recovery_have_ids_of_their_own():
    memory = MemoryLedger(LEDGER, LIVE_TABLE)
    groups = [a_group("a"), a_group("b")]
    memory.open_run(RUN, RECORD, groups)
    for group in groups:
        memory.claim(a_permit(group), RUN, a_draft())
    memory.recover(RUN, NOW)
    ends = [json.loads(line) for line in memory.receipts(RUN)][2:]
    assert len({each["id"] for each in ends}) == 2
    for end in ends:
        name = digest_of("recovery@1", end["prev"].encode(), bytes.fromhex(end["group"]))
        assert end["id"] == name[7:39]
        assert (end["candidate"], end["detail"]) == (APPROVE, "the process ended between the marker and the outcome")
