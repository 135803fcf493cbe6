"""MAC keys: one a purpose, named by id, their secrets never printed.

Reading and writing key files is the suite's business; here a key is a value.
"""

from __future__ import annotations

import hashlib
import hmac
from enum import StrEnum, unique

from attrs import field, frozen

from assisted_benchmark.kernel.digest import framed


@unique
class Purpose(StrEnum):
    """What a key is for. A MAC of one purpose never verifies under another."""

    GRANT = "grant"
    LEDGER = "ledger"
    RECEIPT_ARGUMENTS = "receipt-arguments"
    OPERATOR = "operator"


@frozen
class Key:
    """One MAC key. `id` may be published; `secret` (32 bytes) never leaves the process."""

    id: str
    purpose: Purpose
    secret: bytes = field(repr=False)
    # Begun once, as taking in the key is most of the work; each MAC goes on from a copy.
    _begun: hmac.HMAC = field(init=False, repr=False, eq=False)

    @_begun.default
    def _begin(self) -> hmac.HMAC:
        return hmac.new(self.secret, framed(f"{self.purpose.value}@1", self.id.encode()), "sha256")

    def mac(self, *parts: bytes) -> bytes:
        """HMAC-SHA256 (32 bytes) over the purpose, the key's id and the framed parts."""
        mac = self._begun.copy()
        mac.update(b"".join([len(part).to_bytes(8, "big") + part for part in parts]))
        return mac.digest()

    def verify(self, mac: bytes, *parts: bytes) -> bool:
        """Whether `mac` is this key's MAC over `parts`; compared in constant time."""
        return hmac.compare_digest(mac, self.mac(*parts))


@frozen
class KeyRing:
    """One current key a purpose; all are derived from one 32-byte master secret.

    Derivation keeps one owner-only file instead of four; a key id is the master's
    rotation id and is never trusted by itself.
    """

    id: str
    master: bytes = field(repr=False)

    def key(self, purpose: Purpose) -> Key:
        """The key of one purpose."""
        secret = hashlib.sha256(framed("key-derivation@1", self.master, purpose.value.encode())).digest()
        return Key(self.id, purpose, secret)
