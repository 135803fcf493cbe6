"""One proposal that passed its dry run: what its token is bound to, and until when. Pure.

The record is what a ledger keeps beside the proposal's group. The token itself is in no record and
no receipt: the group's name is its digest.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

import orjson
from attrs import field, frozen

from assisted_benchmark.kernel.canonical import Canonical, canonical_bytes
from assisted_benchmark.kernel.clock import SECOND, Instant
from assisted_benchmark.kernel.digest import Digest, digest_of

_TOKEN: Final = re.compile(r"chg-[1-9][0-9]{0,15}-[0-9a-f]{24}", re.ASCII)
_SLACK_NS: Final = SECOND


class Session(NamedTuple):
    """Whose calls these are: given by the harness, never by the agent."""

    run: str
    principal: str


def token_text(seq: int, chance: bytes) -> str:
    """The token of the `seq`-th proposal of a run; `chance` is 12 bytes."""
    return f"chg-{seq}-{chance.hex()}"


def group_key(token: str) -> bytes | None:
    """The name of a token's group, or None for what was never a token."""
    if _TOKEN.fullmatch(token) is None:
        return None
    return bytes.fromhex(digest_of("confirm-token@1", token.encode()).removeprefix("sha256:"))


@frozen(kw_only=True)
class Proposal:
    """A change that the endpoint's dry run took.

    `price` is what the proposal reported of its price, `arguments` the keyed digest of the body, for receipts.
    """

    session: Session
    change: str
    spec: Canonical = field(repr=False)
    bound: Digest
    contract: Digest
    price: Canonical
    arguments: str
    issued: Instant
    boot: str
    ttl_ns: int

    @property
    def record(self) -> bytes:
        """The canonical bytes that a ledger keeps; `of_record` reads them back."""
        return canonical_bytes(
            {
                "run": self.session.run,
                "principal": self.session.principal,
                "change": self.change,
                # As text, so that they are read back without being written again.
                "spec": self.spec.data.decode(),
                "price": self.price.data.decode(),
                "bound": self.bound,
                "contract": self.contract,
                "arguments": self.arguments,
                # As text: nanoseconds exceed 2^53.
                "wall_ns": str(self.issued.wall_ns),
                "mono_ns": str(self.issued.mono_ns),
                "boot": self.boot,
                "ttl_ns": str(self.ttl_ns),
            }
        )

    @classmethod
    def of_record(cls, record: bytes) -> Proposal:
        """The proposal of a record that a ledger gave back, which has verified it."""
        value = orjson.loads(record)
        return cls(
            session=Session(value["run"], value["principal"]),
            change=value["change"],
            spec=Canonical(value["spec"].encode()),
            bound=Digest(value["bound"]),
            contract=Digest(value["contract"]),
            price=Canonical(value["price"].encode()),
            arguments=value["arguments"],
            issued=Instant(int(value["wall_ns"]), int(value["mono_ns"])),
            boot=value["boot"],
            ttl_ns=int(value["ttl_ns"]),
        )

    def expired(self, now: Instant, boot: str) -> bool:
        """Either clock suffices, the very instant of expiry is expired, and so is every other boot."""
        return (
            now.wall_ns >= self.issued.wall_ns + self.ttl_ns
            or now.mono_ns >= self.issued.mono_ns + self.ttl_ns
            or boot != self.boot
        )

    def set_back(self, now: Instant, boot: str) -> bool:
        """Whether a clock is behind where it was when the token was given out, the wall clock by over a second."""
        return now.wall_ns < self.issued.wall_ns - _SLACK_NS or (
            boot == self.boot and now.mono_ns < self.issued.mono_ns
        )

    def forgotten(self, now: Instant) -> bool:
        """Whether one further lifetime has passed since the expiry: the token is unknown then, used or not."""
        return now.wall_ns >= self.issued.wall_ns + 2 * self.ttl_ns

    def age_s(self, now: Instant) -> int:
        """How many whole seconds ago it was proposed."""
        return max(0, now.wall_ns - self.issued.wall_ns) // SECOND

    def remaining_s(self, now: Instant) -> int:
        """How many whole seconds are left, never negative."""
        return max(0, self.issued.wall_ns + self.ttl_ns - now.wall_ns) // SECOND
