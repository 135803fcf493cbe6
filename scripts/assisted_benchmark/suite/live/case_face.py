"""What an agent from outside is shown of a case, and the way of its calls into it."""

from __future__ import annotations

from assisted_benchmark.gateway.agent_session import AgentSession
from assisted_benchmark.gateway.face import Face
from assisted_benchmark.gateway.flight import Limits
from assisted_benchmark.gateway.held import HeldCalls
from assisted_benchmark.gateway.live_tools import instructions, live_tools, names_of
from assisted_benchmark.gateway.tools import AgentCall, Session
from assisted_benchmark.kernel.chance import SystemChance
from assisted_benchmark.kernel.clock import SystemClock
from assisted_benchmark.kernel.decision import Refused
from assisted_benchmark.kernel.strict_json import Json
from assisted_benchmark.live_policy.dispatch import Outcome
from assisted_benchmark.suite.live.scenario import Reveal, Visibility
from assisted_benchmark.suite.live.served import ServedCase
from assisted_benchmark.wire.relay import Relay
from assisted_benchmark.wire.server_side import Also

# Turns are taken one at a time anyway: on one thread they keep the order of their lines.
LIMITS = Limits(calls=1)


class CaseFace(Face):
    """The tools of a served case: every one of its contract, or those of the step that is open now.

    What is not shown is no less judged: a call of it is refused like any other, and leaves its receipt.
    """

    def __init__(self, served: ServedCase) -> None:
        case = served.case
        contract = case.plan.policy.contract
        self._served = served
        self._contract = contract
        self.list_changed = case.visibility is Visibility.OPEN
        self._held = HeldCalls(SystemChance())
        reveal = case.reveal is Reveal.REASON
        tools = live_tools(contract, self._propose, self._held, served.refuse_malformed, reveal=reveal)
        super().__init__(tools, instructions(case.run.task, case.instructions))

    @property
    def also(self) -> Also:
        return super().also._replace(unlisted=frozenset(self.registered))

    def tools(self) -> list[Json]:
        listed = super().tools()
        if not self.list_changed:
            return listed
        step = self._served.open_step()
        calls = set() if step is None else {(each.server, each.tool) for each in step.candidates}
        shown = names_of(self._contract, calls)
        return [tool for tool in listed if tool["name"] in shown]

    def leave(self) -> None:
        """The client is gone: nobody answers what it was asked."""
        self._held.close()

    def _propose(self, raw: bytes, call: AgentCall, relay: Relay) -> Outcome | Refused:
        return self._served.propose(raw, principal=call.session.principal, relay=relay)


def served_to(served: ServedCase, read_fd: int, write_fd: int) -> AgentSession:
    """The session of the client that these descriptors lead to, ready to be served."""
    face = CaseFace(served)
    return AgentSession(
        face,
        session_of(served),
        SystemClock(),
        read_fd=read_fd,
        write_fd=write_fd,
        limits=LIMITS,
        on_malformed=served.refuse_malformed,
        on_leaving=face.leave,
    )


def label_of(client: Json) -> str:
    """What a client calls itself."""
    words = [client.get(key) for key in ("name", "version")] if type(client) is dict else []
    return " ".join(word for word in words if type(word) is str)


def session_of(served: ServedCase) -> Session:
    """The session of the agent that the case's grant was sealed for."""
    return Session(served.run, served.case.run.session)
