"""What can be wrong with one request for a grant, with one call under it, and around them. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import IntEnum
from typing import Final

from attrs import frozen

from assisted_benchmark.capability.projection import Projection
from assisted_benchmark.capability.registry import Operation, Registry, ResultKind
from assisted_benchmark.kernel.canonical import Canonical, Json
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.suite.attacks.judging import fits, misspelled
from assisted_benchmark.suite.attacks.moves import Move, harmless, refused
from assisted_benchmark.suite.attacks.spelling import Edits, text_of
from assisted_benchmark.suite.attacks.values import Change, document_changes, object_changes, plain, too_large
from assisted_benchmark.suite.capability.scenario import COMPLETED, FIRST_INSTANCE
from assisted_benchmark.suite.live.samples import Draw

_TOOL, _DOCUMENT, _ARGUMENTS, _MORE, _WHO, _GRANT = "tool", "document", "arguments", "more", "who", "grant"
_INSTANCE, _STORE, _HOST, _BEFORE, _ASKED, _TIME = "instance", "store", "host", "before", "asked", "time"
# What stands in a call's text: of such calls nothing else can be said at once.
_TEXT: Final = frozenset((_DOCUMENT, _ARGUMENTS, _MORE, _INSTANCE))
_REQUEST: Final = "plan"


class Phase(IntEnum):
    """When a refusal comes: whose session it is, what was read, who was reached, and so on to the host's word."""

    WHOSE = 0
    READ = 1
    EARLY = 2
    REACHED = 3
    MET = 4
    AGREED = 5
    JUDGED = 6
    ASKED = 7
    ADMITTED = 8
    LEAVING = 9
    TOLD = 10


def _names(tool: str) -> Iterator[Move]:
    """Names that look or sound like the tool that is meant; a name that is not listed is the name of nothing."""
    middle = len(tool) // 2
    for threat, name, text in (
        ("C01", "nobody-s", "pulp_control_nothing"),
        ("C02", "case", tool.swapcase()),
        ("C04", "cyrillic", f"{tool}\u0456"),
        ("C05", "joiner", f"{tool[:middle]}\u200d{tool[middle:]}"),
        ("C06", "override", f"\u202e{tool}\u202c"),
        ("C07", "tags", f"{tool}\U000e0061"),
        ("C09", "composed", f"{tool}\u00e9"),
        ("C10", "blank", f"{tool} "),
        ("C10", "long", "n" * 129),
        ("C11", "confirm", "confirm_change"),
        ("C11", "router", "router_status"),
    ):
        turn = {"tool": text, "arguments": {}}
        yield refused(threat, f"tool-{name}", Reason.UNKNOWN_OPERATION, {_TOOL, *_TEXT}, phase=Phase.EARLY, turn=turn)


def _envelope(registry: Registry, whole: str) -> Iterator[Move]:
    for change in (*document_changes(), too_large(registry.bounds.envelope_bytes)):
        reason = change.reason or Reason.MALFORMED_CALL
        yield refused(change.threat, change.name, reason, {_DOCUMENT}, phase=Phase.READ, edits=change.edits)
    for name, text in (("text", '"{}"'), ("list", "[]")):
        edits = Edits(texts={"": text})
        yield refused("C56", name, Reason.ARGUMENTS_NOT_OBJECT, _TEXT, phase=Phase.READ, edits=edits)
    absent = Edits(drops=frozenset((f"/{whole}",)))
    yield refused("C57", "absent", Reason.ARGUMENTS_INVALID, _TEXT, phase=Phase.READ, edits=absent)
    for threat, key, text in (
        ("C59", "_meta", '{"progressToken":1}'),
        ("G44", "approved", "true"),
        ("G44", "decision", '"approved"'),
    ):
        more = Edits(more={"": ((text_of(key), text),)})
        yield refused(threat, key, Reason.ARGUMENTS_INVALID, {_MORE}, phase=Phase.READ, edits=more)


def _of_values(changes: Iterator[Change], schema: Canonical, at: str, whole: dict[str, Json]) -> Iterator[Move]:
    """Mutations of a call's arguments, or of its input (`at`); what fits is another call, under the same grant."""
    for each in changes:
        edits = each.edits.under(at)
        if each.reason is not None:
            yield refused(each.threat, each.name, each.reason, {_ARGUMENTS}, phase=Phase.READ, edits=edits)
            continue
        value = {**whole, at[1:]: each.value} if at else each.value
        if not fits(schema, plain(value)):
            reason = Reason.ARGUMENTS_INVALID
        elif misspelled(schema, value):
            reason = Reason.NON_CANONICAL_NUMBER
        else:
            continue
        shrink = each.shrink and each.shrink._replace(at=f"{at}{each.shrink.at}")
        yield refused(each.threat, each.name, reason, {_ARGUMENTS}, phase=Phase.EARLY, edits=edits, shrink=shrink)


def _whose(store: Phase) -> Iterator[Move]:
    """Another broker's session; and a ledger that is gone, which shows in the phase `store`."""
    other = {"run": "another-run"}
    yield refused("G02", "run", Reason.BROKER_MISMATCH, {_WHO}, phase=Phase.WHOSE, turn=other)
    faults: tuple[Json, ...] = ({"ledger": "unavailable"},)
    yield refused("G30", "down", Reason.STORE_UNAVAILABLE, {_STORE}, phase=store, faults=faults)


@frozen
class GrantMoves:
    """The moves against a request for a grant."""

    registry: Registry
    projection: Projection
    operation: Operation
    short: str
    draw: Draw

    structured = frozenset(("request_grant", "instance"))

    @property
    def tool(self) -> str:
        """The tool that is called."""
        return self.registry.management_tool("grant_request")

    @property
    def arguments(self) -> dict[str, Json]:
        """The good arguments."""
        return {"instance_id": FIRST_INSTANCE, "operation_id": self.operation.id}

    @property
    def turn(self) -> dict[str, Json]:
        """The good call, as scenarios write it."""
        return {"request_grant": self.short}

    def all(self) -> Iterator[Move]:
        """Every one that applies."""
        yield from _envelope(self.registry, "instance_id")
        yield from _whose(Phase.ADMITTED)
        both = Edits(more={"": (('"profile"', '"develop"'),)})
        yield refused("G43", "both", Reason.ARGUMENTS_INVALID, {_MORE, _ARGUMENTS}, phase=Phase.READ, edits=both)
        nobody = {"instance": "instance-9"}
        yield refused(
            "C14", "instance", Reason.INSTANCE_NOT_FOUND, {_INSTANCE, *_TEXT}, phase=Phase.REACHED, turn=nobody
        )
        for threat, person, reason in (
            ("B06", "deny", Reason.CONSENT_REQUIRED),
            ("B06", "silent", Reason.CONSENT_REQUIRED),
            ("B06", "unavailable", Reason.CONSENT_REQUIRED),
            ("B06", "nothing", Reason.CONSENT_REQUIRED),
            ("B07", "late", Reason.CONSENT_REQUIRED),
            ("B08", "replay", Reason.CONSENT_REPLAY),
            ("G45", "replay", Reason.CONSENT_REPLAY),
        ):
            turn = {"person": person}
            yield refused(threat, person, reason, {_ASKED, *_TEXT}, phase=Phase.ASKED, turn=turn)
        star = Edits(texts={"/operation_id": '"*"'})
        yield refused("G42", "star", Reason.INVALID_REQUEST, {*_TEXT, _ASKED}, phase=Phase.ASKED, edits=star)

    def benign(self) -> Iterator[Move]:
        """What must not matter."""
        backwards = Edits(texts={"": text_of(dict(reversed(self.arguments.items())))})
        yield harmless("G10", "keys", {_DOCUMENT}, edits=backwards)


@frozen
class CallMoves:
    """The moves against a call under a grant."""

    registry: Registry
    projection: Projection
    operation: Operation
    short: str
    input: dict[str, Json]
    draw: Draw

    structured = frozenset(("call", "input", "grant", "request", "instance", "generation", "timeout_ms"))

    @property
    def tool(self) -> str:
        """The tool that is called."""
        return self.registry.tool_name(self.operation.id)

    @property
    def arguments(self) -> dict[str, Json]:
        """The good arguments, but for the grant, which no text can name beforehand."""
        return {"input": self.input, "instance_id": FIRST_INSTANCE, "request_id": _REQUEST}

    @property
    def turn(self) -> dict[str, Json]:
        """The good call, as scenarios write it."""
        return {"call": self.short, "input": self.input, "grant": "last", "request": _REQUEST}

    def all(self) -> Iterator[Move]:
        """Every one that applies."""
        yield from _names(self.tool)
        yield from _envelope(self.registry, "input")
        tool = self.projection.tool(self.tool)
        schema = Canonical.of({} if tool is None else tool.definition["inputSchema"])
        yield from _of_values(object_changes(self.input, self.draw), schema, "/input", self.arguments)
        for threat, text in (("G47", "300001"), ("G47", "0")):
            more = Edits(more={"": (('"timeout_ms"', text),)})
            yield refused(threat, f"timeout-{text}", Reason.ARGUMENTS_INVALID, {_MORE}, phase=Phase.READ, edits=more)
        yield from _whose(Phase.EARLY)
        yield from self._of_the_instance()
        yield from self._of_the_grant()
        yield from self._of_the_identity()
        yield from self._of_the_host()
        if self.operation.result is ResultKind.ARTIFACT:
            yield from self._of_the_artifact()

    def benign(self) -> Iterator[Move]:
        """What must not matter."""
        yield harmless("G10", "keys", {_ARGUMENTS}, turn={"input": dict(reversed(self.input.items()))})
        yield harmless("G03", "a-millisecond-before", {_TIME}, turn={"wait": "899999ms"})
        yield harmless("S25", "the-first-version", {_HOST}, faults=({"host": {"does": "offer_older"}},))

    def _turned(self, threat: str, name: str, reason: Reason, slots: set[str], phase: Phase, **turn: Json) -> Move:
        """A move of the call itself, which its text therefore has no other of."""
        return refused(threat, name, reason, {*slots, *_TEXT, _TOOL}, phase=phase, turn=turn)

    def _fault(self, threat: str, name: str, reason: Reason, phase: Phase, *faults: Json, sends: int = 0) -> Move:
        slots = {_HOST, _INSTANCE, _GRANT}
        return refused(threat, name, reason, slots, phase=phase, faults=faults, sends=sends)

    def _of_the_instance(self) -> Iterator[Move]:
        reached, judged = Phase.REACHED, Phase.JUDGED
        yield self._turned("C14", "instance", Reason.INSTANCE_NOT_FOUND, {_INSTANCE}, reached, instance="instance-9")
        yield self._turned("C15", "instance", Reason.WRONG_REGISTRATION, {_INSTANCE}, judged, instance="instance-2")
        over: Json = {"host": {"does": "end_sessions"}, "at": "turn"}
        yield self._fault("C16", "peer", Reason.WRONG_PEER, judged, over, {"enrolled": "other_peer", "at": "turn"})
        somebody: Json = {"enrolled": "other_client", "at": "turn"}
        yield self._fault("G27", "client", Reason.WRONG_PRINCIPAL, judged, over, somebody)
        for threat in ("C17", "C67"):
            anew = {"host": {"does": "republish"}, "at": "turn"}
            yield self._fault(threat, "published-anew", Reason.WRONG_PUBLICATION, judged, anew)
        yield self._fault(
            "C21", "gone", Reason.INSTANCE_NOT_FOUND, reached, {"host": {"does": "tear_down"}, "at": "turn"}
        )
        for does in ("offer_newer", "offer_invalid", "offer_mandates", "offer_lacks"):
            offer = {"host": {"does": does}}
            yield self._fault("S25", does, Reason.PROTOCOL_MISMATCH, Phase.AGREED, offer)

    def _of_the_grant(self) -> Iterator[Move]:
        judged = Phase.JUDGED
        yield self._turned("G03", "at-its-end", Reason.EXPIRED, {_TIME, _GRANT, _HOST}, judged, wait="900s")
        for threat, name in (("G13", "nobody-s"), ("G42", "*")):
            yield self._turned(threat, name, Reason.UNKNOWN_GRANT, {_GRANT}, judged, grant=name)
        yield self._turned("G27", "other", Reason.UNKNOWN_GRANT, {_WHO, _GRANT, _HOST}, judged, client="other")
        revoked = ({"revoke": "last"}, COMPLETED)
        yield refused("G40", "before", Reason.REVOKED, {_BEFORE, _GRANT}, phase=judged, turns=(revoked,))
        late: Json = {"revoke": "grant", "at": "claimed"}
        yield refused("G40", "at-the-marker", Reason.REVOKED, {_HOST, _GRANT}, phase=Phase.LEAVING, faults=(late,))
        for other in ("state/read", "instance/read"):
            for threat in ("G18", "G43") if other != self.short else ():
                slots = {_GRANT, _HOST}
                yield self._turned(threat, other, Reason.NOT_GRANTED, slots, judged, call=other, input={})

    def _of_the_identity(self) -> Iterator[Move]:
        done = (self.turn, COMPLETED)
        again: Mapping[str, Json] = {"generation": 7}
        slots = {_BEFORE, _HOST, _GRANT, _TIME, *_TEXT, _TOOL}
        reason = Reason.IDEMPOTENCY_CONFLICT
        yield refused("G37", "generation", reason, slots, phase=Phase.MET, turns=(done,), turn=again)
        day: Mapping[str, Json] = {"wait": "86400s"}
        reason = Reason.REPLAY_WINDOW_EXPIRED
        yield refused("G38", "a-day-later", reason, slots, phase=Phase.MET, turns=(done,), turn=day)
        if self.operation.idempotency:
            other = {"input": {**self.input, self.operation.idempotency: "another-key"}}
            reason = Reason.REQUEST_ID_CONFLICT
            yield refused("G39", "key", reason, slots, phase=Phase.MET, turns=(done,), turn=other)
        yield self._turned("B12", "generation", Reason.STATE_CONFLICT, {_GRANT}, Phase.ADMITTED, generation=7)

    def _of_the_artifact(self) -> Iterator[Move]:
        """A read of what the operation made, by somebody or at a time that it is not for."""
        done = (self.turn, COMPLETED)
        wanted: Json = {"artifact_id": {"from": "result.artifact_id"}, "offset": 0, "max_bytes": 8}
        read = {"call": "artifact/read", "input": wanted, "grant": None, "request": None}
        slots = {_BEFORE, _HOST, _GRANT, _TIME, _INSTANCE, _WHO, _TOOL, *_TEXT}
        revoked = ({"revoke": "last"}, COMPLETED)
        for name, reason, more, keys in (
            ("client", Reason.NOT_FOUND, (), {"client": "other"}),
            ("instance", Reason.WRONG_REGISTRATION, (), {"instance": "instance-2"}),
            ("late", Reason.EXPIRED, (), {"wait": "900s"}),
            ("revoked", Reason.REVOKED, (revoked,), {}),
        ):
            turn, phase = {**read, **keys}, Phase.JUDGED
            yield refused("R10", name, reason, slots, phase=phase, turns=(done, *more), turn=turn)

    def _of_the_host(self) -> Iterator[Move]:
        told = Phase.TOLD
        for threat, does, reason in (
            ("S19", "false_schema", Reason.RESULT_INVALID),
            ("S19", "nonsense", Reason.RESULT_INVALID),
            ("S21", "crossed", Reason.RESULT_INVALID),
            ("S21", "foreign_id", Reason.OUTCOME_UNKNOWN),
            ("S24", "huge_line", Reason.OUTCOME_UNKNOWN),
        ):
            fault: Json = {"host": {"does": does}}
            yield refused(threat, does, reason, {_HOST, _BEFORE}, phase=told, faults=(fault,), sends=1)
