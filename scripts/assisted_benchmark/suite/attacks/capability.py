"""Attacks on the capability broker: from one good request for a grant, and from the call that is made under it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Final

from attrs import frozen

from assisted_benchmark.capability.admission import EARLY, LATE
from assisted_benchmark.capability.projection import Projection
from assisted_benchmark.capability.registry import Operation, Registry
from assisted_benchmark.kernel.canonical import Json
from assisted_benchmark.kernel.digest import Digest
from assisted_benchmark.kernel.reasons import LIVE_ORDER, Reason
from assisted_benchmark.suite.attacks.capability_moves import CallMoves, GrantMoves, Phase
from assisted_benchmark.suite.attacks.moves import Move, Station, joined
from assisted_benchmark.suite.attacks.row import distinct, document_of, fault_rows, scenario_of, sound
from assisted_benchmark.suite.attacks.spelling import spelled
from assisted_benchmark.suite.capability.expand import Origin, cases_of
from assisted_benchmark.suite.capability.naming import short_name
from assisted_benchmark.suite.capability.scenario import BROKER, COMPLETED, GRANTED, CapabilityCase, Person
from assisted_benchmark.suite.capability.scenario_document import scenario_from
from assisted_benchmark.suite.capability.scenario_shape import CAPABILITY_SCENARIO
from assisted_benchmark.suite.case import Case
from assisted_benchmark.suite.live.samples import Draw

_BYTES: Final = LIVE_ORDER[: LIVE_ORDER.index(Reason.MALFORMED_NAME)]
_PHASES: Final[dict[Phase, tuple[Reason, ...]]] = {
    Phase.WHOSE: (Reason.BROKER_MISMATCH,),
    Phase.READ: (*_BYTES, Reason.ARGUMENTS_INVALID),
    Phase.EARLY: tuple(dict.fromkeys(check.reason for check in EARLY)),
    Phase.REACHED: (Reason.DEADLINE_EXCEEDED, Reason.INSTANCE_NOT_FOUND, Reason.AMBIGUOUS_INSTANCE),
    Phase.MET: (Reason.IDEMPOTENCY_CONFLICT, Reason.REQUEST_ID_CONFLICT, Reason.REPLAY_WINDOW_EXPIRED),
    Phase.AGREED: (Reason.DEADLINE_EXCEEDED, Reason.PROTOCOL_MISMATCH),
    Phase.JUDGED: tuple(dict.fromkeys((*(check.reason for check in LATE), Reason.NOT_FOUND))),
    Phase.ASKED: (
        Reason.INVALID_REQUEST,
        Reason.CAPABILITY_UNAVAILABLE,
        Reason.CONSENT_REQUIRED,
        Reason.CONSENT_REPLAY,
    ),
    Phase.ADMITTED: (Reason.STATE_CONFLICT, Reason.STORE_UNAVAILABLE),
    Phase.LEAVING: (Reason.REVOKED, Reason.WRONG_PUBLICATION),
    Phase.TOLD: (Reason.FAILED, Reason.OUTCOME_UNKNOWN, Reason.RESULT_INVALID),
}
ORDER: Final = tuple(Station(phase, each.value) for phase, reasons in _PHASES.items() for each in reasons)

# By their registries' digests: making one takes long.
_PROJECTED: Final[dict[Digest, Projection]] = {}


@frozen(slots=False)
class OperationPlace:
    """The request for a grant of a case that plays a plan, or (`calls`) the call under it."""

    case: CapabilityCase
    calls: bool
    draw: Draw

    @property
    def name(self) -> str:
        return f"{self.case.id}@{2 if self.calls else 1}"

    @property
    def broker(self) -> str:
        return BROKER

    @property
    def order(self) -> Sequence[Station]:
        return ORDER

    @cached_property
    def _operation(self) -> Operation:
        identity = self.case.agent.shots[-1].operation
        return next(each for each in self.case.registry.operations if each.id == identity)

    @property
    def _short(self) -> str:
        return short_name(self.case.registry, self._operation.id)

    @cached_property
    def _input(self) -> dict[str, Json]:
        value: dict[str, Json] = self.case.agent.shots[-1].arguments.value["input"]
        return value

    @cached_property
    def _makes(self) -> CallMoves | GrantMoves:
        registry = self.case.registry
        projection = projected(registry)
        if self.calls:
            return CallMoves(registry, projection, self._operation, self._short, self._input, self.draw)
        return GrantMoves(registry, projection, self._operation, self._short, self.draw)

    def moves(self) -> Sequence[Move]:
        return distinct(self._makes.all())

    def benign(self) -> Sequence[Move]:
        return tuple(self._makes.benign())

    def row(self, moves: Sequence[Move], expected: Station | None) -> dict[str, Json]:
        word = (COMPLETED if self.calls else GRANTED) if expected is None else expected.reason
        turns: list[tuple[Json, str]] = [({"request_grant": self._short}, GRANTED)] if self.calls else []
        turns += [turn for move in moves for turn in move.turns]
        attacked = {**self._attacked(moves), "comes_to": word}
        script = [*({**turn, "comes_to": word} for turn, word in turns), attacked]
        decisions = [*(word for _, word in turns), word]
        row: dict[str, Json] = {"agent": {"script": script}, "expect": {"decisions": decisions}}
        for move in moves:
            row.update(move.keys)
        faults = fault_rows(moves, first=("advance", "host", "enrolled", "revoke"))
        return {**row, "faults": faults} if faults else row

    def _attacked(self, moves: Sequence[Move]) -> dict[str, Json]:
        keys = {key: each for move in moves for key, each in move.turn.items()}
        edits, good = joined(moves), self._makes
        if edits or "tool" in keys:
            # Whatever is wrong in the text itself is refused before any grant is looked at.
            raw = {"tool": good.tool, "arguments": spelled(good.arguments, edits)}
            return {**raw, **{key: each for key, each in keys.items() if key not in good.structured}}
        return {key: each for key, each in {**good.turn, **keys}.items() if each is not None}

    def sends(self, moves: Sequence[Move]) -> int:
        before = sum("call" in turn and word == COMPLETED for move in moves for turn, word in move.turns)
        own = int(self.calls) if moves[0].station is None else moves[0].sends
        return before + own

    def scenario(self, rows: Mapping[str, Json]) -> dict[str, Json]:
        return scenario_of(CAPABILITY_SCENARIO, "registry", self.case, ("seed", "run", "client"), rows)

    def cases(self, scenario: Mapping[str, Json]) -> tuple[Case, ...]:
        document = document_of(scenario, BROKER)
        return sound(document, cases_of(scenario_from(document), Origin(self.case.registry, self.case.source)))


def places(case: CapabilityCase, draw: Draw) -> Iterator[OperationPlace]:
    """The request for the grant, and the call."""
    yield OperationPlace(case, False, draw)
    yield OperationPlace(case, True, draw)


def attackable(case: CapabilityCase) -> bool:
    """Whether a case plays a plan to its end, with a person who consents."""
    played = case.agent.plans and case.expect.decisions == (GRANTED, COMPLETED)
    usual = case.person is Person.APPROVE and not case.standing and not case.faults
    return played and usual and len(case.eligible) == len(case.registry.operations)


def projected(registry: Registry) -> Projection:
    """The tools of a registry; made once for each."""
    if registry.digest not in _PROJECTED:
        _PROJECTED[registry.digest] = Projection(registry)
    return _PROJECTED[registry.digest]
