"""What really happened at the offline Fabric endpoint, by its own account: for the harness only.

It reads what the endpoint told of itself (the counts of its requests and its events), in process or over the
control channel, and nothing that a broker says.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from assisted_benchmark.kernel.canonical import Json, parse
from assisted_benchmark.workloads.fabric_api import KINDS
from assisted_benchmark.workloads.model import Event


class Created(NamedTuple):
    """One thing that was created. `body` is the SHA-256, in hex, of the request's body as it arrived."""

    kind: str
    uuid: str
    body: str
    made: Json


class FabricReading(NamedTuple):
    """POSTs by kind, dry and real (whatever came of them), and all that was created, in order.

    `dry_bodies` are the SHA-256 of the bodies of the dry runs that passed. With any of `disagreements` the endpoint
    contradicts itself, and nothing that it tells counts.
    """

    dry: dict[str, int]
    real: dict[str, int]
    created: tuple[Created, ...]
    dry_bodies: tuple[str, ...]
    disagreements: tuple[str, ...] = ()


def read_fabric(received: Mapping[str, int], events: Iterable[Event]) -> FabricReading:
    """The reading of one start of the endpoint."""
    created: list[Created] = []
    dry_bodies: list[str] = []
    wrong: list[str] = []
    happened: dict[str, int] = {}
    for number, event in enumerate(events, 1):
        facts = event.facts
        happened[event.tool] = happened.get(event.tool, 0) + (event.kind in ("created", "dry_run"))
        if event.seq != number:
            wrong.append(f"event {number} says that it is number {event.seq}")
        if event.kind == "created":
            made = parse(str(facts["object"]).encode())
            created.append(Created(event.tool.partition(".")[0], str(facts["uuid"]), str(facts["body"]), made))
            if made.get("uuid") != facts["uuid"]:
                wrong.append(f"event {number} created another thing than it tells of")
        elif event.kind == "dry_run":
            dry_bodies.append(str(facts["body"]))
    wrong += [
        f"more came of `{name}` than arrived" for name, count in happened.items() if count > received.get(name, 0)
    ]
    if len({each.uuid for each in created}) != len(created):
        wrong.append("two things have one uuid")
    return FabricReading(
        {kind: received.get(f"{kind}.dry_run", 0) for kind in KINDS},
        {kind: received.get(f"{kind}.create", 0) for kind in KINDS},
        tuple(created),
        tuple(dry_bodies),
        tuple(wrong),
    )
