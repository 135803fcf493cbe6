"""What an operation descends from, and the hash of exactly what was asked."""

from __future__ import annotations

from functools import cached_property
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


@frozen(slots=False)
class Asked:
    """One operation as it was asked, `parameters` as RFC 8785 bytes; `expected` is a state generation, if any."""

    lineage: Lineage
    key: str
    version: int
    expected: int | None
    parameters: bytes = field(repr=False)

    @cached_property
    def hash(self) -> Digest:
        """The request hash: over all of it, each part after its length."""
        expected = "" if self.expected is None else str(self.expected)
        texts = (*self.lineage, self.key, str(self.version), expected)
        return digest_of("operation-request@1", *map(str.encode, texts), self.parameters)

    @cached_property
    def identity(self) -> bytes:
        """The name of the receipt: of the lineage and the key alone, so that other content meets the same one."""
        texts = (*self.lineage, self.key)
        return bytes.fromhex(digest_of("operation-identity@1", *map(str.encode, texts))[7:])
