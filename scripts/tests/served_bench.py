"""Cases that clients play: on a fresh ledger in memory, by the test's own hand and clock."""

import json

from agent_peers import Agent, ask, call, modern
from suite_world import a_root, cases_in, ran, scenario

from assisted_benchmark.gateway.flight import Limits
from assisted_benchmark.kernel.clock import ManualClock
from assisted_benchmark.suite.live.agents import Outside
from assisted_benchmark.suite.live.case_face import CaseFace, session_of
from assisted_benchmark.suite.live.served import for_client

SERIES, CLICK = "lba__get_benchmark_series", "synthetic-ui__click_target"
APPROVE, HOLD = ({"taskId": "t-1", "targetId": target} for target in ("approve", "hold"))


def proposal(server, tool, **arguments):
    return json.dumps({"arguments": arguments, "server": server, "tool": tool}).encode()


LOOK = proposal("lba", "get_benchmark_series")
CHOOSE = proposal("synthetic-ui", "click_target", **APPROVE)


def a_case(folder, body="agent: {plan: approve}\n", *, policy="ui-decision", case="plain"):
    """One case of a scenario with this body."""
    return cases_in(a_root(folder, tried=scenario("tried", body, policy=policy)))[f"tried/{case}"]


def played(case, use, clock=None, **plan):
    """What the case comes to when `use` is what its client does."""
    broke = []

    def drive(served):
        try:
            use(served)
        except AssertionError as failed:  # of the test, not of the case
            broke.append(failed)

    ended = ran(for_client(case, Outside(drive=drive, clock=clock or ManualClock())), **plan)
    for failed in broke:
        raise failed
    return ended


class Client:
    """An MCP client of a served case, over pipes."""

    def __init__(self, served, *, stateless=False, principal=None, **options):
        session = session_of(served)
        if principal is not None:
            session = session._replace(principal=principal)
        self.pipes = Agent(
            face=CaseFace(served),
            session=session,
            limits=options.pop("limits", Limits(calls=1)),
            on_malformed=served.refuse_malformed,
            **options,
        )
        self.envelope = {"_meta": modern(0, capabilities={})["params"]["_meta"]} if stateless else {}
        self._id = 0
        if not stateless:
            self.pipes.opened(capabilities={})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.pipes.close()

    def sends(self, method, **params):
        """A request that is not waited for; its id."""
        self._id += 1
        self.pipes.says(ask(self._id, method, **params, **self.envelope))
        return self._id

    def asks(self, method, **params):
        """The answer to a request."""
        number = self.sends(method, **params)
        heard = self.pipes.hears()
        assert heard["id"] == number, heard
        return heard

    def calls(self, name, arguments):
        """The result of a call."""
        return self.asks("tools/call", **call(0, name, arguments)["params"])["result"]

    def names(self):
        return [tool["name"] for tool in self.asks("tools/list")["result"]["tools"]]
