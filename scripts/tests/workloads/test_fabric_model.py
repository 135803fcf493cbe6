import pytest
from fabric_bodies import (
    BODIES,
    MAILS,
    OTHER_PORT,
    PORT,
    PROFILE,
    SEED,
    a_connection,
    a_network,
    a_search,
    a_token,
    colo,
    json,
)
from marks import promise

from assisted_benchmark.kernel.canonical import canonical_bytes
from assisted_benchmark.kernel.errors import InputError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.workloads.fabric_api import KINDS, MAX_BODY, Asked, FabricApi, bearer_of
from assisted_benchmark.workloads.fabric_api_oracle import read_fabric
from assisted_benchmark.workloads.fabric_api_shapes import CONNECTION_TYPES

HREF = "/fabric/v4/{}/{}".format


class Api:
    """A fresh endpoint and its answers as values."""

    def __init__(self, seed=SEED):
        self.model = FabricApi(seed)
        self.authorization = f"Bearer {bearer_of(seed)}"

    def ask(self, method, target, body=b"", **change):
        asked = Asked(method, target, body, authorization=self.authorization)._replace(**change)
        answered = self.model.answer(asked, self.model.arrive(asked))
        assert answered.body == canonical_bytes(json.loads(answered.body))
        return answered.status, json.loads(answered.body)

    def post(self, kind, value, *, dry=False):
        return self.ask("POST", f"/fabric/v4/{kind}{'?dryRun=true' if dry else ''}", json.dumps(value).encode())

    def search(self, value):
        return self.ask("POST", "/fabric/v4/prices/search", json.dumps(value).encode())

    @property
    def reading(self):
        return read_fabric(self.model.received, self.model.events)


def problems(answer):
    """Status, public code, and where and why of an error."""
    status, errors = answer
    assert [set(each) for each in errors] == [
        {"errorCode", "errorMessage", "correlationId", "details", "help", "additionalInfo"}
    ]
    return status, errors[0]["errorCode"], {each["property"]: each["reason"] for each in errors[0]["additionalInfo"]}


@promise("M6")
def test_a_dry_run_shows_the_connection_as_it_was_understood_and_creates_nothing():
    api = Api()
    port, profile = HREF("ports", PORT), HREF("serviceProfiles", PROFILE)
    understood = a_connection(
        redundancy={"priority": "PRIMARY"},
        aSide={"accessPoint": colo() | {"port": {"uuid": PORT, "href": port}}},
        zSide={
            "accessPoint": {
                "type": "SP",
                "profile": {"uuid": PROFILE, "href": profile},
                "location": {"metroCode": "AM"},
            }
        },
    )
    assert api.post("connections", a_connection(), dry=True) == (200, understood)
    assert api.ask("GET", "/fabric/v4/connections")[1]["data"] == []
    assert (api.reading.dry["connections"], api.reading.real["connections"], api.reading.created) == (1, 0, ())


@promise("M18")
@pytest.mark.parametrize(
    ("kind", "status", "state"),
    [("connections", 201, "PROVISIONING"), ("networks", 202, "ACTIVE"), ("serviceTokens", 201, "INACTIVE")],
)
def test_a_create_adds_uuid_state_and_place_to_what_the_dry_run_showed_and_is_found_there(kind, status, state):
    api = Api()
    _, shown = api.post(kind, BODIES[kind], dry=True)
    got, made = api.post(kind, BODIES[kind])
    uuid = made["uuid"]
    assert (got, made) == (status, shown | {"uuid": uuid, "state": state, "href": HREF(kind, uuid)})
    assert api.ask("GET", HREF(kind, uuid)) == (200, made)
    assert api.ask("GET", f"/fabric/v4/{kind}") == (
        200,
        {"pagination": {"offset": 0, "limit": 20, "total": 1}, "data": [made]},
    )
    others = [each for each in KINDS if each != kind]
    assert [api.ask("GET", HREF(each, uuid))[0] for each in others] == [404, 404]
    assert [(each.kind, each.uuid, each.made) for each in api.reading.created] == [(kind, uuid, made)]


def test_a_token_that_says_nothing_of_it_may_not_be_used_from_elsewhere():
    _, shown = Api().post("serviceTokens", a_token(), dry=True)
    assert (shown["connection"]["allowRemoteConnection"], shown["connection"]["allowCustomBandwidth"]) == (False, False)


def test_uuids_and_bearer_follow_from_the_seed():
    first, again, other = (Api(seed).post("networks", a_network())[1]["uuid"] for seed in (1, 1, 2))
    assert (first == again, first == other, bearer_of(1) == bearer_of(2)) == (True, False, False)
    api = Api()
    assert len({api.post("networks", a_network())[1]["uuid"] for _ in range(20)}) == 20


@pytest.mark.parametrize("seed", [-1, 2**53, 1.0, "1", None, True])
def test_what_is_no_seed_makes_no_endpoint(seed):
    with pytest.raises(InputError) as caught:
        FabricApi(seed)
    assert caught.value.reason is Reason.WRONG_VALUE


def test_a_list_is_shown_page_by_page():
    api = Api()
    made = [api.post("networks", a_network(name=f"n{n}"))[1] for n in range(25)]

    def page(query):
        status, value = api.ask("GET", f"/fabric/v4/networks?{query}")
        return status, value["pagination"], value["data"]

    assert page("offset=0") == (200, {"offset": 0, "limit": 20, "total": 25}, made[:20])
    assert page("offset=20&limit=3") == (200, {"offset": 20, "limit": 3, "total": 25}, made[20:23])
    assert page("limit=100&offset=99") == (200, {"offset": 99, "limit": 100, "total": 25}, [])


SIDE = {"accessPoint": colo()}
POINT = {
    "CLOUD_ROUTER": ("router", {"uuid": PORT}),
    "NETWORK": ("network", {"uuid": PORT}),
    "SP": ("profile", {"uuid": PORT, "type": "L2_PROFILE"}),
    "VD": ("virtualDevice", {"uuid": PORT, "type": "EDGE"}),
}


def point(kind, **change):
    asset, reference = POINT[kind]
    return {"accessPoint": {"type": kind, asset: reference} | change}


@promise("M6")
@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("connections", a_connection(bandwidth=0)),
        ("connections", a_connection(bandwidth=100_000)),
        ("connections", a_connection(type="IP_VC", aSide=point("CLOUD_ROUTER"))),
        ("connections", a_connection(type="EVPLAN_VC", zSide=point("NETWORK", role="LEAF"))),
        ("connections", a_connection(aSide=point("VD", interface={"type": "NETWORK", "id": 5}))),
        (
            "connections",
            a_connection(zSide=point("SP", sellerRegion="eu-1", authenticationKey="k", peeringType="PRIVATE")),
        ),
        ("connections", a_connection(aSide={"serviceToken": {"uuid": PORT}})),
        ("connections", a_connection(aSide=SIDE | {"additionalInfo": [{"key": "k", "value": "v"}]})),
        (
            "connections",
            a_connection(
                aSide={
                    "accessPoint": {
                        "type": "COLO",
                        "port": {"uuid": PORT},
                        "linkProtocol": {"type": "QINQ", "vlanSTag": 2, "vlanCTag": 4092},
                    }
                }
            ),
        ),
        (
            "connections",
            a_connection(
                type="EPL_VC",
                aSide={"accessPoint": {"type": "COLO", "port": {"uuid": PORT}, "linkProtocol": {"type": "UNTAGGED"}}},
            ),
        ),
        ("connections", a_connection(aSide={"accessPoint": {"type": "COLO", "port": {"uuid": PORT}}})),
        (
            "connections",
            a_connection(
                redundancy={"priority": "SECONDARY", "group": PORT},
                order={"purchaseOrderNumber": "1", "termLength": 12},
                project={"projectId": "p"},
                additionalInfo=[{"key": "k", "value": "v"}],
            ),
        ),
        ("networks", a_network(scope="LOCAL", location={"metroCode": "AM"}, project={"projectId": "p"})),
        ("networks", a_network(type="EPTREE", scope="REGIONAL", location={"region": "EMEA"})),
        ("networks", a_network(notifications=[{"type": "ALL", "emails": ["a@b.cd"], "sendInterval": "1"}])),
        ("serviceTokens", a_token(description="d", notifications=MAILS, project={"projectId": "p"})),
        ("serviceTokens", a_token(expirationDateTime="2027-12-31T23:59:59.123+01:00")),
        (
            "serviceTokens",
            a_token(
                type="EPL_TOKEN",
                connection={
                    "type": "EPL_VC",
                    "allowRemoteConnection": True,
                    "allowCustomBandwidth": True,
                    "supportedBandwidths": [50, 100],
                    "zSide": {"accessPointSelectors": [point("VD")["accessPoint"], point("NETWORK")["accessPoint"]]},
                },
            ),
        ),
    ],
)
def test_the_public_shapes_are_taken(kind, body):
    api = Api()
    assert (api.post(kind, body, dry=True)[0], api.post(kind, body)[0]) == (200, 202 if kind == "networks" else 201)


def without(body, *keys):
    return {key: value for key, value in body.items() if key not in keys}


EMPTY = "must be a list that is not empty"
TEXT = "must be a text of 1 to 255 characters"
BOTH = "must have `accessPoint` or `serviceToken`, and not both"
SIDES = "must have `aSide` or `zSide`, and not both"
MBPS = "must be a whole number from 0 to 100000"
TAG = "must be a whole number from 2 to 4092"
LINK = "/aSide/accessPoint/linkProtocol"


@promise("M6")
@pytest.mark.parametrize(
    ("kind", "body", "wrong"),
    [
        ("connections", [], {"/": "must be an object"}),
        ("connections", without(a_connection(), "name", "zSide"), {"/name": "is required", "/zSide": "is required"}),
        ("connections", a_connection(color="red"), {"/color": "is not known"}),
        ("connections", a_connection(uuid=PORT), {"/uuid": "is not known"}),
        ("connections", a_connection(type="VPN"), {"/type": f"must be one of {', '.join(CONNECTION_TYPES)}"}),
        ("connections", a_connection(name=""), {"/name": TEXT}),
        ("connections", a_connection(name="x" * 256), {"/name": TEXT}),
        ("connections", a_connection(bandwidth=-1), {"/bandwidth": MBPS}),
        ("connections", a_connection(bandwidth=100_001), {"/bandwidth": MBPS}),
        ("connections", a_connection(bandwidth=200.0), {"/bandwidth": MBPS}),
        ("connections", a_connection(bandwidth="200"), {"/bandwidth": MBPS}),
        ("connections", a_connection(bandwidth=True), {"/bandwidth": MBPS}),
        ("connections", a_connection(notifications=[]), {"/notifications": EMPTY}),
        (
            "connections",
            a_connection(notifications=[{"type": "ALL", "emails": []}]),
            {"/notifications/0/emails": EMPTY},
        ),
        (
            "connections",
            a_connection(notifications=[*MAILS, {"type": "ALL", "emails": ["nobody"]}]),
            {"/notifications/1/emails/0": "must be an email address"},
        ),
        ("connections", a_connection(aSide={}), {"/aSide": BOTH}),
        ("connections", a_connection(aSide=SIDE | {"serviceToken": {"uuid": PORT}}), {"/aSide": BOTH}),
        ("connections", a_connection(aSide={"serviceToken": {}}), {"/aSide/serviceToken/uuid": "is required"}),
        ("connections", a_connection(aSide=7), {"/aSide": "must be an object"}),
        ("connections", a_connection(aSide={"accessPoint": 7}), {"/aSide/accessPoint": "must be an object"}),
        (
            "connections",
            a_connection(aSide={"accessPoint": colo(port="7")}),
            {"/aSide/accessPoint/port/uuid": "must be a UUID"},
        ),
        (
            "connections",
            a_connection(aSide={"accessPoint": {"type": "COLO", "router": {"uuid": PORT}}}),
            {"/aSide/accessPoint/port": "is required", "/aSide/accessPoint/router": "is not known"},
        ),
        (
            "connections",
            a_connection(aSide={"accessPoint": {"type": ["COLO"]}}),
            {"/aSide/accessPoint/type": "must be one of COLO, SP, CLOUD_ROUTER, NETWORK, VD"},
        ),
        ("connections", a_connection(aSide={"accessPoint": colo(vlanTag=1)}), {f"{LINK}/vlanTag": TAG}),
        ("connections", a_connection(aSide={"accessPoint": colo(vlanTag=4093)}), {f"{LINK}/vlanTag": TAG}),
        ("connections", a_connection(aSide={"accessPoint": colo(vlanCTag=5)}), {f"{LINK}/vlanCTag": "is not known"}),
        (
            "connections",
            a_connection(aSide={"accessPoint": colo() | {"linkProtocol": {"type": "QINQ", "vlanSTag": 7}}}),
            {f"{LINK}/vlanCTag": "is required"},
        ),
        (
            "connections",
            a_connection(aSide={"accessPoint": colo() | {"linkProtocol": 7}}),
            {LINK: "must be an object"},
        ),
        (
            "connections",
            a_connection(aSide={"accessPoint": colo(type="VXLAN")}),
            {f"{LINK}/type": "must be one of UNTAGGED, DOT1Q, QINQ", f"{LINK}/vlanTag": "is not known"},
        ),
        ("networks", a_network(scope="WORLD"), {"/scope": "must be one of LOCAL, REGIONAL, GLOBAL"}),
        ("networks", a_network(bandwidth=1), {"/bandwidth": "is not known"}),
        ("networks", a_network(location={"metroCode": "am"}), {"/location/metroCode": "must be two capitals"}),
        ("serviceTokens", a_token(connection={"type": "EVPL_VC"}), {"/connection": SIDES}),
        (
            "serviceTokens",
            a_token(connection=a_token()["connection"] | {"zSide": a_token()["connection"]["aSide"]}),
            {"/connection": SIDES},
        ),
        (
            "serviceTokens",
            a_token(connection=a_token()["connection"] | {"allowRemoteConnection": "no"}),
            {"/connection/allowRemoteConnection": "must be true or false"},
        ),
        (
            "serviceTokens",
            a_token(connection={"type": "EVPL_VC", "aSide": {"accessPointSelectors": [point("SP")["accessPoint"]]}}),
            {
                "/connection/aSide/accessPointSelectors/0/profile": "is not known",
                "/connection/aSide/accessPointSelectors/0/type": "must be one of COLO, VD, NETWORK",
            },
        ),
        *(
            (
                "serviceTokens",
                a_token(expirationDateTime=text),
                {"/expirationDateTime": "must be a date and time with its offset"},
            )
            for text in (
                "2027-01-01",
                "2027-01-01T00:00:00",
                "2027-13-01T00:00:00Z",
                "2027-01-32T00:00:00Z",
                "tomorrow",
                7,
            )
        ),
    ],
)
def test_what_departs_from_a_shape_is_refused_with_its_place_dry_or_not(kind, body, wrong):
    api = Api()
    for dry in (True, False):
        assert problems(api.post(kind, body, dry=dry)) == (400, "EQ-3142501", wrong)
    assert (api.reading.created, api.reading.dry_bodies) == ((), ())
    assert (api.reading.dry[kind], api.reading.real[kind]) == (1, 1)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"", "malformed_call"),
        (b"{", "malformed_call"),
        (b'{"name":"a","name":"b"}', "duplicate_key"),
        (b'{"name":"\xff"}', "malformed_unicode"),
        (b"NaN", "non_finite_number"),
        (b"[" * 5000 + b"]" * 5000, "too_deep"),
    ],
)
def test_a_body_that_is_no_json_is_refused(body, why):
    got = problems(Api().ask("POST", "/fabric/v4/networks?dryRun=true", body))
    assert got == (400, "EQ-3142501", {"/": f"not JSON as it should be: {why}"})


def test_one_port_takes_a_vlan_once():
    api = Api()
    elsewhere = {"accessPoint": colo(OTHER_PORT)}
    both = a_connection(zSide=SIDE)
    refused = (400, "EQ-3142102", {"/aSide/accessPoint/linkProtocol": "the VLAN is in use on this port"})
    assert problems(api.post("connections", both))[2].keys() == {"/zSide/accessPoint/linkProtocol"}
    assert api.post("connections", a_connection(), dry=True)[0] == 200
    assert api.post("connections", a_connection())[0] == 201
    assert problems(api.post("connections", a_connection(name="again"))) == refused
    assert problems(api.post("connections", a_connection(name="again"), dry=True)) == refused
    assert api.post("connections", a_connection(aSide={"accessPoint": colo(vlanTag=1002)}))[0] == 201
    assert api.post("connections", a_connection(aSide=elsewhere))[0] == 201
    assert api.post("connections", a_connection(aSide=SIDE | elsewhere))[0] == 400
    untagged = {"accessPoint": {"type": "COLO", "port": {"uuid": PORT}, "linkProtocol": {"type": "UNTAGGED"}}}
    assert [api.post("connections", a_connection(aSide=untagged))[0] for _ in range(2)] == [201, 201]
    assert api.post("serviceTokens", a_token())[0] == 201  # a selector takes nothing


@promise("M6")
@pytest.mark.parametrize("kind", ["IX_VC", "IC_VC", "MC_VC"])
def test_some_connections_cannot_be_tried_dry_but_created(kind):
    api = Api()
    got = problems(api.post("connections", a_connection(type=kind), dry=True))
    assert got == (400, "EQ-3142411", {"queryParam:dryRun": "not supported"})
    assert api.post("connections", a_connection(type=kind))[0] == 201


BODY = json.dumps(a_network()).encode()


@promise("M6")
@pytest.mark.parametrize(
    ("query", "status", "dry"),
    [
        ("", 202, 0),
        ("?dryRun=false", 202, 0),
        ("?dryRun=true", 200, 1),
        ("?dryRun=True", 400, 0),
        ("?dryRun=1", 400, 0),
        ("?dryRun", 400, 0),
        ("?dryrun=true", 400, 0),
        ("?dryRun=true&dryRun=false", 400, 0),
        ("?dryRun=true&x=1", 400, 0),
    ],
)
def test_only_an_exact_dry_run_is_one_and_all_else_counts_as_real(query, status, dry):
    api = Api()
    assert api.ask("POST", f"/fabric/v4/networks{query}", BODY)[0] == status
    assert (api.reading.dry["networks"], api.reading.real["networks"]) == (dry, 1 - dry)
    assert len(api.reading.created) == (status == 202)


@pytest.mark.parametrize(
    ("method", "target", "change", "expected"),
    [
        ("POST", "/fabric/v4/networks", {"authorization": ""}, (401, "EQ-3000039")),
        ("POST", "/fabric/v4/networks", {"authorization": "Bearer x"}, (401, "EQ-3000039")),
        ("GET", "/fabric/v4/networks", {"authorization": "Basic x"}, (401, "EQ-3000039")),
        ("GET", "/", {"authorization": ""}, (401, "EQ-3000039")),
        ("GET", "/", {}, (404, "EQ-3045811")),
        ("GET", "/fabric/v4", {}, (404, "EQ-3045811")),
        ("GET", "/fabric/v5/networks", {}, (404, "EQ-3045811")),
        ("GET", "/fabric/v4/routers", {}, (404, "EQ-3045811")),
        ("GET", "/fabric/v4/networks/", {}, (404, "EQ-3045811")),
        ("GET", f"/fabric/v4/networks/{PORT}", {}, (404, "EQ-3045811")),
        ("GET", f"/fabric/v4/networks/{PORT}/x", {}, (404, "EQ-3045811")),
        ("GET", f"/fabric/v4/networks/{PORT}?x=1", {}, (400, "EQ-3142501")),
        ("PATCH", f"/fabric/v4/networks/{PORT}", {}, (405, "EQ-3142569")),
        ("DELETE", f"/fabric/v4/networks/{PORT}", {}, (405, "EQ-3142569")),
        ("PUT", "/fabric/v4/networks", {}, (405, "EQ-3142569")),
        ("GET", "/fabric/v4/prices/search", {}, (405, "EQ-3142569")),
        ("POST", "/fabric/v4/prices/search?x=1", {}, (400, "EQ-3142501")),
        ("POST", "/fabric/v4/networks", {"media": "text/plain"}, (415, "EQ-3040016")),
        ("POST", "/fabric/v4/networks", {"media": ""}, (415, "EQ-3040016")),
        ("POST", "/fabric/v4/networks", {"body": b" " * (MAX_BODY + 1)}, (413, "EQ-3142501")),
        ("GET", "/fabric/v4/networks?limit=0", {}, (400, "EQ-3142501")),
        ("GET", "/fabric/v4/networks?limit=101", {}, (400, "EQ-3142501")),
        ("GET", "/fabric/v4/networks?limit=-1", {}, (400, "EQ-3142501")),
        ("GET", "/fabric/v4/networks?offset=x", {}, (400, "EQ-3142501")),
        ("GET", "/fabric/v4/networks?offset=%D9%A1", {}, (400, "EQ-3142501")),
        ("GET", "/fabric/v4/networks?limit=1&limit=2", {}, (400, "EQ-3142501")),
        ("GET", "/fabric/v4/networks?size=1", {}, (400, "EQ-3142501")),
    ],
)
def test_what_the_endpoint_does_not_do_is_refused_with_its_public_code(method, target, change, expected):
    api = Api()
    assert problems(api.ask(method, target, **{"body": BODY} | change))[:2] == expected
    assert api.reading.created == ()
    assert sum(api.model.received.values()) == 1


def test_a_media_type_may_have_a_parameter_and_another_case():
    assert Api().ask("POST", "/fabric/v4/networks", BODY, media="Application/JSON; charset=utf-8")[0] == 202


@promise("M8")
def test_the_rate_card_has_a_monthly_and_a_single_price():
    status, found = Api().search(a_search())
    assert (status, found["pagination"]) == (200, {"offset": 0, "limit": 100, "total": 1})
    row = found["data"][0]
    assert (row["type"], row["currency"], row["connection"]) == (
        "VIRTUAL_CONNECTION_PRODUCT",
        "USD",
        {"type": "EVPL_VC", "bandwidth": 200},
    )
    assert row["charges"] == [{"type": "MONTHLY_RECURRING", "price": 200}, {"type": "NON_RECURRING", "price": 0}]


@promise("M8")
def test_a_search_may_name_several_values_and_where_the_ends_are():
    criteria = a_search()["filter"]["and"]
    criteria[2] |= {"operator": "IN", "values": ["50", "75", "100"]}
    more = {"aSide/accessPoint/location/metroCode": "AM", "zSide/accessPoint/type": "SP"}
    found = Api().search({"filter": {"and": [*criteria, *a_search(**more)["filter"]["and"][3:]]}})[1]["data"]
    assert [row["connection"]["bandwidth"] for row in found] == [50, 100]


@promise("M8")
@pytest.mark.parametrize(
    "change",
    [{"/type": "VIRTUAL_PORT_PRODUCT"}, {"/connection/type": "IX_VC"}, {"/connection/bandwidth": "201"}],
)
def test_what_is_not_on_the_card_has_no_price(change):
    criteria = [
        each | {"values": [change.get(each["property"], each["values"][0])]} for each in a_search()["filter"]["and"]
    ]
    assert Api().search({"filter": {"and": criteria}})[1]["data"] == []


def criterion(**change):
    return {"property": "/type", "operator": "=", "values": ["VIRTUAL_CONNECTION_PRODUCT"]} | change


@pytest.mark.parametrize(
    ("body", "where"),
    [
        ([], "/filter"),
        ({}, "/filter"),
        ({"filter": {"and": []}}, "/filter"),
        ({"filter": {"or": [criterion()]}}, "/filter"),
        ({"filter": {"and": [criterion()]}, "sort": []}, "/filter"),
        ({"filter": {"and": [criterion(), 7]}}, "/filter/and/1"),
        ({"filter": {"and": [criterion(operator="LIKE")]}}, "/filter/and/0"),
        ({"filter": {"and": [criterion(property="/color")]}}, "/filter/and/0/property"),
        ({"filter": {"and": [criterion(), criterion()]}}, "/filter/and/1/property"),
        ({"filter": {"and": [criterion(values=[])]}}, "/filter/and/0/values"),
        ({"filter": {"and": [criterion(values=[200])]}}, "/filter/and/0/values"),
        ({"filter": {"and": [criterion(values=["1"] * 21)]}}, "/filter/and/0/values"),
    ],
)
def test_a_search_that_is_none_is_refused(body, where):
    status, code, wrong = problems(Api().search(body))
    assert (status, code, list(wrong)) == (400, "EQ-3038010", [where])


def test_the_oracle_reads_counts_bodies_and_things_and_the_bearer_is_in_none_of_them():
    api = Api()
    for kind in KINDS:
        api.post(kind, BODIES[kind], dry=True)
        api.post(kind, BODIES[kind])
    api.post("networks", {})
    reading = api.reading
    assert reading.dry == {"connections": 1, "networks": 1, "serviceTokens": 1}
    assert reading.real == {"connections": 1, "networks": 2, "serviceTokens": 1}
    assert [each.body for each in reading.created] == list(reading.dry_bodies)
    assert [event.seq for event in api.model.events] == [1, 2, 3, 4, 5, 6, 7]
    assert bearer_of(SEED) not in repr((reading, api.model.events, api.model.received))


@pytest.mark.parametrize(
    ("spoil", "count"),
    [
        (lambda received, events: received.clear(), 1),
        (lambda received, events: events.append(events[0]), 3),
        (lambda received, events: events.__setitem__(0, events[0]._replace(seq=2)), 1),
        (lambda received, events: events[0].facts.__setitem__("uuid", PORT), 1),
    ],
    ids=["uncounted", "twice", "out of order", "another thing"],
)
def test_an_endpoint_that_contradicts_itself_is_found_out(spoil, count):
    api = Api()
    api.post("networks", a_network())
    assert api.reading.disagreements == ()
    spoil(api.model.received, api.model.events)
    assert len(api.reading.disagreements) == count
