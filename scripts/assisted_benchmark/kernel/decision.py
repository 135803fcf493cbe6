"""What a broker answers: a permit or a refusal, never a bool."""

from __future__ import annotations

from typing import NamedTuple

from attrs import frozen

from assisted_benchmark.kernel.digest import Digest
from assisted_benchmark.kernel.reasons import REASONS, Coarse, Reason


class Admitted(NamedTuple):
    """The permit: one sealed call, not yet claimed. Only a ledger turns it into a `Claimed`.

    `arguments` are the sealed candidate's RFC 8785 bytes, never the agent's.
    """

    group: bytes
    candidate: Digest
    server: str
    tool: str
    arguments: bytes


@frozen
class Refused:
    """A no. `checked` names the checks that passed before the failing one.

    `receipt_id` is None only if no receipt could be written (the ledger is down).
    """

    reason: Reason
    detail: str = ""
    receipt_id: str | None = None
    checked: tuple[str, ...] = ()
    nearest: str = ""

    @property
    def coarse(self) -> Coarse:
        """All that the agent hears."""
        return REASONS[self.reason].coarse
