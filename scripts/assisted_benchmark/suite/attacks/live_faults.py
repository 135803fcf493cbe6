"""What can be wrong around one good call of a plan: its setting, its grant, its server, its moment. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from attrs import frozen

from assisted_benchmark.kernel.canonical import Json
from assisted_benchmark.kernel.clock import SECOND
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.suite.attacks.live_calls import BEFORE, LIVE, CallMoves, chosen
from assisted_benchmark.suite.attacks.moves import Move, harmless, refused
from assisted_benchmark.suite.case import ADMITTED
from assisted_benchmark.suite.live.faults import Edits as GrantEdits
from assisted_benchmark.workloads.drifts import Drift

OPEN, DECIDE, DISPATCH = range(3)
_CLOCK, _TRUST, _STORE = "clock", "trust", "store"
_NOBODY: Final = "00000000-0000-4000-8000-000000000000"

_DRIFTS: Final = {
    Drift.INSTRUCTION: "S01",
    Drift.INVISIBLE: "S02",
    Drift.INPUT_OPEN: "S04",
    Drift.INPUT_FEWER: "S04",
    Drift.INPUT_DEFAULT: "S05",
    Drift.INPUT_NAME: "S07",
    Drift.TITLE: "S09",
    Drift.ICONS: "S09",
    Drift.OUTPUT: "S10",
    Drift.ANNOTATIONS: "S12",
    Drift.META: "S11",
    Drift.UNKNOWN_KEY: "S12",
    Drift.HIDDEN: "S14",
    Drift.TWICE: "S15",
    Drift.MORE: "S17",
    Drift.DESCRIPTION: "S17",
}
_GRANTS: Final = {
    GrantEdits.MAC_BIT: ("G20", Reason.SEAL_INVALID),
    GrantEdits.MAC_CUT: ("G20", Reason.SEAL_INVALID),
    GrantEdits.MAC_EMPTY: ("G20", Reason.SEAL_INVALID),
    GrantEdits.OTHER_KEY: ("G22", Reason.SEAL_INVALID),
    GrantEdits.OTHER_PURPOSE: ("G22", Reason.SEAL_INVALID),
    GrantEdits.TYPED: ("G23", Reason.SEAL_INVALID),
    GrantEdits.MAC_NONE: ("G24", Reason.SEAL_INVALID),
    GrantEdits.ALGORITHM: ("G24", Reason.SEAL_INVALID),
    GrantEdits.UNSIGNED: ("G25", Reason.SEAL_INVALID),
    GrantEdits.UNSEALED: ("G25", Reason.SEAL_INVALID),
    GrantEdits.RESPELLED: ("G25", Reason.SEAL_INVALID),
    GrantEdits.RESEALED: ("G43", Reason.GRANT_NOT_FROM_POLICY),
    GrantEdits.NARROWER: ("G43", Reason.GRANT_NOT_FROM_POLICY),
    GrantEdits.LONGER: ("G05", Reason.GRANT_NOT_FROM_POLICY),
    GrantEdits.TIMELESS: ("G05", Reason.GRANT_NOT_FROM_POLICY),
    GrantEdits.OTHER_RUN: ("G02", Reason.CROSS_RUN),
    GrantEdits.OTHER_VM: ("C64", Reason.WRONG_VM),
    GrantEdits.OTHER_CONTRACT: ("G08", Reason.CONTRACT_DRIFT),
}


@frozen(slots=False)
class FaultMoves:
    """The moves that leave the call as it is."""

    good: CallMoves

    def all(self) -> Iterator[Move]:
        """Every one that applies."""
        yield from self._of_the_past()
        yield from self._of_the_setting()
        yield from self._of_the_grant()
        yield from self._of_the_dispatch()

    def benign(self) -> Iterator[Move]:
        """What changes around the call and must not matter."""
        reordered = self._server("drift_tools", how=Drift.REORDERED.value, turn=1)
        yield harmless("S27", "list-order", {LIVE}, faults=(reordered,))
        for name, fault in (
            ("a-millisecond-before", self._at_turn(advance=f"{self._lifetime_ms - 1}ms")),
            ("opened-again", {"advance": "1ms", "at": "open"}),
        ):
            yield harmless("G03", name, {_CLOCK}, faults=(fault,))

    def _of_the_past(self) -> Iterator[Move]:
        """What was dispatched before; `again` is the same call, after another one of its choice or after a loss."""
        good = self.good
        if not good.last:
            return
        for other in good.step.candidates:
            turn = ({"step": good.number, **chosen(good.step, other)}, ADMITTED)
            threat = "G35" if other is good.candidate else "G14"
            yield refused(threat, f"after-{other.name}", Reason.ALREADY_SELECTED, {BEFORE}, turns=(turn,))
        lost = ({"step": good.number, **chosen(good.step, good.candidate)}, Reason.OUTCOME_UNKNOWN.value)
        fault = self._server("drop_answer", nth=self._nth)
        reason = Reason.ALREADY_SELECTED
        yield refused("G15", "after-a-loss", reason, {BEFORE, LIVE}, turns=(lost,), faults=(fault,))

    @property
    def _nth(self) -> int:
        """Which of the calls at its server this one is."""
        good = self.good
        steps = good.case.plan.steps[: good.number]
        return sum(each.server.id == good.candidate.server for each in steps)

    def _of_the_setting(self) -> Iterator[Move]:
        vm = self.good.case.run.vm
        for threat, key, text, reason in (
            ("G02", "run", "another-run", Reason.CROSS_RUN),
            ("G27", "session", "somebody", Reason.WRONG_PRINCIPAL),
            ("C64", "vm", _NOBODY, Reason.WRONG_VM),
            ("C65", "vm", vm.upper(), Reason.WRONG_VM),
            ("C65", "vm", vm.replace("-", ""), Reason.WRONG_VM),
            ("C66", "vm", _NOBODY.replace("4", "0").replace("8", "0"), Reason.WRONG_VM),
            ("C66", "vm", "ffffffff-ffff-ffff-ffff-ffffffffffff", Reason.WRONG_VM),
            ("C66", "vm", f"{vm[:14]}1{vm[15:]}", Reason.WRONG_VM),
            ("C67", "vm", f"{vm[:-1]}{'0' if vm[-1] != '0' else '1'}", Reason.WRONG_VM),
            ("G07", "host", "another-host", Reason.WRONG_HOST),
        ):
            if text != getattr(self.good.case.run, key):
                fault = self._at_turn(setting={key: text})
                yield refused(threat, f"{key}-{text[:8]}-{text[-8:]}", reason, {key}, faults=(fault,))
        lifetime = self._lifetime_ms
        forward, back = self._at_turn(advance=f"{lifetime}ms"), self._at_turn(set_back="5s")
        yield refused("G03", "at-its-end", Reason.EXPIRED, {_CLOCK}, faults=(forward,))
        yield refused("G04", "before-its-start", Reason.NOT_YET_VALID, {_CLOCK}, faults=(back,))
        if self.good.number > 1:
            went = {"advance": "10s", "turn": 1}
            yield refused("G04", "back-again", Reason.CLOCK_ROLLBACK, {_CLOCK}, faults=(went, back))
        both = (forward, self._at_turn(set_back=f"{lifetime - 1}ms"))
        yield refused("G07", "monotonic-alone", Reason.EXPIRED, {_CLOCK}, faults=both)
        yield refused("G07", "boot", Reason.WRONG_HOST, {"host"}, faults=(self._at_turn(reboot="boot-2"),))
        revoked = self._at_turn(revoke="grant")
        yield refused("G40", "before", Reason.REVOKED, {_TRUST, _STORE, BEFORE}, faults=(revoked,))
        down = self._at_turn(store="unavailable")
        yield refused("G30", "down", Reason.STORE_UNAVAILABLE, {_STORE}, faults=(down,))

    def _of_the_grant(self) -> Iterator[Move]:
        for edit, (threat, reason) in _GRANTS.items():
            if edit is GrantEdits.NARROWER and not self.good.case.plan.steps[-1].choice:
                continue
            faults = ({"grant": edit.value},)
            yield refused(threat, edit.value, reason, {_TRUST}, phase=OPEN, faults=faults, ends=True)
        for threat, kind, reason in (
            ("G12", "policy", Reason.POLICY_DRIFT),
            ("C21", "contract", Reason.CONTRACT_DRIFT),
        ):
            yield refused(threat, kind, reason, {_TRUST}, phase=OPEN, faults=({kind: "changed"},), ends=True)

    def _of_the_dispatch(self) -> Iterator[Move]:
        server = self.good.candidate.server
        for threat in ("C16", "C17", "C20"):
            fault = self._at_turn(substitute=server)
            yield self._live(threat, "substituted", Reason.CONTRACT_DRIFT, (fault,))
        for how, threat in _DRIFTS.items():
            fault = self._server("drift_tools", how=how.value, at="observe")
            yield self._live(threat, how.value, Reason.CONTRACT_DRIFT, (fault,))
        storm = tuple(self._server("drift_tools", how=how.value, at="observe") for how in (Drift.META, Drift.TITLE) * 4)
        yield self._live("S26", "storm", Reason.CONTRACT_DRIFT, storm)
        revoked = self._at_turn(revoke="grant", at="claimed")
        yield self._live("G40", "behind-the-marker", Reason.REVOKED, (revoked,))
        late = self._at_turn(advance=f"{self._lifetime_ms}ms", at="claimed")
        yield self._live("G03", "behind-the-marker", Reason.EXPIRED, (late,))
        if self.good.last:
            for other in self.good.step.candidates:
                threat = "G32" if other is self.good.candidate else "G33"
                fault = self._at_turn(race=other.name)
                yield self._live(threat, f"race-{other.name}", Reason.LOST_RACE, (fault,), sends=1)
        faults = [("S21", "double_answer", Reason.RESULT_INVALID), ("S21", "foreign_id", Reason.OUTCOME_UNKNOWN)]
        faults.append(("S19", "contradict", Reason.RESULT_INVALID))
        if self.good.step.tool.output_schema is not None:
            faults.append(("S19", "bad_output", Reason.RESULT_INVALID))
        for threat, does, reason in faults:
            yield self._live(threat, does, reason, (self._server(does, nth=self._nth),), sends=1)

    def _live(self, threat: str, name: str, reason: Reason, faults: tuple[Json, ...], sends: int = 0) -> Move:
        return refused(threat, name, reason, {LIVE, BEFORE}, phase=DISPATCH, faults=faults, sends=sends)

    @property
    def _lifetime_ms(self) -> int:
        return self.good.case.plan.policy.expires_after_ns * 1000 // SECOND

    def _at_turn(self, at: str = "", **kind: Json) -> Json:
        return {**kind, **({"at": at} if at else {})}

    def _server(self, does: str, *, at: str = "", turn: int = 0, **more: Json) -> Json:
        fault = {"server": {"id": self.good.candidate.server, "does": does, **more}}
        return {**fault, **({"at": at} if at else {}), **({"turn": turn} if turn else {})}
