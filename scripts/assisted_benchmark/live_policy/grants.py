"""The grants that are open here: sealed for new runs, believed when presented, remembered while in use."""

from __future__ import annotations

from contextlib import suppress
from threading import Lock
from typing import Final

from assisted_benchmark.kernel.chance import Chance
from assisted_benchmark.kernel.decision import Refused
from assisted_benchmark.kernel.digest import Digest, parse_digest
from assisted_benchmark.kernel.errors import (
    DocumentError,
    HarnessError,
    InputError,
    IntegrityError,
    LedgerError,
    MisuseError,
)
from assisted_benchmark.kernel.keys import Key
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.live_policy.checks import Check, first_failing
from assisted_benchmark.live_policy.compiler import compile_plan
from assisted_benchmark.live_policy.desk import Desk
from assisted_benchmark.live_policy.grant import Binding, Claims, SealedGrant, Session, content_of, group_key
from assisted_benchmark.live_policy.opened import OpenGrant
from assisted_benchmark.live_policy.opening import Opening
from assisted_benchmark.live_policy.policy import Plan
from assisted_benchmark.live_policy.trust import Trust

_NONCE_BYTES: Final = 16


class Grants:
    """Every grant of one trusted policy that is open here."""

    def __init__(
        self, *, trust: Trust, desk: Desk, chance: Chance, seal_key: Key, opening: tuple[Check[Opening], ...]
    ) -> None:
        self._trust = trust
        self._desk = desk
        self._ledger = desk.ledger
        self._clock = desk.clock
        self._chance = chance
        self._seal_key = seal_key
        self._opening = opening
        self._lock = Lock()
        self._plans: dict[str, Plan] = {}
        # A grant that was not used yet is kept as its ledger record, by the name of its first group.
        self._unused: dict[bytes, bytes] = {}
        self._open: dict[str, OpenGrant] = {}

    def seal(self, *, run: str, principal: str, vm: str, host: Digest, task: str) -> SealedGrant:
        """Compile the policy for a new run, open the run in the ledger, and give its sealed grant, which is open here.

        Raises:
            DocumentError: the policy does not compile for this task.
            IntegrityError: policy_drift or contract_drift against the pins.
            MisuseError: a malformed binding, a missing launch digest, or a run that exists.
            LedgerError: the ledger cannot be used.
        """
        if not self._trust.holds:
            reason = Reason.POLICY_DRIFT if self._trust.policy_drifted else Reason.CONTRACT_DRIFT
            raise IntegrityError(reason, f"the policy `{self._trust.policy.id}` is not sealed: it is not as pinned")
        plan = self._plan(task)
        nonce = self._chance.token(_NONCE_BYTES).hex()
        wall, mono = self._clock.now()
        boot = self._clock.boot_id
        binding = Binding(run, nonce, principal, vm, host, boot, task, str(wall), str(mono)).checked()
        sealed = SealedGrant.seal(self._content(binding, plan), self._seal_key)
        grant, record = sealed.digest, binding.record()
        keys = [group_key(grant, index) for index in range(len(plan.steps))]
        if not self._ledger.open_run(run, record, keys):
            raise MisuseError(Reason.DUPLICATE_ID, f"the run `{run}` exists already: a run id is used once")
        self._unused[keys[0]] = record
        return sealed

    def open(self, raw: bytes, session: Session) -> OpenGrant | Refused:
        """Believe a sealed grant only if compiling the trusted policy for the ledger's binding gives its bytes.

        Then what the ledger's receipts say of it is taken up again.

        Raises:
            IntegrityError: the ledger's rows or the run's receipts do not verify.
        """
        try:
            record = self._ledger.run_record(session.run)
        except LedgerError as error:
            return self._desk.refuse(session, None, Reason.STORE_UNAVAILABLE, error.detail)
        try:
            sealed = SealedGrant.read(raw)
        except InputError as error:
            return self._desk.refuse(session, None, error.reason, error.detail)
        binding, recompiled = self._recompile(record)
        claims = Claims.of_content(sealed.content)
        boot = self._clock.boot_id
        presented = Opening(sealed, claims, session, record is not None, recompiled, boot, self._trust, self._seal_key)
        if failed := first_failing(self._opening, presented):
            return self._desk.refuse(session, None, failed.reason, failed.detail, checked=failed.checked)
        if binding is None:
            raise HarnessError(Reason.COULD_NOT_RUN, "no check failed, and there is no binding to open the grant under")
        return self._take_up(binding, sealed.digest)

    def _take_up(self, binding: Binding, digest: Digest) -> OpenGrant | Refused:
        # One that is in use here stays the one: it knows of a call in flight and of what stopped it.
        grant = self.find(digest) or OpenGrant(digest, binding, self._plan(binding.task))
        try:
            grant.refresh(self._ledger)
            for receipt in self._desk.history(binding.run):
                grant.mark = max(grant.mark, int(receipt["wall_ns"]))
        except LedgerError as error:
            return self._desk.refuse(grant.session, None, Reason.STORE_UNAVAILABLE, error.detail)
        with self._lock:
            return self._open.setdefault(digest, grant)

    def _recompile(self, record: bytes | None) -> tuple[Binding | None, bytes]:
        if record is None:
            return None, b""
        binding = Binding.of_record(record)
        with suppress(DocumentError):  # a policy that does not compile gives no grant
            return binding, self._content(binding, self._plan(binding.task))
        return binding, b""

    def _content(self, binding: Binding, plan: Plan) -> bytes:
        return content_of(binding, self._ledger.id, plan, self._trust.launches)

    def _plan(self, task: str) -> Plan:
        plan = self._plans.get(task)
        if plan is None:
            plan = compile_plan(self._trust.policy, task)
            missing = [step.server.id for step in plan.steps if step.server.id not in self._trust.launches]
            if missing:
                raise MisuseError(Reason.MISSING_KEY, f"no launch digest for the server `{missing[0]}`")
            self._plans[task] = plan
        return plan

    def find(self, grant: str) -> OpenGrant | None:
        """The open grant of exactly that digest; one that was not used yet is made from its record."""
        return self._open.get(grant) or self._first_use(grant)

    def _first_use(self, grant: str) -> OpenGrant | None:
        try:
            digest = parse_digest(grant)
        except InputError:
            return None
        # Under a lock, so that all threads share one view and find its call in flight.
        with self._lock:
            record = self._unused.pop(group_key(digest, 0), None)
            if record is not None:
                binding = Binding.of_record(record)
                self._open[digest] = OpenGrant(digest, binding, self._plans[binding.task])
            return self._open.get(digest)
