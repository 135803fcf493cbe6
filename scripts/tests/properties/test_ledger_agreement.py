"""The ledgers agree: SQLite, through restarts and crashes, with memory, and both with a model of a few lines."""

import shutil
import tempfile
from pathlib import Path

import orjson
from depth import at_depth
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from marks import promise

from assisted_benchmark.capability.states import CAPABILITY_TABLE
from assisted_benchmark.kernel.canonical import canonical_bytes, parse
from assisted_benchmark.kernel.clock import Instant
from assisted_benchmark.kernel.decision import Admitted
from assisted_benchmark.kernel.digest import digest_of
from assisted_benchmark.kernel.errors import HarnessError
from assisted_benchmark.kernel.keys import KeyRing
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.ledger import receipts
from assisted_benchmark.ledger.memory import MemoryLedger
from assisted_benchmark.ledger.protocol import Claimed, Draft, Head, Lost, Row
from assisted_benchmark.ledger.receipts import line_digest, verify, write_line
from assisted_benchmark.ledger.sqlite import SqliteLedger
from assisted_benchmark.live_policy.states import LIVE_TABLE
from assisted_benchmark.mutation.states import MUTATION_TABLE

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=30)
INSTANTS = st.builds(Instant, st.integers(0, 2**63), st.integers(0, 2**63))
DRAFTS = st.builds(Draft, TEXT, TEXT, INSTANTS, *[TEXT] * 9)


@promise("K15")
@given(
    draft=DRAFTS,
    ledger=TEXT,
    run=TEXT,
    seq=st.integers(1, 2**53 - 1),
    prev=TEXT,
    group=TEXT,
    states=st.tuples(TEXT, TEXT),
)
def test_a_receipt_line_is_the_canonical_bytes_of_what_it_says(draft, ledger, run, seq, prev, group, states):
    line = write_line(draft, ledger, run, seq, prev, group, *states)
    value = parse(line)
    assert canonical_bytes(value) == line
    assert (value["detail"], value["seq"], value["wall_ns"]) == (draft.detail, seq, str(draft.at.wall_ns))
    assert line_digest(line) == digest_of("receipt@1", line)


@promise("K15")
@given(draft=DRAFTS, group=TEXT, states=st.tuples(TEXT, TEXT), data=st.data())
@settings(max_examples=150)
def test_what_is_read_at_once_is_what_the_long_way_reads(draft, group, states, data):
    lines = []
    for _ in range(data.draw(st.integers(1, 3))):
        line = bytearray(write_line(draft, "l", "r", 1, "p", group, *states))
        for _ in range(data.draw(st.integers(0, 2))):
            place = data.draw(st.integers(0, len(line) - 1))
            line[place : place + data.draw(st.integers(0, 1))] = data.draw(
                st.binary(max_size=2) | st.sampled_from([b'","', b"\n"])
            )
        lines.append(bytes(line))
    plain = receipts._plain(receipts._spelling(run="r", ledger="l", schema=receipts.SCHEMA), lines)
    values = [receipts._read(each) for each in lines]
    if plain is not None:
        assert plain == [tuple(str(value[key]).encode() for key in receipts._WALKED) for value in values]
        assert {(value["run"], value["ledger"], value["schema"]) for value in values} == {("r", "l", receipts.SCHEMA)}
    elif all(value is not None and (value["run"], value["ledger"]) == ("r", "l") for value in values):
        assert b"\\" in b"".join(lines) or {(value["seq"], value["schema"]) for value in values} != {
            (1, receipts.SCHEMA)
        }


LINES = 6


def a_chain() -> tuple[list[bytes], Head]:
    memory = MemoryLedger("l", LIVE_TABLE)
    memory.open_run("r", b"{}", [])
    for number in range(LINES):
        memory.record("r", Draft("decision", str(number), Instant(1, 2), "not_a_candidate"))
    return list(memory.receipts("r")), memory.head("r")


CHAIN, HEAD = a_chain()


@promise("K15")
@given(data=st.data())
@settings(max_examples=60)
def test_no_rearrangement_of_a_chain_verifies(data):
    lines = data.draw(st.lists(st.sampled_from(CHAIN), max_size=LINES + 2) | st.permutations(CHAIN))
    found = verify(lines, run="r", ledger_id="l", head=HEAD, table=LIVE_TABLE)
    assert found.sound == (lines == CHAIN)


@promise("K15")
@given(place=st.integers(0, LINES - 1), data=st.data())
@settings(max_examples=60)
def test_no_changed_byte_goes_unnoticed(place, data):
    line = bytearray(CHAIN[place])
    line[data.draw(st.integers(0, len(line) - 1))] ^= data.draw(st.integers(1, 255))
    lines = [*CHAIN[:place], bytes(line), *CHAIN[place + 1 :]]
    assert not verify(lines, run="r", ledger_id="l", head=HEAD, table=LIVE_TABLE).sound


BEGUN, LATER = [bytes([number]) * 8 for number in range(3)], [bytes([number]) * 8 for number in range(3, 6)]
GROUPS = st.sampled_from([*BEGUN, *LATER])
CANDIDATES = st.sampled_from([digest_of("candidate@1", b"a"), digest_of("candidate@1", b"b")])
KEYS = KeyRing("k", b"k" * 32)
NOW = Instant(1_900_000_000_000_000_000, 1)


def answer(call):
    """What a call came to: its value, or the reason why not."""
    try:
        return call()
    except HarnessError as error:
        return error.reason


class Agreement(RuleBasedStateMachine):
    """One run, which begins with some groups and gets others later; the model is a dict of states."""

    table = LIVE_TABLE

    @property
    def states(self):
        return st.sampled_from(sorted(map(str, self.table.states)))

    @initialize()
    def start(self) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.memory = MemoryLedger("l", self.table)
        where = {"table": self.table, "keys": KEYS, "anchor": self.folder / "anchor"}
        self.where = where
        self.sqlite = SqliteLedger.create(self.folder / "l.db", ledger_id="l", **where)
        self.model: dict[bytes, tuple[str, str]] = dict.fromkeys(BEGUN, (str(self.table.initial), ""))
        self.claimed: dict[bytes, Claimed] = {}
        self.both(lambda ledger: ledger.open_run("r", b"{}", BEGUN))

    def both(self, call):
        """Ask both ledgers; they must say the same."""
        said = answer(lambda: call(self.sqlite))
        assert answer(lambda: call(self.memory)) == said
        return said

    def draft(self, kind: str, reason: str) -> Draft:
        return Draft(kind, "id", NOW, reason)

    @rule(group=GROUPS)
    def open_group(self, group) -> None:
        record = b'{"of":"' + group.hex().encode() + b'"}'
        said = self.both(lambda ledger: ledger.open_group("r", group, record, self.draft("event", "opened")))
        assert said == (group not in self.model)
        self.model.setdefault(group, (str(self.table.initial), ""))

    @rule(group=GROUPS, candidate=CANDIDATES)
    def claim(self, group, candidate) -> None:
        permit = Admitted(group, candidate, "s", "t", b"{}")
        said = self.both(lambda ledger: ledger.claim(permit, "r", self.draft("decision", "admitted")))
        if group not in self.model:
            assert said is Reason.UNKNOWN_GROUP
        elif self.model[group][0] == self.table.ready:
            assert said == Claimed(permit, "r")
            self.model[group] = (str(self.table.claimed), candidate)
            self.claimed[group] = said
        else:
            assert said == Lost(self.model[group][0])

    @rule(group=GROUPS, data=st.data())
    def settle(self, group, data) -> None:
        if group not in self.claimed:
            return
        state = data.draw(self.states)
        said = self.both(lambda ledger: ledger.settle(self.claimed[group], state, self.draft("outcome", state)))
        if said is None:
            assert self.model[group][0] == self.table.claimed
            assert (self.table.claimed, state) in self.table.edges
            self.model[group] = (state, self.model[group][1])
        else:
            claimed = self.model[group][0] == self.table.claimed
            assert not claimed or (self.table.claimed, state) not in self.table.edges

    @rule(group=GROUPS, data=st.data())
    def move(self, group, data) -> None:
        before, after = data.draw(self.states), data.draw(self.states)
        said = self.both(lambda ledger: ledger.move(group, "r", before, after, self.draft("event", after)))
        allowed = (before, after) in self.table.edges and after != self.table.claimed
        assert (said is True) == (allowed and group in self.model and self.model[group][0] == before)
        if said is True:
            self.model[group] = (after, self.model[group][1])

    @rule(group=GROUPS)
    def refuse(self, group) -> None:
        self.both(lambda ledger: ledger.record("r", self.draft("decision", "not_a_candidate"), group))

    @rule()
    def crash_and_recover(self) -> None:
        self.restart()
        lost = self.both(lambda ledger: ledger.recover("r", NOW))
        ends = self.table.after_crash
        assert set(lost) == {group for group, (state, _) in self.model.items() if state in ends}
        for group in lost:
            state, candidate = self.model[group]
            self.model[group] = (ends[state], candidate)

    @rule()
    def restart(self) -> None:
        self.sqlite.close()
        self.sqlite = SqliteLedger.open(self.folder / "l.db", **self.where)

    @invariant()
    def the_rows_are_the_models(self) -> None:
        for group, (state, candidate) in self.model.items():
            row = self.both(lambda ledger, group=group: ledger.row(group))
            assert row == Row(state, candidate, row.refusals)
        groups = self.both(lambda ledger: list(ledger.groups("r")))
        assert [(name, row[:2]) for name, row in groups] == list(self.model.items())
        records = {name: self.both(lambda ledger, name=name: ledger.group_record(name)) for name, _ in groups}
        assert records == {
            name: None if name in BEGUN else b'{"of":"' + name.hex().encode() + b'"}' for name in self.model
        }

    @invariant()
    def the_receipts_are_the_same_and_verify(self) -> None:
        lines = self.both(lambda ledger: list(ledger.receipts("r")))
        head = self.both(lambda ledger: ledger.head("r"))
        assert verify(lines, run="r", ledger_id="l", head=head, table=self.table).findings == ()
        initial = self.table.initial
        moves = [(line["group"], line["before"]) for line in map(orjson.loads, lines) if line["before"]]
        assert sorted(group for group, before in moves if before == initial) == sorted(
            group.hex() for group, (state, _) in self.model.items() if state != initial
        )

    def teardown(self) -> None:
        if hasattr(self, "sqlite"):
            self.sqlite.close()
            shutil.rmtree(self.folder)


class ChangesAgreement(Agreement):
    """Claimed by way of a prompt; a crash before the claim and one after it end differently."""

    table = MUTATION_TABLE


class OperationsAgreement(Agreement):
    """In flight from its birth."""

    table = CAPABILITY_TABLE


TestAgreement = promise("K10", "K11", "K12a", "K18")(Agreement.TestCase)
TestAgreement.settings = at_depth(25, 25)
TestChangesAgreement = promise("K10", "K11", "K12a", "K18")(ChangesAgreement.TestCase)
TestChangesAgreement.settings = at_depth(15, 25)
TestOperationsAgreement = promise("K10", "K11", "K12a", "K18")(OperationsAgreement.TestCase)
TestOperationsAgreement.settings = at_depth(15, 25)
