"""The official SDK's server over HTTP, in both eras, is called by the router as any other."""

import json
import threading

import pytest
from http_servers import ERAS, SdkServer
from marks import promise
from router_bench import CLOCK, soon
from test_http_servers import told

from assisted_benchmark.contract.model import SERVER_SET, Contract, Effect, Remote, Server, Tool
from assisted_benchmark.kernel.canonical import Canonical, canonical_bytes
from assisted_benchmark.kernel.decision import Admitted
from assisted_benchmark.kernel.digest import digest_of
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.ledger.protocol import Claimed
from assisted_benchmark.live_policy.ports import NO_RELAY, Observation
from assisted_benchmark.mcp_router.looking import look
from assisted_benchmark.mcp_router.router import Router

FORMS = {"elicitation": {"form": {}}}


@pytest.fixture(params=ERAS)
def there(request, tmp_path):
    server = SdkServer(tmp_path, request.param)
    server.era = request.param
    yield server
    server.close()


def routed(there, launcher, folder):
    """A router to the server as it is now, which has been looked at."""
    remote = Remote(url=there.url)
    found = look(remote, folder, FORMS, launcher, CLOCK, soon())
    assert found.connected.era.value == there.era
    tools = tuple(Tool(effect=Effect.ACT, definition=Canonical.of(each)) for each in found.tools)
    server = Server(id="there", launch=remote, tools=tools, capabilities=Canonical.of(FORMS))
    router = Router(Contract(schema=SERVER_SET, id="there", servers=(server,)), folder, CLOCK, launcher)
    seen = router.observe("there", fresh=False, deadline=soon())
    assert seen == Observation(found.resolved.digest, server.tools_digest, ())
    return router


def sent(router, tool, relay=NO_RELAY, **arguments):
    data = canonical_bytes(arguments)
    claimed = Claimed(Admitted(b"group", digest_of("candidate@1", data), "there", tool, data), "run-1")
    return router.send(claimed, gate=lambda: True, deadline=soon(), relay=relay)


class Agent:
    """An agent that hears of progress, answers every question with yes, and may cancel."""

    cancelled = False
    wants_progress = True
    can_ask = True

    def __init__(self, on_question=None):
        self.heard = []
        self.asked = []
        self.stop = None

    def on_cancel(self, stop):
        self.stop = stop

    def progress(self, current, total=None, message=""):
        self.heard.append((current, total, message))

    def question(self, message, requested_schema, heard):
        self.asked.append(message)
        heard({"action": "accept", "content": {"sure": True}})
        return lambda: None


@promise("W1", "W6", "W12", "W14", "L14")
def test_a_call_arrives_once_with_its_progress(there, launcher, tmp_path):
    router = routed(there, launcher, tmp_path)
    agent = Agent()
    reply = sent(router, "do", agent, what="it")
    assert told(reply)[0] == "done"
    assert json.loads(reply.result)["content"] == [{"type": "text", "text": "done: it"}]
    assert agent.heard == [(1, 2, "step 1"), (2, 2, "step 2")]
    router.close()
    assert (there.noted("posts"), there.noted("did")) == (["do"], ["it"])


@promise("W1", "W5")
def test_a_call_that_the_agent_cancels_is_cancelled_at_the_server(there, launcher, tmp_path):
    router = routed(there, launcher, tmp_path)
    agent = Agent()
    ended = []
    calling = threading.Thread(target=lambda: ended.append(sent(router, "hang", agent)))
    calling.start()
    while "hangs" not in there.noted("did"):
        calling.join(0.01)
    agent.stop()
    calling.join(20)
    (reply,) = ended
    assert told(reply)[0] in (Reason.OUTCOME_UNKNOWN, "failed")  # this one says that it was cancelled, in one era
    while "cancelled" not in there.noted("did"):
        calling.join(0.01)
    router.close()
    assert there.noted("posts") == ["hang"]


@promise("W1")
@pytest.mark.parametrize("there", ["handshake"], indirect=True)
def test_what_it_asks_in_a_call_goes_to_the_agent_and_the_answer_back(there, launcher, tmp_path):
    router = routed(there, launcher, tmp_path)
    agent = Agent()
    reply = sent(router, "ask", agent)
    assert json.loads(reply.result)["content"] == [{"type": "text", "text": "accept"}]
    assert agent.asked == ["sure?"]
    router.close()
    assert (there.noted("posts"), there.noted("did")) == (["ask"], ["asked: accept"])
