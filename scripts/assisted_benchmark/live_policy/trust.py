"""What the runner gave the broker to believe, and whether it is as pinned. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from attrs import frozen

from assisted_benchmark.kernel.digest import Digest
from assisted_benchmark.live_policy.policy import Policy


@frozen
class Pins:
    """The digests that the runner has pinned."""

    policy: Digest
    contract: Digest


@frozen(slots=False)
class Trust:
    """What the runner gave the broker to believe: the policy, its pins, what launches resolved to here."""

    policy: Policy
    pins: Pins
    launches: Mapping[str, Digest]

    @cached_property
    def policy_drifted(self) -> bool:
        """Whether the policy itself, whatever its contract, is not the pinned one."""
        return self.policy.digest_under(self.pins.contract) != self.pins.policy

    @cached_property
    def contract_drifted(self) -> bool:
        """Whether the contract is not the pinned one."""
        return self.policy.contract.digest != self.pins.contract

    @cached_property
    def holds(self) -> bool:
        """Whether both are as pinned."""
        return not (self.policy_drifted or self.contract_drifted)
