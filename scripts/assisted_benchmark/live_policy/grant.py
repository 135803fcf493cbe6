"""Sealed grants: a plan bound to one run, principal, VM, host and boot until one instant. Pure.

    binding    what the runner and the ledger hold of a run
    content    the grant's canonical bytes: a header made from the binding, and the plan's bytes
    digest     of the content, and so the grant's name
    seal       the content with a MAC over its digest

A seal shows only that the grant came from a holder of the key. What makes a grant believed is
that compiling the trusted policy for the trusted binding gives the same bytes again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

import orjson
from attrs import frozen

from assisted_benchmark.kernel.canonical import Json, canonical_bytes, canonical_texts, parse
from assisted_benchmark.kernel.digest import Digest, digest_of
from assisted_benchmark.kernel.errors import CanonicalError, InputError, MisuseError
from assisted_benchmark.kernel.keys import Key
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.text import shown
from assisted_benchmark.live_policy.policy import Plan

_UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class Session(NamedTuple):
    """Under which binding a proposal is judged. The harness makes it; nothing in it is the agent's to say."""

    grant: Digest
    run: str
    principal: str
    vm: str
    host: Digest
    boot: str


class Binding(NamedTuple):
    """What a grant is bound to. The policy says for how long from the two clocks' readings at its sealing.

    They are nanoseconds in decimal, as sealed: RFC 8785 has no integers of that size.
    """

    run: str
    nonce: str
    principal: str
    vm: str
    host: Digest
    boot: str
    task: str
    issued_at: str
    issued_mono: str

    def checked(self) -> Binding:
        """Itself.

        Raises:
            MisuseError: the VM is no lower-case UUID, or the run, principal or task has no name.
        """
        if _UUID.fullmatch(self.vm) is None:
            raise MisuseError(Reason.WRONG_VALUE, f"`{shown(self.vm, 60)}` is no UUID in its lower-case form")
        if not (self.run and self.principal and self.task):
            raise MisuseError(Reason.WRONG_VALUE, "a binding names a run, a principal and a task")
        return self

    def record(self) -> bytes:
        """What the ledger keeps with the run."""
        # Copied: the writer's own buffer is larger than its text, and a ledger keeps a record for good.
        return bytes(memoryview(canonical_texts(list(self))))

    @classmethod
    def of_record(cls, record: bytes) -> Binding:
        """The binding back from what the ledger kept."""
        return cls(*orjson.loads(record))

    def session(self, grant: Digest) -> Session:
        """The session that this binding admits."""
        return Session(grant, self.run, self.principal, self.vm, self.host, self.boot)


def content_of(binding: Binding, ledger: str, plan: Plan, launches: Mapping[str, Digest]) -> bytes:
    """The grant's canonical bytes. `launches` are the digests of what each server's launch resolved to here."""
    lifetime = plan.policy.expires_after_ns
    header = canonical_texts(
        {
            "run": binding.run,
            "nonce": binding.nonce,
            "principal": binding.principal,
            "ledger": ledger,
            "vm": binding.vm,
            "host": binding.host,
            "boot": binding.boot,
            "issued_at": binding.issued_at,
            "issued_mono": binding.issued_mono,
            "expires_at": str(int(binding.issued_at) + lifetime),
            "expires_mono": str(int(binding.issued_mono) + lifetime),
            "launches": dict(launches),
        }
    )
    return b'{"header":%b,"plan":%b}' % (header, plan.data)


def grant_digest(content: bytes) -> Digest:
    """The grant's name."""
    return digest_of("grant@1", content)


def group_key(grant: Digest, index: int) -> bytes:
    """The ledger's name of the group of step `index`: the grant's 32 bytes, the last two of them XORed with it."""
    raw = bytes.fromhex(grant[7:])
    return raw if index == 0 else raw[:30] + (int.from_bytes(raw[30:], "big") ^ index).to_bytes(2, "big")


@frozen
class SealedGrant:
    """A grant's content under its MAC, as it may be handed to whoever keeps it. `digest` is always the content's."""

    content: bytes
    digest: Digest
    key_id: str
    mac: bytes

    @classmethod
    def seal(cls, content: bytes, key: Key) -> SealedGrant:
        digest = grant_digest(content)
        return cls(content, digest, key.id, key.mac(digest.encode()))

    @classmethod
    def read(cls, raw: bytes) -> SealedGrant:
        """From bytes; only their one spelling is read.

        Raises:
            InputError: seal_invalid.
        """
        try:
            value = parse(raw)
            if type(value) is dict and set(value) == {"grant", "key", "mac"}:
                content, mac = canonical_bytes(value["grant"]), bytes.fromhex(value["mac"])
                sealed = cls(content, grant_digest(content), str(value["key"]), mac)
                if sealed.data == raw:
                    return sealed
        except (CanonicalError, ValueError, TypeError) as error:
            raise InputError(Reason.SEAL_INVALID, "the bytes are no sealed grant") from error
        raise InputError(Reason.SEAL_INVALID, "the bytes are no sealed grant in its one spelling")

    @property
    def data(self) -> bytes:
        """The canonical bytes of the whole."""
        rest = canonical_bytes({"key": self.key_id, "mac": self.mac.hex()})
        return b'{"grant":%b,%b' % (self.content, rest[1:])

    def verifies(self, key: Key) -> bool:
        """Whether this very key made the seal."""
        return self.key_id == key.id and key.verify(self.mac, self.digest.encode())


class Claims(NamedTuple):
    """What a grant says of itself, whatever that is: compared with what is trusted, and never trusted."""

    run: Json
    principal: Json
    vm: Json
    host: Json
    boot: Json
    policy: Json
    contract: Json
    launches: Json

    @classmethod
    def of_content(cls, content: bytes) -> Claims:
        """As read from a presented grant; what is missing there is None."""
        value = parse(content)
        header, plan = (_object(value, "header"), _object(value, "plan"))
        run, principal, vm, host, boot = (header.get(each) for each in ("run", "principal", "vm", "host", "boot"))
        policy, contract = plan.get("policy"), plan.get("contract")
        return cls(run, principal, vm, host, boot, policy, contract, header.get("launches"))


def _object(value: Json, key: str) -> dict[str, Json]:
    found = value.get(key) if type(value) is dict else None
    return found if type(found) is dict else {}
