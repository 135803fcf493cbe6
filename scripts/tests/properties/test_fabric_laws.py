"""Laws of the offline Fabric endpoint: whatever is asked is answered, and only what passed a dry run can be created."""

import json

from hypothesis import given, settings
from hypothesis import strategies as st
from marks import promise

from assisted_benchmark.workloads.fabric_api import KINDS, Asked, FabricApi, bearer_of
from assisted_benchmark.workloads.fabric_api_oracle import read_fabric

UUID = "a8b30c11-0000-4000-8000-00000000000a"
MAILS = [{"type": "ALL", "emails": ["noc@example.com"]}]
POINT = {"type": "COLO", "port": {"uuid": UUID}, "linkProtocol": {"type": "DOT1Q", "vlanTag": 1001}}
BODIES = {
    "connections": {
        "type": "EVPL_VC",
        "name": "c",
        "bandwidth": 200,
        "notifications": MAILS,
        "aSide": {"accessPoint": POINT},
        "zSide": {"accessPoint": {"type": "SP", "profile": {"uuid": UUID}}},
    },
    "networks": {"type": "EVPLAN", "name": "n", "scope": "GLOBAL", "notifications": MAILS},
    "serviceTokens": {
        "type": "VC_TOKEN",
        "name": "t",
        "expirationDateTime": "2027-01-01T00:00:00Z",
        "connection": {"type": "EVPL_VC", "aSide": {"accessPointSelectors": [POINT]}},
    },
    "prices/search": {"filter": {"and": [{"property": "/type", "operator": "=", "values": ["X"]}]}},
}
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-1, 5000)
    | st.floats(0, 9)
    | st.sampled_from(["", "COLO", "NETWORK", "QINQ", "IX_VC", UUID]),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["type", "uuid", "port", "x"]), inner, max_size=2)
    ),
    max_leaves=4,
)


def places(value, path=()):
    yield path
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield from places(value[key], (*path, key))


def changed(body, path, value):
    """The body with another value, or without it, at one place."""
    body = json.loads(json.dumps(body))
    if not path:
        return value
    inner = body
    for step in path[:-1]:
        inner = inner[step]
    if value is None:
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    return body


@promise("M6", "M18")
@settings(max_examples=300)
@given(st.data())
def test_any_body_is_answered_and_a_create_says_what_its_dry_run_said(data):
    api = FabricApi(7)
    kind = data.draw(st.sampled_from(sorted(BODIES)))
    path = data.draw(st.sampled_from(list(places(BODIES[kind]))))
    body = json.dumps(changed(BODIES[kind], path, data.draw(VALUES))).encode()

    def ask(query):
        asked = Asked("POST", f"/fabric/v4/{kind}{query}", body, authorization=f"Bearer {bearer_of(7)}")
        answered = api.answer(asked, api.arrive(asked))
        assert answered.status in (200, 201, 202, 400)
        return answered.status, json.loads(answered.body)

    if kind not in KINDS:
        ask("")
        return
    dry, shown = ask("?dryRun=true")
    real, made = ask("")
    reading = read_fabric(api.received, api.events)
    unsupported = dry == 400 and shown[0]["errorCode"] == "EQ-3142411"
    assert (dry == 200) is (real < 300) or unsupported
    assert len(reading.created) == (real < 300)
    assert (reading.dry[kind], reading.real[kind], reading.disagreements) == (1, 1, ())
    if dry == 200:
        assert {key: value for key, value in made.items() if key not in ("uuid", "state", "href")} == shown
