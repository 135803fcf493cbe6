"""What a durable receipt holds: the record of an admission, how it stands, and how it ends."""

from __future__ import annotations

from typing import Final, NamedTuple

from attrs import define

from assisted_benchmark.capability.lineage import Lineage
from assisted_benchmark.capability.states import ACTIVE, State
from assisted_benchmark.kernel.canonical import canonical_bytes, parse
from assisted_benchmark.kernel.digest import Digest, parse_digest
from assisted_benchmark.kernel.reasons import Reason

_SCHEMA: Final = "assisted-benchmark/operation@1"


class Record(NamedTuple):
    """What the ledger keeps of an operation beside its group, from its admission on."""

    receipt_id: str
    request_id: str
    key: str
    request_hash: Digest
    lineage: Lineage
    instance: str
    version: int
    automatic: bool
    admitted_ns: int

    @property
    def again(self) -> tuple[str, ...]:
        """What a call repeats that leaves its grant to the broker, as the first one did."""
        client, registration, _, publication, operation = self.lineage
        return (client, registration, publication, operation, self.key)


class End(NamedTuple):
    """The terminal state that an operation comes to, and why; `content` is what it gave, as canonical bytes.

    `heard` are the host's own words on it. They are for the caller: no receipt has them, as they may tell a secret.
    """

    state: State
    reason: Reason | None
    explanation: str = ""
    content: bytes | None = None
    heard: str = ""

    @property
    def word(self) -> str:
        """What its receipt has as the reason."""
        return self.state.value if self.reason is None else self.reason.value


@define
class Receipt:
    """An operation as it stands. `content` is what it gave as canonical bytes, while the broker has it.

    `arguments` is the keyed digest of its parameters, while it is this broker's to execute.
    """

    identity: bytes
    record: Record
    state: State
    arguments: str = ""
    reason: str = ""
    explanation: str = ""
    content: bytes | None = None

    @property
    def active(self) -> bool:
        """Whether it has not ended."""
        return self.state in ACTIVE


def written(record: Record) -> bytes:
    """The record as the ledger keeps it."""
    return canonical_bytes(
        {
            **record._asdict(),
            "schema": _SCHEMA,
            "lineage": list(record.lineage),
            "admitted_ns": str(record.admitted_ns),  # exceeds 2^53
        }
    )


def read(raw: bytes) -> Record:
    """The record that was written so; anything else raises KeyError, TypeError, ValueError or InputError."""
    value = parse(raw)
    if value.pop("schema") != _SCHEMA:
        raise ValueError("a record of another schema")
    lineage = Lineage(*value.pop("lineage"))
    hashed, admitted_ns = parse_digest(value.pop("request_hash")), int(value.pop("admitted_ns"))
    return Record(**value, lineage=lineage, request_hash=hashed, admitted_ns=admitted_ns)
