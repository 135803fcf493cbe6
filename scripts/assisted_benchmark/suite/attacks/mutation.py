"""Attacks on the broker of changes: from one good proposal, and from its confirmation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Final

from attrs import frozen

from assisted_benchmark.kernel.canonical import Json, parse
from assisted_benchmark.kernel.reasons import LIVE_ORDER, Reason
from assisted_benchmark.suite.attacks.moves import Move, Station, joined
from assisted_benchmark.suite.attacks.mutation_moves import ConfirmMoves, ProposeMoves
from assisted_benchmark.suite.attacks.row import distinct, document_of, fault_rows, said, scenario_of, sound
from assisted_benchmark.suite.attacks.spelling import spelled
from assisted_benchmark.suite.case import ADMITTED, Case
from assisted_benchmark.suite.live.samples import Draw
from assisted_benchmark.suite.mutation.expand import Origin, cases_of
from assisted_benchmark.suite.mutation.scenario import BROKER, Human, MutationCase
from assisted_benchmark.suite.mutation.scenario_document import scenario_from
from assisted_benchmark.suite.mutation.scenario_shape import MUTATION_SCENARIO

_BYTES: Final = (*LIVE_ORDER[: LIVE_ORDER.index(Reason.MALFORMED_NAME)], Reason.ARGUMENTS_INVALID)
# By phase: what is read, the spec, the token's look, the token, a cancellation, the consumption, the binding, who can
# ask, the state of the question, the answer, the last look, the gate at the write, the endpoint's word.
_PHASES: Final = (
    _BYTES,
    (
        Reason.UNKNOWN_CHANGE,
        Reason.UNSHOWABLE_VALUE,
        Reason.NON_CANONICAL_NUMBER,
        Reason.ARGUMENTS_INVALID,
        Reason.STORE_UNAVAILABLE,
        Reason.DRY_RUN_FAILED,
    ),
    (Reason.UNKNOWN_TOKEN,),
    (
        Reason.STORE_UNAVAILABLE,
        Reason.UNKNOWN_TOKEN,
        Reason.REPLAYED,
        Reason.CLOCK_ROLLBACK,
        Reason.EXPIRED,
    ),
    (Reason.CANCELLED,),
    (Reason.REPLAYED,),
    (Reason.BINDING_MISMATCH,),
    (Reason.UNSUPPORTED_BY_CLIENT,),
    (Reason.REPLAYED, Reason.TIMED_OUT),
    (Reason.CANCELLED, Reason.DECLINED, Reason.TIMED_OUT, Reason.CONFIRMATION_FAILED),
    (Reason.CLOCK_ROLLBACK, Reason.EXPIRED, Reason.BINDING_MISMATCH, Reason.CANCELLED),
    (Reason.CLOCK_ROLLBACK, Reason.EXPIRED, Reason.BINDING_MISMATCH, Reason.CANCELLED),
    (Reason.FAILED, Reason.OUTCOME_UNKNOWN, Reason.RESULT_INVALID),
)
ORDER: Final = tuple(Station(phase, each.value) for phase, reasons in enumerate(_PHASES) for each in reasons)
_STORE: Final = ("advance", "set_back", "reboot", "tamper", "mapping", "contract", "cancel", "endpoint")


@frozen(slots=False)
class ChangePlace:
    """The proposal of a case that plays a plan, or (`confirms`) its confirmation."""

    case: MutationCase
    confirms: bool
    draw: Draw

    @property
    def name(self) -> str:
        return f"{self.case.id}@{2 if self.confirms else 1}"

    @property
    def broker(self) -> str:
        return BROKER

    @property
    def order(self) -> Sequence[Station]:
        return ORDER

    @cached_property
    def _proposed(self) -> dict[str, Json]:
        """The good proposal's arguments."""
        value: dict[str, Json] = parse(self.case.agent.shots[0].raw or b"{}")
        return value

    @property
    def _makes(self) -> ProposeMoves | ConfirmMoves:
        kind = ConfirmMoves if self.confirms else ProposeMoves
        return kind(self.case, self._proposed, self.draw)

    def moves(self) -> Sequence[Move]:
        return distinct(self._makes.all())

    def benign(self) -> Sequence[Move]:
        return tuple(self._makes.benign())

    def row(self, moves: Sequence[Move], expected: Station | None) -> dict[str, Json]:
        word = ADMITTED if expected is None else expected.reason
        turns: list[tuple[Json, str]] = [({"propose_raw": spelled(self._proposed)}, ADMITTED)] if self.confirms else []
        turns += [turn for move in moves for turn in move.turns]
        script = [*({**turn, **said(word)} for turn, word in turns), {**self._attacked(moves), **said(word)}]
        decisions = [*(word for _, word in turns), word]
        row: dict[str, Json] = {"agent": {"script": script}, "expect": {"decisions": decisions}}
        for move in moves:
            row.update(move.keys)
        faults = fault_rows(moves, first=_STORE)
        return {**row, "faults": faults} if faults else row

    def _attacked(self, moves: Sequence[Move]) -> dict[str, Json]:
        edits, keys = joined(moves), {key: each for move in moves for key, each in move.turn.items()}
        if not self.confirms:
            return {"propose_raw": spelled(self._proposed, edits), **keys}
        if edits:
            raw = {"confirm_raw": spelled(ConfirmMoves.MADE_UP, edits)}
            return {**raw, **{key: each for key, each in keys.items() if key == "session"}}
        return {"confirm": "last", **keys}

    def sends(self, moves: Sequence[Move]) -> int:
        before = sum("confirm" in turn and word == ADMITTED for move in moves for turn, word in move.turns)
        own = int(self.confirms) if moves[0].station is None else moves[0].sends
        return before + own

    def scenario(self, rows: Mapping[str, Json]) -> dict[str, Json]:
        return scenario_of(MUTATION_SCENARIO, "changes", self.case, ("seed", "run", "session"), rows)

    def cases(self, scenario: Mapping[str, Json]) -> tuple[Case, ...]:
        document = document_of(scenario, BROKER)
        return sound(document, cases_of(scenario_from(document), Origin(self.case.contract, self.case.source)))


def places(case: MutationCase, draw: Draw) -> Iterator[ChangePlace]:
    """The proposal and the confirmation."""
    yield ChangePlace(case, False, draw)
    yield ChangePlace(case, True, draw)


def attackable(case: MutationCase) -> bool:
    """Whether a case plays a plan to its end, with a person who says yes."""
    played = case.agent.plans and len(case.agent.shots) == 2 and set(case.expect.decisions or ()) == {ADMITTED}
    return played and not case.faults and case.human is Human.ACCEPT and case.allow_unconfirmed is None
