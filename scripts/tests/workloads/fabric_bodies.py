"""Bodies that the offline Fabric endpoint takes, one of each kind, and what asks for them."""

import json

from assisted_benchmark.kernel.clock import Deadline, Instant, ManualClock
from assisted_benchmark.kernel.decision import Admitted
from assisted_benchmark.kernel.digest import Digest
from assisted_benchmark.ledger.protocol import Claimed
from assisted_benchmark.mutation.ports import Request

SEED = 7
PORT = "a8b30c11-0000-4000-8000-00000000000a"
OTHER_PORT = "a8b30c11-0000-4000-8000-00000000000b"
PROFILE = "a8b30c11-0000-4000-8000-00000000000c"
MAILS = [{"type": "ALL", "emails": ["noc@example.com"]}]


def colo(port=PORT, **tags):
    return {"type": "COLO", "port": {"uuid": port}, "linkProtocol": {"type": "DOT1Q", "vlanTag": 1001} | tags}


def a_connection(**change):
    return {
        "type": "EVPL_VC",
        "name": "to-cloud",
        "bandwidth": 200,
        "notifications": MAILS,
        "aSide": {"accessPoint": colo()},
        "zSide": {"accessPoint": {"type": "SP", "profile": {"uuid": PROFILE}, "location": {"metroCode": "AM"}}},
    } | change


def a_network(**change):
    return {"type": "EVPLAN", "name": "lan", "scope": "GLOBAL", "notifications": MAILS} | change


def a_token(**change):
    return {
        "type": "VC_TOKEN",
        "name": "guest",
        "expirationDateTime": "2027-01-01T00:00:00Z",
        "connection": {
            "type": "EVPL_VC",
            "bandwidthLimit": 500,
            "aSide": {"accessPointSelectors": [colo()]},
        },
    } | change


BODIES = {"connections": a_connection(), "networks": a_network(), "serviceTokens": a_token()}
CRITERIA = {"/type": "VIRTUAL_CONNECTION_PRODUCT", "/connection/type": "EVPL_VC", "/connection/bandwidth": "200"}


def a_search(**change):
    criteria = CRITERIA | {f"/connection/{key}": value for key, value in change.items()}
    return {"filter": {"and": [{"property": k, "operator": "=", "values": [v]} for k, v in criteria.items()]}}


def a_request(kind="connections", body=None, *, dry=False):
    data = json.dumps(BODIES[kind] if body is None else body).encode()
    return Request("POST", f"/fabric/v4/{kind}{'?dryRun=true' if dry else ''}", data)


def claiming(request):
    return Claimed(Admitted(b"g", Digest("sha256:" + "0" * 64), "fabric", "connection", request.body), "run")


def within(seconds=10.0, clock=None):
    return Deadline.after(clock or ManualClock(), int(seconds * 1e9))


def timeless(reply):
    """The reply without its instants."""
    return (
        reply._replace(wrote=Instant(0, 0), replied=Instant(0, 0))
        if isinstance(reply, tuple)
        else (type(reply), reply.reason, reply.detail)
    )
