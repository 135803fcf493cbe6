"""Makes a case's declared faults happen, each at its moment, once."""

from __future__ import annotations

from collections.abc import Callable

from attrs import evolve

from assisted_benchmark.contract.model import Contract
from assisted_benchmark.kernel.canonical import Canonical, Json, canonical_bytes
from assisted_benchmark.kernel.decision import Refused
from assisted_benchmark.kernel.keys import Key, Purpose
from assisted_benchmark.live_policy.dispatch import Moment
from assisted_benchmark.live_policy.ending import Finding, TornDown
from assisted_benchmark.live_policy.grant import group_key
from assisted_benchmark.live_policy.states import State
from assisted_benchmark.suite.instruments import BrokerDiedError, CutOff
from assisted_benchmark.suite.live.faults import ANY_TURN, At, Edits, Fault, Kind
from assisted_benchmark.suite.live.grant_edits import edited_grant
from assisted_benchmark.suite.live.scenario import RECORDED, LiveCase
from assisted_benchmark.suite.live.seat import Seat, host_identity
from assisted_benchmark.suite.strikes import Waiting
from assisted_benchmark.workloads.faults import Fault as ServerFault


class Experiment:
    """The faults of one case over its seat. `tell` is told of each that strikes.

    `injected` counts the calls that the rivals of races caused, `rivals` their proposals. `presented` are the bytes
    that are opened in place of the grant's own, if somebody edited them.
    """

    def __init__(self, case: LiveCase, seat: Seat, ledger: CutOff, tell: Callable[[Fault], None]) -> None:
        self.asides: list[str] = []
        self.injected = 0
        self.rivals = 0
        self.presented = b""
        self._case = case
        self._seat = seat
        self._ledger = ledger
        self._tell = tell
        self._waiting = Waiting(case.faults, len(case.agent.shots) or len(case.agent.plan))

    def unstruck(self) -> tuple[str, ...]:
        """The faults whose moment never came."""
        return tuple(f"{each.kind} at {each.at}" for each in self._waiting.left)

    def next_turn(self) -> None:
        """The agent makes its next proposal."""
        self._waiting.turn += 1

    def reach(self, at: At) -> None:
        """This moment has come: whatever was to strike now strikes."""
        for fault in self._waiting.take(lambda each: each.at is at, any_turn=at in ANY_TURN):
            self._tell(fault)
            self._strike(fault)

    def on_moment(self, moment: Moment) -> None:
        """The broker's own moments."""
        self.reach(At(moment.value))

    @property
    def opens_again(self) -> bool:
        """Whether the grant is opened by another broker than the one that sealed it."""
        return any(each.at is At.OPEN for each in self._waiting.left)

    def _strike(self, fault: Fault) -> None:
        seat, value = self._seat, fault.value
        match fault.kind:
            case Kind.ADVANCE:
                seat.clock.advance(value)
            case Kind.SET_BACK:
                seat.clock.set_wall(seat.clock.now().wall_ns - value)
            case Kind.REBOOT:
                seat.clock.reboot(value)
            case Kind.SERVER:
                said = {"kind": value["does"], **{key: value[key] for key in ("tool", "nth", "how") if key in value}}
                armed = ServerFault.parse(said)
                seat.world.arm(value["id"], armed)
            case Kind.KILL:
                seat.world.kill(value)
            case Kind.SUBSTITUTE:
                seat.world.substitute(value)
            case Kind.CRASH:
                raise BrokerDiedError
            case Kind.POLICY:
                seat.policy = evolve(seat.policy, version=seat.policy.version + 1)
            case Kind.CONTRACT:
                seat.policy = evolve(seat.policy, contract=_changed(seat.policy.contract))
            case Kind.STORE:
                self._ledger.down = True
            case Kind.SETTING:
                self._set(value)
            case Kind.GRANT:
                self._edit(Edits(value))
            case Kind.RACE:
                self._race(value)
            case Kind.CANCEL:
                self._seat.broker.abort(self._seat.session)
            case Kind.REVOKE:
                self._seat.broker.revoke(self._seat.grant.digest)
            case Kind.TEARDOWN:
                self.asides.append(_word(self._seat.broker.teardown(self._seat.session)))
            case Kind.RECONCILE:
                self.asides.append(self._reconcile(by_operator=value == "operator"))

    def _set(self, value: dict[str, str]) -> None:
        changes: dict[str, Json] = {{"session": "principal"}.get(key, key): each for key, each in value.items()}
        if "host" in changes:
            self._seat.machine.host = changes["host"] = host_identity(value["host"])
        self._seat.session = self._seat.session._replace(**changes)

    def _edit(self, how: Edits) -> None:
        seat = self._seat
        edited = edited_grant(seat.grant, how, seat.keys)
        self.presented = edited.raw
        if edited.sealed is not None:
            seat.grant = edited.sealed
            seat.session = seat.session._replace(grant=edited.sealed.digest)

    def _race(self, candidate: str) -> None:
        other = self._seat.make_broker(self._case)
        other.open(self._seat.grant.data, self._seat.session)
        before = self._seat.world.total
        step = self._case.plan.steps[-1]
        chosen = next(each for each in step.candidates if each.name == candidate)
        call = {"server": chosen.server, "tool": chosen.tool, "arguments": Canonical(chosen.arguments).value}
        self.rivals += 1
        other.propose(self._seat.session, canonical_bytes(call))
        self.injected += self._seat.world.total - before

    def _reconcile(self, *, by_operator: bool) -> str:
        """Record what the oracle saw of the unresolved call (of the last one, if none is unresolved)."""
        seat = self._seat
        named = [(group_key(seat.grant.digest, step.index), step) for step in self._case.plan.steps]
        rows = [(seat.ledger.row(key), key, step) for key, step in named]
        _, key, step = next((each for each in rows if each[0] and each[0].state == State.UNRESOLVED), rows[-1])
        starts = seat.world.starts(step.server.id)
        acted = any(event.tool == step.tool.name and event.kind != "rejected" for start in starts for event in start)
        state = State.SUCCEEDED if acted else State.FAILED
        finding = Finding(key.hex(), state, canonical_bytes({"acted": acted}))
        operator = seat.keys.key(Purpose.OPERATOR)
        signer = operator if by_operator else Key(operator.id, Purpose.OPERATOR, b"guessed by an agent")
        answer = seat.broker.reconcile(seat.grant.digest, finding, finding.signed(signer))
        return answer.reason.value if isinstance(answer, Refused) else RECORDED


def _word(answer: TornDown | Refused) -> str:
    if isinstance(answer, Refused):
        return answer.reason.value
    return answer.state.value if answer.reason is None else answer.reason.value


def _changed(contract: Contract) -> Contract:
    """The contract with one word of one tool's description changed, as a new pin would have it."""
    first = contract.servers[0]
    tool = first.tools[0]
    definition = {**tool.definition.value, "description": "Another description than was pinned."}
    server = evolve(first, tools=(evolve(tool, definition=Canonical.of(definition)), *first.tools[1:]))
    return evolve(contract, servers=(server, *contract.servers[1:]))
