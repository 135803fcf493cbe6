"""The checks of a sealed grant that is presented to be opened, in the live broker's order.

The last one is what makes a grant believed: compiling the trusted policy for the binding that the
ledger and the runner hold has to give the very bytes. Whoever edited a grant and could compute
every digest and MAC anew fails there.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from assisted_benchmark.kernel.canonical import Json
from assisted_benchmark.kernel.keys import Key
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.live_policy.checks import Check
from assisted_benchmark.live_policy.grant import Claims, SealedGrant, Session
from assisted_benchmark.live_policy.trust import Trust


class Opening(NamedTuple):
    """A sealed grant that is presented, and all that is needed to believe it.

    `recompiled` is the trusted content, empty if there is none; `known` whether the ledger has the run.
    """

    sealed: SealedGrant
    claims: Claims
    session: Session
    known: bool
    recompiled: bytes
    boot: str
    trust: Trust
    key: Key


def _same(claimed: Json, bound: str, what: str) -> str:
    return "" if claimed == bound else f"the grant names another {what}"


def _wrong_host(o: Opening) -> str:
    if o.claims.host != o.session.host:
        return "the grant names another host"
    return _same(o.claims.boot, o.session.boot, "boot") or _same(o.claims.boot, o.boot, "boot")


def _policy_drift(o: Opening) -> str:
    # A grant under another contract than the pinned one has another policy digest for that alone.
    other = o.claims.policy != o.trust.pins.policy and o.claims.contract == o.trust.pins.contract
    return "the policy is not the pinned one" if o.trust.policy_drifted or other else ""


def _contract_drift(o: Opening) -> str:
    if o.trust.contract_drifted or o.claims.contract != o.trust.pins.contract:
        return "the contract is not the pinned one"
    same = o.claims.launches == dict(o.trust.launches)
    return "" if same else "a server's launch resolves to something else than it did at sealing"


def _grant_not_from_policy(o: Opening) -> str:
    same = o.sealed.content == o.recompiled and o.sealed.digest == o.session.grant
    return "" if same else "compiling the trusted policy for this run gives another grant"


OPENING: Final[tuple[Check[Opening], ...]] = (
    Check(Reason.UNKNOWN_GRANT, lambda o: "" if o.known else "the ledger has no such run"),
    Check(Reason.SEAL_INVALID, lambda o: "" if o.sealed.verifies(o.key) else "the seal does not verify"),
    Check(Reason.CROSS_RUN, lambda o: _same(o.claims.run, o.session.run, "run")),
    Check(Reason.WRONG_PRINCIPAL, lambda o: _same(o.claims.principal, o.session.principal, "session")),
    Check(Reason.WRONG_VM, lambda o: _same(o.claims.vm, o.session.vm, "VM")),
    Check(Reason.WRONG_HOST, _wrong_host),
    Check(Reason.POLICY_DRIFT, _policy_drift),
    Check(Reason.CONTRACT_DRIFT, _contract_drift),
    Check(Reason.GRANT_NOT_FROM_POLICY, _grant_not_from_policy),
)
