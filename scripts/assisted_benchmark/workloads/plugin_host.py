"""A host of live plugin instances: a test-only service that a capability broker reaches, as a model.

    enrol       a client's session, on the connection that it came by
    inventory   every live instance, with its registration, publication, state generation and abilities
    negotiate   the protocol versions and features of an instance
    request     one operation, executed if everything that was said still holds; its word, result and artifacts

It judges every request by itself: the client is enrolled on this very connection, exactly one instance has the id,
registration and publication are the present ones, it can do the operation, the state is of the expected generation,
and no receipt was seen before. What does not hold is a failure, with nothing done. The model counts each request
before it judges it. It has no clock, file, process or chance: ids follow from the seed, and its time goes on by a
step with each request that is executed.
"""

from __future__ import annotations

import hashlib
import sys
from typing import Final, NamedTuple

from assisted_benchmark.capability.telemetry import Owner, Sample, Telemetry
from assisted_benchmark.kernel.canonical import SAFE_INTEGER, canonical_bytes, parse
from assisted_benchmark.kernel.chance import SeededChance
from assisted_benchmark.kernel.clock import SECOND, ManualClock
from assisted_benchmark.kernel.codes import Reason
from assisted_benchmark.kernel.errors import CanonicalError, InputError
from assisted_benchmark.kernel.strict_json import Json
from assisted_benchmark.workloads.model import Event
from assisted_benchmark.workloads.plugin_host_changes import CHANGES
from assisted_benchmark.workloads.plugin_host_instance import (
    ADVERTISED,
    SENSITIVE_CHANNEL,
    Ability,
    Live,
    a_live,
    first_instances,
    named,
    publication_of,
)
from assisted_benchmark.workloads.plugin_host_reads import READS
from assisted_benchmark.workloads.plugin_host_task import Done, Failed, Made, Task, artifact_id

COMPLETED: Final = "completed"
FAILED: Final = "failed"
CANCELLED: Final = "cancelled"
CANCEL: Final = "cancel"  # what a cancellation is counted as
PARAMETERS_BYTES: Final = 1 << 19

OPERATIONS: Final = READS | CHANGES
OFFER: Final[dict[str, Json]] = {
    "lowest": 1,
    "highest": 2,
    "mandatory": [],
    "optional": ["artifacts", "cancellation", "progress", "receipts"],
}
_STEP_NS: Final = SECOND // 20


class Asked(NamedTuple):
    """A request as it arrived. `parameters` is a JSON text; `link` the connection that it came by."""

    link: int
    instance: str
    operation: str
    parameters: str
    request_id: str
    receipt_id: str
    request_hash: str
    grant: str
    client: str
    registration: str
    publication: str
    version: int
    expected_state_generation: int | None

    @property
    def facts(self) -> dict[str, str | int]:
        """What the oracle hears of it, whatever comes of it."""
        return {
            "instance": self.instance,
            "registration": self.registration,
            "publication": self.publication,
            "client": self.client,
            "grant": self.grant,
            "request_id": self.request_id,
            "receipt_id": self.receipt_id,
            "parameters": hashlib.sha256(self.parameters.encode()).hexdigest(),
        }


class Said(NamedTuple):
    """The host's word on a request."""

    word: str
    result: str = "{}"
    code: str = ""
    explanation: str = ""
    made: tuple[Made, ...] = ()


class PluginHost:
    """The host as a model.

    `received` counts what was asked, the requests by their operation; `events` is what came of it, in order: the
    oracle's view. `live` are the instances that there are.

    Raises:
        InputError: wrong_value, if the seed cannot be one.
    """

    def __init__(self, seed: int) -> None:
        if type(seed) is not int or not 0 <= seed <= SAFE_INTEGER:
            raise InputError(Reason.WRONG_VALUE, f"`{seed!r:.80}` is no seed: a whole number from 0 to 2^53-1")
        self.events: list[Event] = []
        self.received: dict[str, int] = {}
        self.live: list[Live] = first_instances(seed)
        self._seed = seed
        self._sessions: dict[str, tuple[int, str]] = {}
        self._enrolments = 0
        self._receipts: set[str] = set()
        self._clock = ManualClock()
        self._telemetry = Telemetry(self._clock, SeededChance(named("streams", seed)), SENSITIVE_CHANNEL.__eq__)
        for each in self.live:
            self._published(each)

    def arrive(self, name: str) -> None:
        """Count what is asked."""
        self.received[name] = self.received.get(name, 0) + 1

    def places(self) -> list[Json]:
        """Where each instance is registered now: id, registration, publication."""
        return [each.place for each in self.live]

    def enrol(self, link: int, client: str) -> str:
        """A new session of this client on this connection; its id."""
        self._enrolments += 1
        session = named("session", self._seed, self._enrolments)
        self._sessions[session] = (link, client)
        self._happened("enrolled", "enrol", {"client": client})
        return session

    def enrolled(self, link: int, session: str) -> bool:
        """Whether a session is one of this connection's."""
        return self._sessions.get(session, (None,))[0] == link

    def leave(self, link: int) -> None:
        """A connection is gone, and its sessions with it."""
        self._sessions = {name: each for name, each in self._sessions.items() if each[0] != link}

    def end_sessions(self) -> None:
        """No client is enrolled any more."""
        self._sessions.clear()

    def exactly(self, instance: str, publication: str) -> Live | None:
        """The one instance with this id, if there is one and this is its publication."""
        found = [each for each in self.live if each.id == instance]
        return found[0] if len(found) == 1 and found[0].publication == publication else None

    def execute(self, asked: Asked) -> Said:
        """Judge a request that arrived, and act."""
        prepared = self._prepared(asked)
        if isinstance(prepared, Failed):
            return self.refuse(asked, prepared)
        live, before = prepared.live, prepared.live.generation
        done = OPERATIONS[asked.operation](prepared)
        if isinstance(done, Failed):
            return self.refuse(asked, done)
        self._receipts.add(asked.receipt_id)
        self._go_on()
        live.log.append(f"{asked.operation} for {asked.receipt_id}")
        self._happened("executed", asked.operation, asked.facts | {"before": before, "after": live.generation})
        if done.made is not None:
            sha256 = hashlib.sha256(done.made.data).hexdigest()
            facts: dict[str, str | int] = {
                "instance": live.id,
                "receipt_id": asked.receipt_id,
                "artifact_id": artifact_id(asked.receipt_id, sha256),
                "mime_type": done.made.mime_type,
                "sha256": sha256,
                "bytes": len(done.made.data),
            }
            self._happened("made", asked.operation, facts)
        return Said(COMPLETED, canonical_bytes(done.result).decode(), made=_some(done))

    def refuse(self, asked: Asked, failed: Failed) -> Said:
        """Say that it failed, having done nothing."""
        self._happened("refused", asked.operation, asked.facts | {"code": failed.code})
        return Said(FAILED, code=failed.code, explanation=failed.explanation)

    def stop(self, asked: Asked) -> Said:
        """Say that it was cancelled, having done nothing."""
        self._happened("stopped", asked.operation, asked.facts)
        return Said(CANCELLED, explanation="it was cancelled before it began")

    def republish(self, instance: str) -> None:
        """Each instance of this id publishes anew."""
        for live in self._of(instance):
            live.publications += 1
            live.publication = publication_of(self._seed, live.registration, live.publications)
            self._published(live)

    def tear_down(self, instance: str) -> None:
        """Each instance of this id is gone, and its streams with it."""
        for live in self._of(instance):
            self.live.remove(live)
            self._telemetry.end(registration=live.registration)
            self._happened("left", "", {"instance": live.id, "registration": live.registration})

    def move_state(self, instance: str) -> None:
        """The user of each instance of this id moves its gain."""
        for live in self._of(instance):
            before = live.generation
            live.moved(1, 0.0 if live.normalized[1] else 0.75)
            facts: dict[str, str | int] = {"instance": live.id, "registration": live.registration}
            self._happened("moved", "", facts | {"before": before, "after": live.generation})

    def twin(self, instance: str) -> None:
        """One more instance comes to live under this id."""
        twin = a_live(self._seed, instance, "standalone", ADVERTISED, birth=len(self._of(instance)) + 1)
        self.live.append(twin)
        self._published(twin)

    def change_ability(self, instance: str, operation: str, ability: Ability | None) -> None:
        """Each instance of this id says another thing of an operation, or nothing."""
        for live in self._of(instance):
            kept = tuple(each for each in live.abilities if each.operation != operation)
            live.abilities = kept if ability is None else (*kept, ability)

    def _of(self, instance: str) -> list[Live]:
        return [each for each in self.live if each.id == instance]

    def _prepared(self, asked: Asked) -> Task | Failed:
        """What is to be done, if everything that was said holds."""
        if (asked.link, asked.client) not in self._sessions.values():
            return _no(Reason.SESSION_ENDED, "the client is not enrolled on this connection")
        found = self._of(asked.instance)
        if len(found) != 1:
            reason = Reason.AMBIGUOUS_INSTANCE if found else Reason.INSTANCE_NOT_FOUND
            return _no(reason, f"{len(found)} live instances have the id")
        (live,) = found
        if asked.registration != live.registration:
            return _no(Reason.WRONG_REGISTRATION, "the instance is registered elsewhere")
        if asked.publication != live.publication:
            return _no(Reason.WRONG_PUBLICATION, "the instance has published anew")
        ability = next((each for each in live.abilities if each.operation == asked.operation), None)
        if asked.version != 1 or asked.operation not in OPERATIONS or ability is None or not all(ability[1:]):
            return _no(Reason.CAPABILITY_UNAVAILABLE, "the instance cannot do that now")
        if asked.receipt_id in self._receipts:
            return _no(Reason.REPLAYED, "an operation with this receipt has been executed")
        if asked.expected_state_generation not in (None, live.generation):
            return _no(Reason.STATE_CONFLICT, f"the state is of generation {live.generation}")
        try:
            value = parse(asked.parameters.encode(), PARAMETERS_BYTES)
        except CanonicalError as error:
            return _no(Reason.ARGUMENTS_INVALID, error.detail)
        if type(value) is not dict:
            return _no(Reason.ARGUMENTS_INVALID, "the parameters are no object")
        owner = Owner(asked.client, live.registration, live.id, asked.grant)
        return Task(live, value, asked.receipt_id, owner, self._telemetry, self._clock)

    def _go_on(self) -> None:
        """Let a step of time go by, in which each channel shows something once."""
        self._clock.advance(_STEP_NS)
        step = len(self.events) % 64
        self._telemetry.offer(Sample("level", (step / 64, 1 - step / 64), "meter"))
        self._telemetry.offer(Sample("load", (step / 128,)))
        self._telemetry.offer(Sample("overload", (float("inf"), float("nan")), "vector"))
        self._telemetry.offer(Sample(SENSITIVE_CHANNEL, (float(self._seed),)))

    def _published(self, live: Live) -> None:
        facts: dict[str, str | int] = {
            "instance": live.id,
            "registration": live.registration,
            "publication": live.publication,
            "generation": live.generation,
        }
        self._happened("published", "", facts)

    def _happened(self, what: str, tool: str, facts: dict[str, str | int]) -> None:
        seq = len(self.events) + 1
        self.events.append(Event(seq, f"e{seq}", what, tool, facts))


def _some(done: Done) -> tuple[Made, ...]:
    return () if done.made is None else (done.made,)


def _no(reason: Reason, explanation: str) -> Failed:
    return Failed(reason.value, explanation)


def main() -> int:
    """Serve the host on the socket that the harness has opened for it, until the harness is gone."""
    from assisted_benchmark.workloads import plugin_host_server

    return plugin_host_server.main()


if __name__ == "__main__":
    sys.exit(main())
