"""Attacks on the live broker: from one good call of a plan, everything that must not reach a server in its place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from attrs import frozen

from assisted_benchmark.kernel.canonical import Json
from assisted_benchmark.kernel.reasons import LIVE_ORDER, Reason
from assisted_benchmark.suite.attacks.live_calls import CallMoves, chosen
from assisted_benchmark.suite.attacks.live_faults import DECIDE, DISPATCH, OPEN, FaultMoves
from assisted_benchmark.suite.attacks.moves import Move, Station, joined
from assisted_benchmark.suite.attacks.row import distinct, document_of, fault_rows, said, scenario_of, sound
from assisted_benchmark.suite.attacks.spelling import spelled
from assisted_benchmark.suite.case import ADMITTED, Case
from assisted_benchmark.suite.live.expand import Origin, cases_of
from assisted_benchmark.suite.live.in_process import has_model
from assisted_benchmark.suite.live.samples import Draw
from assisted_benchmark.suite.live.scenario import BROKER, LiveCase
from assisted_benchmark.suite.live.scenario_document import scenario_from
from assisted_benchmark.suite.live.scenario_shape import SCENARIO

_OPENING: Final = (
    Reason.STORE_UNAVAILABLE,
    Reason.SEAL_INVALID,
    Reason.UNKNOWN_GRANT,
    Reason.CROSS_RUN,
    Reason.WRONG_PRINCIPAL,
    Reason.WRONG_VM,
    Reason.WRONG_HOST,
    Reason.POLICY_DRIFT,
    Reason.CONTRACT_DRIFT,
    Reason.GRANT_NOT_FROM_POLICY,
)
_DISPATCHING: Final = (
    Reason.SERVER_UNAVAILABLE,
    Reason.CONTRACT_DRIFT,
    Reason.LOST_RACE,
    Reason.REVOKED,
    Reason.WRONG_HOST,
    Reason.EXPIRED,
    Reason.CANCELLED,
    Reason.LATE_RESULT,
    Reason.OUTCOME_UNKNOWN,
    Reason.RESULT_INVALID,
)
ORDER: Final = (
    *(Station(OPEN, each.value) for each in _OPENING),
    *(Station(DECIDE, each.value) for each in LIVE_ORDER),
    *(Station(DISPATCH, each.value) for each in _DISPATCHING),
)


@frozen(slots=False)
class LivePlace:
    """One step's call of a case whose calls are all admitted."""

    good: CallMoves

    @property
    def name(self) -> str:
        good = self.good
        return f"{good.case.id}@{good.number}{f'.{good.candidate.name}' if good.step.choice else ''}"

    @property
    def broker(self) -> str:
        return BROKER

    @property
    def order(self) -> Sequence[Station]:
        return ORDER

    def moves(self) -> Sequence[Move]:
        found = (*self.good.all(), *FaultMoves(self.good).all())
        return distinct(found)

    def benign(self) -> Sequence[Move]:
        return (*self.good.benign(), *FaultMoves(self.good).benign())

    def row(self, moves: Sequence[Move], expected: Station | None) -> dict[str, Json]:
        steps = self.good.case.plan.steps
        prefix = [
            ({"step": each.index + 1, **chosen(each, each.candidates[0])}, ADMITTED)
            for each in steps[: self.good.step.index]
        ]
        turns = [*prefix, *(turn for move in moves for turn in move.turns)]
        word = ADMITTED if expected is None else expected.reason
        attacked = {"propose": spelled(self.good.call, joined(moves)), **said(word)}
        opening = expected is not None and expected.phase == OPEN
        decisions = [word] if opening else [*(word for _, word in turns), word]
        script = [*({**turn, **said(word)} for turn, word in turns), attacked]
        faults = fault_rows(moves, first=_BEFORE_THE_STORE)
        row: dict[str, Json] = {"agent": {"script": script}, "expect": {"decisions": decisions}}
        return {**row, "faults": faults} if faults else row

    def sends(self, moves: Sequence[Move]) -> int:
        before = sum(len(move.turns) for move in moves)
        opening = any(move.station is not None and move.station.phase == OPEN for move in moves)
        own = 1 if moves[0].station is None else moves[0].sends
        return 0 if opening else self.good.step.index + before + own

    def scenario(self, rows: Mapping[str, Json]) -> dict[str, Json]:
        return scenario_of(SCENARIO, "policy", self.good.case, ("task", "seed", "run", "vm", "session", "host"), rows)

    def cases(self, scenario: Mapping[str, Json]) -> tuple[Case, ...]:
        case = self.good.case
        document = document_of(scenario, BROKER)
        origin = Origin(policy=case.plan.policy, pins=case.pins, folder=case.folder, source=case.source)
        return sound(document, cases_of(scenario_from(document), origin))


_BEFORE_THE_STORE: Final = ("advance", "set_back", "setting", "revoke")


def places(case: LiveCase, draw: Draw) -> Iterator[LivePlace]:
    """Each call of a case that plays its plan, and each of its choice's siblings."""
    for step in case.plan.steps:
        for candidate in step.candidates:
            yield LivePlace(CallMoves(case, step, candidate, draw))


def attackable(case: LiveCase) -> bool:
    """Whether every call of the case is good, and its servers are models."""
    plans = bool(case.agent.plan) and case.agent.outside is None
    modelled = all(has_model(server) for server in case.plan.policy.contract.servers)
    return plans and modelled and not case.faults and set(case.expect.decisions or ()) == {ADMITTED}
