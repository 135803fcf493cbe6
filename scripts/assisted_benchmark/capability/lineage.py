"""What an operation descends from, and the hash of exactly what was asked."""

from __future__ import annotations

from typing import NamedTuple

from attrs import field, frozen

from assisted_benchmark.kernel.digest import Digest, digest_of


class Lineage(NamedTuple):
    """Who asks, under what, of whom: an idempotency key means nothing outside of its lineage."""

    client: str
    registration: str
    grant: str
    publication: str
    operation: str


@frozen
class Asked:
    """One operation as it was asked, `parameters` as RFC 8785 bytes; `expected` is a state generation, if any.

    `request_hash` is over all of it, each part after its length. `identity` names its receipt: of lineage and key
    alone, so that other content meets the same one.
    """

    lineage: Lineage
    key: str
    version: int
    expected: int | None
    parameters: bytes = field(repr=False)
    request_hash: Digest = field(init=False, repr=False)
    identity: bytes = field(init=False, repr=False)

    @request_hash.default
    def _hash(self) -> Digest:
        expected = "" if self.expected is None else str(self.expected)
        texts = (*self.lineage, self.key, str(self.version), expected)
        return digest_of("operation-request@1", *map(str.encode, texts), self.parameters)

    @identity.default
    def _identity(self) -> bytes:
        return bytes.fromhex(digest_of("operation-identity@1", *map(str.encode, (*self.lineage, self.key)))[7:])
