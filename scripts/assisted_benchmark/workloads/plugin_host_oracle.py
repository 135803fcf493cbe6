"""What really happened at the plugin host, by its own account: for the harness only.

It reads what the host told of itself (the counts of what it was asked, and its events), in process or over the control
channel, and nothing that a broker says. It replays the events under the host's written rules: which instances are
live, under which publication, and of which generation their state is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from assisted_benchmark.workloads.model import Event
from assisted_benchmark.workloads.plugin_host_task import artifact_id


class Execution(NamedTuple):
    """One operation that was executed. `parameters` is the SHA-256, in hex, of their text as it arrived."""

    operation: str
    instance: str
    publication: str
    client: str
    grant: str
    request_id: str
    receipt_id: str
    parameters: str
    before: int
    after: int


class MadeArtifact(NamedTuple):
    """One artifact that was made."""

    operation: str
    instance: str
    receipt_id: str
    artifact_id: str
    mime_type: str
    sha256: str
    bytes: int


class HostReading(NamedTuple):
    """What was asked by name, executed and made in order, and refused (operation and code) or stopped before it acted.

    `generations` are those of the instances that are live now, by their ids. With any of `disagreements` the host
    contradicts itself or its rules, and nothing that it tells counts.
    """

    received: dict[str, int]
    executions: tuple[Execution, ...]
    made: tuple[MadeArtifact, ...]
    refused: tuple[tuple[str, str], ...]
    stopped: tuple[str, ...]
    generations: dict[str, int]
    disagreements: tuple[str, ...] = ()

    @property
    def executed(self) -> dict[tuple[str, str], int]:
        """How often each operation was executed on each instance."""
        return dict(Counter((each.operation, each.instance) for each in self.executions))


class _Place(NamedTuple):
    publication: str
    generation: int


class _Replay:
    """The events, one after the other, under the rules."""

    def __init__(self) -> None:
        self.executions: list[Execution] = []
        self.made: list[MadeArtifact] = []
        self.refused: list[tuple[str, str]] = []
        self.stopped: list[str] = []
        self.wrong: list[str] = []
        self.came: Counter[str] = Counter()
        self.live: dict[str, dict[str, _Place]] = {}  # instance, registration

    def take(self, event: Event) -> None:
        facts = {key: str(value) for key, value in event.facts.items()}
        numbers = {key: value for key, value in event.facts.items() if type(value) is int}
        instance = self.live.get(facts.get("instance", ""), {})
        match event.kind:
            case "published":
                known = instance.get(facts["registration"])
                if known is not None and (known.publication == facts["publication"]):
                    self._wrong(event, "published what was published")
                place = _Place(facts["publication"], numbers["generation"])
                self.live.setdefault(facts["instance"], {})[facts["registration"]] = place
            case "left":
                if instance.pop(facts["registration"], None) is None:
                    self._wrong(event, "ended what was not live")
            case "moved":
                self._move(event, instance, facts["registration"], numbers)
            case "executed":
                self._executed(event, facts, numbers, instance)
            case "made":
                self._made(event, facts, numbers)
            case "refused":
                self.refused.append((event.tool, facts["code"]))
                self.came[event.tool] += 1
            case "stopped":
                self.stopped.append(facts["request_id"])
                self.came[event.tool] += 1
            case "enrolled":
                self.came[event.tool] += 1
            case _:
                self._wrong(event, "tells of what no host does")

    def _executed(
        self, event: Event, facts: dict[str, str], numbers: dict[str, int], instance: dict[str, _Place]
    ) -> None:
        self.came[event.tool] += 1
        named = (facts[key] for key in Execution._fields[1:-2])
        execution = Execution._make((event.tool, *named, numbers["before"], numbers["after"]))
        if any(each.receipt_id == execution.receipt_id for each in self.executions):
            self._wrong(event, "executed one receipt again")
        self.executions.append(execution)
        place = instance.get(facts["registration"])
        if len(instance) != 1 or place is None or place.publication != execution.publication:
            self._wrong(event, "executed on what was not live, or not published so")
        elif execution.before != place.generation or execution.after - execution.before not in (0, 1):
            self._wrong(event, "moved the state otherwise than by one generation")
        else:
            instance[facts["registration"]] = place._replace(generation=execution.after)

    def _move(self, event: Event, instance: dict[str, _Place], registration: str, numbers: dict[str, int]) -> None:
        place = instance.get(registration)
        if place is None or (numbers["before"], numbers["after"]) != (place.generation, place.generation + 1):
            self._wrong(event, "moved a state that was not so")
        else:
            instance[registration] = place._replace(generation=numbers["after"])

    def _made(self, event: Event, facts: dict[str, str], numbers: dict[str, int]) -> None:
        named = (facts[key] for key in MadeArtifact._fields[1:-1])
        made = MadeArtifact._make((event.tool, *named, numbers["bytes"]))
        self.made.append(made)
        last = self.executions[-1] if self.executions else None
        if last is None or (last.operation, last.receipt_id) != (made.operation, made.receipt_id):
            self._wrong(event, "made what nothing executed makes")
        if made.artifact_id != artifact_id(made.receipt_id, made.sha256):
            self._wrong(event, "named an artifact otherwise than by its bytes")

    def _wrong(self, event: Event, what: str) -> None:
        self.wrong.append(f"event {event.seq} {what}")


def read_host(received: Mapping[str, int], events: Iterable[Event]) -> HostReading:
    """The reading of one start of the host."""
    replay = _Replay()
    for number, event in enumerate(events, 1):
        if event.seq != number:
            replay.wrong.append(f"event {number} says that it is number {event.seq}")
        replay.take(event)
    wrong = replay.wrong + [
        f"more came of `{name}` than arrived" for name, count in replay.came.items() if count > received.get(name, 0)
    ]
    generations = {
        name: next(iter(places.values())).generation for name, places in replay.live.items() if len(places) == 1
    }
    return HostReading(
        dict(received),
        tuple(replay.executions),
        tuple(replay.made),
        tuple(replay.refused),
        tuple(replay.stopped),
        generations,
        tuple(wrong),
    )
