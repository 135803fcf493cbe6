"""What can be said in place of one good call of a plan: other bytes, names, arguments, calls. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Final

from attrs import frozen

from assisted_benchmark.contract.model import Tool
from assisted_benchmark.kernel.canonical import MIB, Canonical, Json, canonical_bytes
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.live_policy.policy import Candidate, PlannedStep
from assisted_benchmark.suite.attacks.judging import fits, misfit
from assisted_benchmark.suite.attacks.moves import Move, harmless, refused
from assisted_benchmark.suite.attacks.spelling import Edits, spelled, text_of
from assisted_benchmark.suite.attacks.values import (
    document_changes,
    object_changes,
    plain,
    respelled,
    too_large,
)
from assisted_benchmark.suite.live.samples import Draw, sample
from assisted_benchmark.suite.live.scenario import LiveCase

DOCUMENT, SERVER, TOOL, ARGUMENTS, MORE, BEFORE, LIVE = (
    "document",
    "server",
    "tool",
    "arguments",
    "more",
    "before",
    "live",
)
_WHOLE: Final = frozenset((SERVER, TOOL, ARGUMENTS))


@frozen(slots=False)
class CallMoves:
    """The moves that say something else."""

    case: LiveCase
    step: PlannedStep
    candidate: Candidate
    draw: Draw

    def all(self) -> Iterator[Move]:
        """Every one that applies."""
        yield from self._of_bytes()
        yield from self._of_names()
        yield from self._of_arguments()
        yield from self._of_the_whole_call()

    def benign(self) -> Iterator[Move]:
        """The same call, said another way."""
        for name, edits in respelled(self.call):
            yield harmless("G10", name, {DOCUMENT, *_WHOLE}, edits=edits)
        for at, text in self._numbers():
            yield harmless("G10", f"number{at}", {ARGUMENTS}, edits=Edits(texts={at: text}))
        for key, text in (("effect", self.step.tool.effect.value), ("group", self.step.name)):
            yield harmless("G10", key, {MORE}, edits=Edits(more={"": ((text_of(key), text_of(text)),)}))

    @cached_property
    def call(self) -> dict[str, Json]:
        """The good call."""
        return call_of(self.candidate)

    @property
    def _arguments(self) -> dict[str, Json]:
        arguments: dict[str, Json] = self.call["arguments"]
        return arguments

    @property
    def number(self) -> int:
        """Its place in the plan, from 1."""
        return self.step.index + 1

    @property
    def last(self) -> bool:
        """Whether the plan ends with it."""
        return self.step.index == len(self.case.plan.steps) - 1

    def _numbers(self) -> Iterator[tuple[str, str]]:
        """Numbers where the schema says `number`, spelled another way."""
        properties = self.step.tool.input_schema.get("properties", {})
        for key, each in self._arguments.items():
            if type(each) in (int, float) and properties.get(key, {}).get("type") == "number":
                yield f"/arguments/{key}", f"{float(each)!r}e0"

    def _of_bytes(self) -> Iterator[Move]:
        for change in (*document_changes(), too_large(MIB)):
            reason = change.reason or Reason.MALFORMED_CALL
            yield refused(change.threat, change.name, reason, {DOCUMENT}, edits=change.edits)
        wrong = ("C56", "text", Reason.ARGUMENTS_NOT_OBJECT, text_of(spelled(self._arguments)))
        for threat, name, reason, text in (wrong, ("C56", "list", Reason.ARGUMENTS_NOT_OBJECT, "[]")):
            edits = Edits(texts={"/arguments": text})
            yield refused(threat, name, reason, {ARGUMENTS}, edits=edits)
        absent = Edits(drops=frozenset(("/arguments",)))
        yield refused("C57", "absent", Reason.MALFORMED_CALL, {ARGUMENTS}, edits=absent)
        for threat, key, text in (
            ("C59", "_meta", '{"progressToken":1}'),
            ("G17", "candidate", "0"),
            ("G44", "approved", "true"),
            ("G39", "tool_call_id", '"1"'),
        ):
            more = Edits(more={"": ((text_of(key), text),)})
            yield refused(threat, key, Reason.MALFORMED_CALL, {MORE}, edits=more)

    def _of_names(self) -> Iterator[Move]:
        yield from self._of_name("tool", self.candidate.tool, Reason.UNKNOWN_TOOL)
        yield from self._of_name("server", self.candidate.server, Reason.UNKNOWN_SERVER)
        for name in ("confirm_change", "router_status"):
            yield self._named("C11", name, "tool", name, Reason.UNKNOWN_TOOL)
        server, tool = self.candidate.server, self.candidate.tool
        for name, other in (("to-the-server", f"{server}__{tool}"), ("half-way", f"{server}_")):
            yield self._named("C12", name, "server", other, Reason.UNKNOWN_SERVER)
        yield self._named("C12", "to-the-tool", "tool", f"{server}__{tool}", Reason.UNKNOWN_TOOL)
        for each in self.case.plan.policy.contract.servers:
            if each.id != server:
                yield self._named("C15", each.id, "server", each.id, Reason.SERVER_SUBSTITUTED)
        for threat, key, text, reason in (
            ("G13", "group", "nobody-s", Reason.UNKNOWN_GROUP),
            ("G13", "grant", "sha256:" + "0" * 64, Reason.UNKNOWN_GRANT),
            ("G09", "grant", "SHA256:" + "0" * 64, Reason.MALFORMED_CALL),
            ("G09", "grant", "0" * 64, Reason.MALFORMED_CALL),
            ("G09", "grant", "sha256:" + "0" * 16, Reason.MALFORMED_CALL),
            ("G42", "grant", "*", Reason.MALFORMED_CALL),
            ("G42", "group", "*", Reason.UNKNOWN_GROUP),
        ):
            more = Edits(more={"": ((text_of(key), text_of(text)),)})
            yield refused(threat, f"{key}-{text[:10]}", reason, {MORE}, edits=more)
        for step in self.case.plan.steps:
            if step.index != self.step.index:
                more = Edits(more={"": (('"group"', text_of(step.name)),)})
                yield refused("G18", step.name, Reason.OUT_OF_ORDER, {MORE, *_WHOLE}, edits=more)
        for effect in ("observe", "act", "plan_only", "external"):
            if effect != self.step.tool.effect.value:
                more = Edits(more={"": (('"effect"', text_of(effect)),)})
                yield refused("G42", f"effect-{effect}", Reason.EFFECT_MISMATCH, {MORE, TOOL}, edits=more)

    def _of_name(self, key: str, name: str, unknown: Reason) -> Iterator[Move]:
        """Names that look or sound like the one that is meant."""
        known = {each.id for each in self.case.plan.policy.contract.servers}
        known |= {each.name for each in self.step.server.tools}
        middle = len(name) // 2
        for threat, variant, text, reason in (
            ("C02", "case", name.swapcase(), unknown),
            ("C04", "cyrillic", name + "\u0456", Reason.CONFUSABLE_NAME),
            ("C04", "full-width", chr(ord(name[0]) + 0xFEE0) + name[1:], Reason.CONFUSABLE_NAME),
            ("C05", "joiner", f"{name[:middle]}\u200d{name[middle:]}", Reason.INVISIBLE_CHARACTER),
            ("C05", "space", f"{name}\u200b", Reason.INVISIBLE_CHARACTER),
            ("C05", "bom", f"\ufeff{name}", Reason.INVISIBLE_CHARACTER),
            ("C06", "override", f"\u202e{name}\u202c", Reason.INVISIBLE_CHARACTER),
            ("C07", "tags", f"{name}\U000e0061", Reason.INVISIBLE_CHARACTER),
            ("C09", "composed", f"{name}\u00e9", Reason.CONFUSABLE_NAME),
            ("C10", "empty", "", Reason.MALFORMED_NAME),
            ("C10", "long", "n" * 129, Reason.MALFORMED_NAME),
            ("C10", "blank", f"{name} ", Reason.MALFORMED_NAME),
            ("C14" if key == "server" else "C01", "nobody-s", "nobody-s", unknown),
        ):
            if text not in known:
                yield self._named(threat, f"{key}-{variant}", key, text, reason)

    def _named(self, threat: str, name: str, key: str, text: str, reason: Reason) -> Move:
        slots = {SERVER, TOOL} if reason is Reason.SERVER_SUBSTITUTED else {key}
        return refused(threat, name, reason, slots, edits=Edits(texts={f"/{key}": text_of(text)}))

    def _of_arguments(self) -> Iterator[Move]:
        for change in object_changes(self._arguments, self.draw):
            reason = change.reason or self._judged(change.value)
            if reason is not None:
                shrink = change.shrink and change.shrink._replace(at=f"/arguments{change.shrink.at}")
                edits = change.edits.under("/arguments")
                yield refused(change.threat, change.name, reason, {ARGUMENTS}, edits=edits, shrink=shrink)

    def _judged(self, spelled_so: Json) -> Reason | None:
        """What the step's own tool with these arguments is refused for; None for a call that the plan has."""
        step, arguments = self.step, plain(spelled_so)
        data = canonical_bytes(arguments)
        call = (self.candidate.server, self.candidate.tool, data)
        reason = misfit(Canonical.of(step.tool.input_schema), spelled_so)
        if reason is not Reason.NON_CANONICAL_NUMBER and any(call in each.by_call for each in self.case.plan.steps):
            return None
        if reason is not None:
            return reason
        others = [Canonical(each.arguments).value for each in step.candidates if each.tool == self.candidate.tool]
        if step.target and any(_only_differs(step.target, arguments, each) for each in others):
            return Reason.WRONG_TARGET
        return Reason.ARGUMENTS_ALTERED

    def _of_the_whole_call(self) -> Iterator[Move]:
        plan = self.case.plan
        for tool in self.step.server.tools:
            if tool.name != self.candidate.tool:
                yield from self._other_tool(tool)
        for step in plan.steps:
            for other in step.candidates:
                if step.index < self.step.index:
                    yield self._in_place("G35", f"again-{step.name}", other, Reason.REPLAYED)
                elif step.index > self.step.index:
                    reason = Reason.OUT_OF_ORDER if step.choice else Reason.SKIPPED
                    yield self._in_place("G18", f"early-{step.name}-{other.name}", other, reason)

    def _other_tool(self, tool: Tool) -> Iterator[Move]:
        """Another tool of the server, with these arguments and with such as it takes."""
        schema = Canonical.of(tool.input_schema)
        for name, arguments in (("same", self._arguments), ("fitting", sample(tool.input_schema, self.draw))):
            if type(arguments) is not dict:
                continue
            call = (self.candidate.server, tool.name, canonical_bytes(arguments))
            if any(call in step.by_call for step in self.case.plan.steps):
                continue
            if tool.effect is not self.step.tool.effect:
                reason = Reason.EFFECT_MISMATCH
            else:
                reason = Reason.NOT_A_CANDIDATE if fits(schema, arguments) else Reason.ARGUMENTS_INVALID
            edits = Edits(texts={"/tool": text_of(tool.name), "/arguments": spelled(arguments)})
            yield refused("C01", f"{tool.name}-{name}", reason, _WHOLE, edits=edits)

    def _in_place(self, threat: str, name: str, other: Candidate, reason: Reason) -> Move:
        texts = {f"/{key}": spelled(each) for key, each in call_of(other).items()}
        return refused(threat, name, reason, {*_WHOLE, MORE}, edits=Edits(texts=texts))


def call_of(candidate: Candidate) -> dict[str, Json]:
    """A call as it is proposed."""
    return {
        "arguments": Canonical(candidate.arguments).value,
        "server": candidate.server,
        "tool": candidate.tool,
    }


def chosen(step: PlannedStep, candidate: Candidate) -> dict[str, Json]:
    """How a turn says which candidate it is."""
    return {"choose": candidate.name} if step.choice else {}


def _only_differs(target: str, one: Json, other: Json) -> bool:
    if type(one) is not dict or target not in one or target not in other:
        return False
    rest = [canonical_bytes({key: each for key, each in call.items() if key != target}) for call in (one, other)]
    return rest[0] == rest[1]
