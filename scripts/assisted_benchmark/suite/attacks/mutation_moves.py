"""What can be wrong with one proposed change, with its confirmation, and around them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import ClassVar, Final

from attrs import frozen

from assisted_benchmark.kernel.canonical import MIB, Canonical, Json
from assisted_benchmark.kernel.clock import SECOND
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.suite.attacks.judging import misfit
from assisted_benchmark.suite.attacks.moves import Move, harmless, refused
from assisted_benchmark.suite.attacks.spelling import Edits, spelled, text_of
from assisted_benchmark.suite.attacks.values import document_changes, object_changes, respelled, too_large
from assisted_benchmark.suite.case import ADMITTED
from assisted_benchmark.suite.live.samples import Draw
from assisted_benchmark.suite.mutation.scenario import MutationCase

_DOCUMENT, _TYPE, _SPEC, _MORE, _SESSION, _CLOCK = "document", "type", "spec", "more", "session", "clock"
_STORE, _ENDPOINT, _TOKEN, _BINDING, _CLIENT, _HUMAN = "store", "endpoint", "token", "binding", "client", "human"
_BEFORE, _CANCEL = "before", "cancel"
_SHAPE: Final = re.compile("chg-[0-9]+-[0-9a-f]{24}")
# Of arguments that are none, or lack all that counts, nothing else can be said.
_ALL: Final = frozenset((_DOCUMENT, _TYPE, _SPEC, _MORE, _TOKEN))
# A person cannot be shown these.
_UNSHOWABLE: Final = frozenset(("C05", "C06", "C07", "C55"))
_READ, _JUDGED, _SHAPED, _FOUND, _STOPPED, _CONSUMED, _BOUND, _ASKS, _STATE, _ANSWERED, _LEAVING, _GATE, _TOLD = range(
    13
)


def envelope(whole: str) -> Iterator[Move]:
    """What is wrong with arguments as such; `whole` is one good member's name."""
    for change in (*document_changes(), too_large(MIB)):
        reason = change.reason or Reason.MALFORMED_CALL
        yield refused(change.threat, change.name, reason, {_DOCUMENT}, phase=_READ, edits=change.edits)
    for name, text in (("text", '"{}"'), ("list", "[]")):
        edits = Edits(texts={"": text})
        yield refused("C56", name, Reason.ARGUMENTS_NOT_OBJECT, _ALL, phase=_READ, edits=edits)
    absent = Edits(drops=frozenset((f"/{whole}",)))
    yield refused("C57", "absent", Reason.ARGUMENTS_INVALID, _ALL, phase=_READ, edits=absent)
    for threat, key, text in (("C59", "_meta", '{"progressToken":1}'), ("G44", "confirm", "true")):
        more = Edits(more={"": ((text_of(key), text),)})
        yield refused(threat, key, Reason.ARGUMENTS_INVALID, {_MORE}, phase=_READ, edits=more)


@frozen
class ProposeMoves:
    """The moves against a proposal."""

    case: MutationCase
    proposed: dict[str, Json]
    draw: Draw

    def all(self) -> Iterator[Move]:
        """Every one that applies."""
        yield from envelope("spec")
        for name in ("router", "update-connection", "delete-connection", "Connection"):
            edits = Edits(texts={"/change_type": text_of(name)})
            yield refused("C14", name, Reason.UNKNOWN_CHANGE, {_TYPE, _SPEC}, phase=_JUDGED, edits=edits)
        yield from self._of_the_spec()
        down: tuple[Json, ...] = ({"ledger": "unavailable"},)
        yield refused("G30", "down", Reason.STORE_UNAVAILABLE, {_STORE}, phase=_JUDGED, faults=down)
        for does in ("fail_before", "garbage_body", "drop_after"):
            fault: Json = {"endpoint": {"does": does, "call": "dry_run"}}
            reason = Reason.DRY_RUN_FAILED
            yield refused("S19", f"dry-run-{does}", reason, {_ENDPOINT}, phase=_JUDGED, faults=(fault,))

    def _of_the_spec(self) -> Iterator[Move]:
        spec = self.proposed["spec"]
        change = self.case.contract.change(self.proposed["change_type"])
        schema = Canonical(b"{}") if change is None else change.fields
        for each in object_changes(spec, self.draw):
            edits = each.edits.under("/spec")
            shrink = each.shrink and each.shrink._replace(at=f"/spec{each.shrink.at}")
            if each.reason is not None:
                yield refused(each.threat, each.name, each.reason, {_SPEC}, phase=_READ, edits=edits)
                continue
            reason = Reason.UNSHOWABLE_VALUE if each.threat in _UNSHOWABLE else misfit(schema, each.value)
            if reason is not None:  # what fits is another proposal, for a person to see
                yield refused(each.threat, each.name, reason, {_SPEC}, phase=_JUDGED, edits=edits, shrink=shrink)
        for name, text in (
            ("line", "plant\nPrice: free"),
            ("gap", "plant      Price: free"),
            ("marks", "a" + "\u0301" * 9),
        ):
            edits = Edits(texts={"/spec/name": text_of(text)})
            yield refused("B11", name, Reason.UNSHOWABLE_VALUE, {_SPEC}, phase=_JUDGED, edits=edits)

    def benign(self) -> Iterator[Move]:
        """The same proposal, written another way."""
        for name, edits in respelled(self.proposed):
            yield harmless("G10", name, {_DOCUMENT, _SPEC, _TYPE}, edits=edits)


@frozen
class ConfirmMoves:
    """The moves against a confirmation."""

    MADE_UP: ClassVar[dict[str, Json]] = {"token": "chg-1-0123456789abcdef01234567"}

    case: MutationCase
    proposed: dict[str, Json]
    draw: Draw

    def all(self) -> Iterator[Move]:
        """Every one that applies."""
        yield from envelope("token")
        for change in object_changes(self.MADE_UP, self.draw):
            found = change.reason is None and _is_token(change.value)
            reason = Reason.UNKNOWN_TOKEN if found else change.reason or Reason.ARGUMENTS_INVALID
            phase = _phase_of(change.value["token"]) if found else _READ
            yield refused(change.threat, change.name, reason, {_TOKEN}, phase=phase, edits=change.edits)
        spec = Edits(more={"": (('"spec"', spelled(self.proposed["spec"])),)})
        yield refused("B01", "spec", Reason.ARGUMENTS_INVALID, {_MORE}, phase=_READ, edits=spec)
        yield from self._of_the_token()
        yield from self._of_the_moment()
        yield from self._of_the_binding()
        yield from self._of_the_answer()
        yield from self._of_the_endpoint()

    def benign(self) -> Iterator[Move]:
        """What changes around a confirmation and must not matter."""
        lives = self.case.store.ttl_ns // SECOND
        yield harmless("G03", "a-second-before", {_CLOCK}, faults=({"advance": f"{lives - 1}s"},))
        yield harmless("B10", "as-it-is-written", {_CANCEL}, faults=({"cancel": "call", "at": "write"},))

    def _of_the_token(self) -> Iterator[Move]:
        for threat, name, token in (
            ("B03", "made-up", self.MADE_UP["token"]),
            ("B03", "capitals", "CHG-1-0123456789ABCDEF01234567"),
            ("B03", "cut", "chg-1-0123"),
            ("B03", "blank", " chg-1-0123456789abcdef01234567"),
            ("B03", "nothing", ""),
            ("G13", "nobody-s", "sha256:" + "0" * 64),
            ("G42", "star", "*"),
        ):
            phase = _phase_of(token)
            yield refused(threat, name, Reason.UNKNOWN_TOKEN, {_TOKEN}, phase=phase, turn={"confirm": token})
        for threat in ("B02", "G18", "G27"):
            other = {"session": "another"}
            yield refused(
                threat, "session", Reason.UNKNOWN_TOKEN, {_SESSION, _CLIENT, _HUMAN}, phase=_FOUND, turn=other
            )
        more = ({"propose_raw": spelled(self.proposed)}, ADMITTED)
        evicted = {"store": {"capacity": 1}}
        for threat in ("B02", "B15"):
            yield refused(
                threat, "evicted", Reason.UNKNOWN_TOKEN, {_TOKEN, _BEFORE}, phase=_FOUND,
                turns=(more,), turn={"confirm": "first"}, keys=evicted,
            )  # fmt: skip
        used = (({"confirm": "last"}, ADMITTED), {"confirm": "again"})
        spent = (({"confirm": "last", "human": "decline"}, Reason.DECLINED.value), {"confirm": "again"})
        for threat, (before, turn) in {"G14": used, "G35": used, "G15": spent}.items():
            slots = {_TOKEN, _BEFORE}
            yield refused(threat, "again", Reason.REPLAYED, slots, phase=_FOUND, turns=(before,), turn=turn)

    def _of_the_moment(self) -> Iterator[Move]:
        lives = f"{self.case.store.ttl_ns // SECOND}s"
        for threat, name, reason, phase, faults in (
            ("G03", "at-its-end", Reason.EXPIRED, _FOUND, ({"advance": lives},)),
            ("B07", "after-the-answer", Reason.EXPIRED, _LEAVING, ({"advance": lives, "at": "answered"},)),
            ("G03", "behind-the-marker", Reason.EXPIRED, _GATE, ({"advance": lives, "at": "claimed"},)),
            ("B07", "beyond-the-wait", Reason.TIMED_OUT, _STATE, ({"advance": "300s", "at": "asked"},)),
            ("G04", "set-back", Reason.CLOCK_ROLLBACK, _FOUND, ({"set_back": "60s"},)),
            ("G04", "while-asked", Reason.CLOCK_ROLLBACK, _LEAVING, ({"set_back": "60s", "at": "asked"},)),
            ("G07", "boot", Reason.EXPIRED, _FOUND, ({"reboot": "boot-2"},)),
        ):
            yield refused(threat, name, reason, {_CLOCK}, phase=phase, faults=faults)
        down: tuple[Json, ...] = ({"ledger": "unavailable"},)
        yield refused("G30", "down", Reason.STORE_UNAVAILABLE, {_STORE}, phase=_FOUND, faults=down)
        for name, phase, at in (
            ("before-the-token", _STOPPED, "turn"),
            ("while-asked", _ANSWERED, "asked"),
            ("behind-the-marker", _GATE, "claimed"),
        ):
            fault: Json = {"cancel": "call", "at": at}
            yield refused("B10", name, Reason.CANCELLED, {_CANCEL, _HUMAN}, phase=phase, faults=(fault,))
        race: tuple[Json, ...] = ({"race": "confirm", "at": "consume"},)
        everything = {_BINDING, _CLIENT, _HUMAN, _CLOCK, _CANCEL, _ENDPOINT, _BEFORE, _STORE}
        yield refused("G32", "at-once", Reason.REPLAYED, everything, phase=_CONSUMED, faults=race, sends=1)

    def _of_the_binding(self) -> Iterator[Move]:
        for threat, name, phase, fault in (
            ("C21", "contract", _BOUND, {"contract": "changed"}),
            ("G08", "contract", _BOUND, {"contract": "changed"}),
            ("B12", "spec", _BOUND, {"tamper": "spec"}),
            ("B12", "type", _BOUND, {"tamper": "change"}),
            ("B12", "digest", _BOUND, {"tamper": "bound"}),
            ("B13", "mapping", _BOUND, {"mapping": "changed"}),
            ("B13", "bytes", _LEAVING, {"mapping": "lying"}),
        ):
            yield refused(threat, name, Reason.BINDING_MISMATCH, {_BINDING, _BEFORE}, phase=phase, faults=(fault,))

    def _of_the_answer(self) -> Iterator[Move]:
        for threat, human, reason in (
            ("B05", "accept_unconfirmed", Reason.DECLINED),
            ("B05", "accept_empty", Reason.DECLINED),
            ("B05", "garbage", Reason.CONFIRMATION_FAILED),
            ("B05", "nothing", Reason.CONFIRMATION_FAILED),
            ("B06", "decline", Reason.DECLINED),
            ("B06", "cancel", Reason.CANCELLED),
            ("B06", "exception", Reason.CONFIRMATION_FAILED),
        ):
            yield refused(threat, human, reason, {_HUMAN}, phase=_ANSWERED, turn={"human": human})
        silent = {"human": "silent"}
        yield refused("B06", "silent", Reason.TIMED_OUT, {_HUMAN, _CLOCK}, phase=_ANSWERED, turn=silent)
        for asks in ("none", "url_only"):
            keys = {"client": {"asks": asks}}
            slots = {_CLIENT, _BEFORE}
            yield refused("B06", f"asks-{asks}", Reason.UNSUPPORTED_BY_CLIENT, slots, phase=_ASKS, keys=keys)
        for recall in ("forged", "without_state", "other_token", "other_session"):
            turn, keys = {"recall": recall}, {"client": {"era": "stateless"}}
            slots = {_CLIENT, _HUMAN, _TOKEN, _BEFORE, _SESSION}
            yield refused("B08", recall, Reason.REPLAYED, slots, phase=_STATE, turn=turn, keys=keys)

    def _of_the_endpoint(self) -> Iterator[Move]:
        for threat, does, reason in (
            ("S19", "garbage_body", Reason.RESULT_INVALID),
            ("S19", "wrong_type", Reason.RESULT_INVALID),
            ("S21", "answer_twice", Reason.RESULT_INVALID),
            ("S24", "huge_body", Reason.OUTCOME_UNKNOWN),
        ):
            fault: Json = {"endpoint": {"does": does, "call": "create"}}
            yield refused(threat, does, reason, {_ENDPOINT, _BEFORE}, phase=_TOLD, faults=(fault,), sends=1)


def _is_token(value: Json) -> bool:
    """Whether arguments are a token and nothing else, whatever token."""
    return type(value) is dict and value.keys() == {"token"} and type(value["token"]) is str


def _phase_of(token: str) -> int:
    """When it shows that a token is nobody's: at once, if no token looks so, else in the store."""
    return _FOUND if _SHAPE.fullmatch(token) else _SHAPED
