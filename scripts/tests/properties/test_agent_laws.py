"""Laws of an agent's session: whatever an agent says, and however it is cut, each request is answered at most once."""

import json
from collections import Counter

from agent_peers import OK, SCHEMA, Agent, a_tool, ask, call, cancel, modern, reply, told
from hypothesis import given, settings
from hypothesis import strategies as st
from marks import promise

from assisted_benchmark.kernel.clock import SECOND
from assisted_benchmark.wire.outcomes import Era
from assisted_benchmark.wire.server_side import CallCancelled

YES = {"action": "accept", "content": {"confirm": True}}
ids = st.sampled_from([0, 1, 2, "0", "1", "ask-1", "ask-2"])
requests = st.one_of(
    st.builds(call, ids, st.sampled_from(["act", "ask", "nobody"])),
    st.builds(modern, ids, st.sampled_from(["act", "ask"])),
    st.builds(ask, ids, st.sampled_from(["ping", "tools/list", "server/discover", "resources/list"])),
    st.just(ask("i", "initialize", protocolVersion="2025-11-25", capabilities={"elicitation": {}})),
)
others = st.one_of(
    st.builds(cancel, ids),
    st.builds(reply, ids, st.sampled_from([YES, None, {"action": "cancel"}])),
    st.just(told("notifications/initialized")),
)
lines = st.one_of(requests, requests, others).map(lambda message: json.dumps(message).encode())
bad = st.one_of(st.binary(max_size=20).map(lambda raw: raw.replace(b"\n", b"")), lines.map(lambda line: line[:-1]))


class Changing:
    """A tool that acts only if a person said yes."""

    def __init__(self):
        self.acts = 0

    def __call__(self, seen):
        if seen.era is Era.STATELESS or not seen.can_ask:
            return OK
        heard = seen.ask("really?", SCHEMA, 60 * SECOND)
        if seen.cancelled:
            raise CallCancelled
        self.acts += heard == YES
        return OK


@settings(max_examples=60, deadline=None)
@given(st.lists(st.one_of(lines, lines, bad), max_size=25), st.integers(1, 64))
@promise("W3", "W4", "W5")
def test_every_request_is_answered_at_most_once_and_every_session_ends(said, size):
    changing = Changing()
    agent = Agent(a_tool("act"), a_tool("ask", changing, read_only=False))
    raw = b"".join(line + b"\n" for line in said)
    for start in range(0, len(raw), size):
        agent.says(raw[start : start + size])
    heard = agent.rest()
    agent.close()

    answered = Counter(json.dumps(each["id"]) for each in heard if "method" not in each and each["id"] is not None)
    asked = Counter()
    for line in said:
        asked.update(json.dumps(each) for each in ids_in(line))
    assert all(count <= asked[key] for key, count in answered.items())
    questions = [each["id"] for each in heard if each.get("method") == "elicitation/create"]
    assert len(questions) == len(set(questions))
    yes = sum(json.loads(line).get("result") == YES for line in said if line.endswith(b"}") and is_json(line))
    assert changing.acts <= min(len(questions), yes)
    assert agent.crash is None


def is_json(line):
    try:
        return type(json.loads(line)) is dict
    except ValueError:
        return False


def ids_in(line):
    """The ids that a line may be answered with: also one that is cut off or that no request has may be read."""
    if is_json(line):
        return [json.loads(line)["id"]] if "id" in json.loads(line) else []
    return [value for value in (0, 1, 2, "0", "1", "ask-1", "ask-2", "i") if json.dumps(value).encode() in line]
