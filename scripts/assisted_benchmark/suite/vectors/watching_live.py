"""The live broker watched: each decision on a proposal, and each opening that was refused."""

from __future__ import annotations

from typing import Any, Final

from assisted_benchmark.kernel.canonical import Json
from assisted_benchmark.kernel.clock import Instant
from assisted_benchmark.kernel.decision import Refused
from assisted_benchmark.kernel.digest import Digest
from assisted_benchmark.kernel.keys import Purpose
from assisted_benchmark.live_policy.compiler import compile_plan
from assisted_benchmark.live_policy.deciding import Decider
from assisted_benchmark.live_policy.grant import Binding, SealedGrant, Session, content_of, group_key
from assisted_benchmark.live_policy.grants import Grants
from assisted_benchmark.suite.instruments import CutOff
from assisted_benchmark.suite.plan import run_keys
from assisted_benchmark.suite.vectors.clocks import clock_value, instant_value
from assisted_benchmark.suite.vectors.vector import bytes_value
from assisted_benchmark.suite.vectors.watching import Method, Tell, Watch


def _judge(whole: Method, tell: Tell) -> Method:
    def judge(self: Any, session: Session, raw: bytes) -> Any:
        own = self._find(session.grant)
        bound = session if own is None else own.session
        given = _given(self._desk, self._trust, bound.run, None if own is None else bound.grant)
        answer = whole(self, session, raw)
        if given is not None:
            given |= {"session": session._asdict(), "proposal": bytes_value(raw)}
            given["ledger"]["latest_wall_ns"] = str(0 if own is None else own.mark)
            code = answer.reason.value if isinstance(answer, Refused) else "admitted"
            tell(given, self._trust.policy, code)
        return answer

    return judge


def _open(whole: Method, tell: Tell) -> Method:
    def opened(self: Any, raw: bytes, session: Session) -> Any:
        given = _given(self._desk, self._trust, session.run, session.grant)
        answer = whole(self, raw, session)
        if given is not None and isinstance(answer, Refused):
            given |= {
                "grant": bytes_value(raw),
                "opened_by": session._asdict(),
                "opened_at": given["now"],
                "session": session._asdict(),
                "proposal": {"text": ""},
            }
            tell(given, self._trust.policy, answer.reason.value)
        return answer

    return opened


def _given(desk: Any, trust: Any, run: str, grant: Digest | None) -> dict[str, Json] | None:
    """What a decision under that run depends on, but for session and proposal; None, if nothing was ever sealed."""
    ledger = desk.ledger
    inner = ledger.inner if isinstance(ledger, CutOff) else ledger
    record = inner.run_record(run)
    if record is None:
        return None
    keys = run_keys(0)
    binding = Binding.of_record(record)
    plan = compile_plan(trust.policy, binding.task)
    sealed = SealedGrant.seal(content_of(binding, inner.id, plan, trust.launches), keys.key(Purpose.GRANT))
    # A grant that was edited has another name than the one that the ledger opened.
    for named in (grant or sealed.digest, sealed.digest):
        groups = [inner.row(group_key(named, index)) for index in range(len(plan.steps))]
        if all(groups):
            break
    else:
        return None
    issued = Instant(int(binding.issued_at), int(binding.issued_mono))
    return {
        "pins": {"policy": trust.pins.policy, "contract": trust.pins.contract},
        "launches": dict(trust.launches),
        "key": {"id": keys.id, "master": keys.master.hex()},
        "ledger": {
            "id": inner.id,
            "binding": binding._asdict(),
            "grant": named,
            "groups": [row.state for row in groups if row is not None],
            "latest_wall_ns": binding.issued_at,
            "unavailable": isinstance(ledger, CutOff) and ledger.down,
        },
        "grant": bytes_value(sealed.data),
        "opened_by": binding.session(sealed.digest)._asdict(),
        "opened_at": instant_value(issued, binding.boot),
        "now": clock_value(desk.clock),
    }


LIVE: Final[tuple[Watch, ...]] = ((Decider, "judge", _judge), (Grants, "open", _open))
