"""The committed contract and the offline endpoint were written apart, from the same public description: they agree."""

import pytest
from fabric_bodies import OTHER_PORT, PORT, SEED, json
from marks import promise
from workload_process import ROOT

from assisted_benchmark.mutation.changes_document import load_changes
from assisted_benchmark.mutation.compiler import compile_change
from assisted_benchmark.mutation.template import filled
from assisted_benchmark.workloads.fabric_api import Asked, FabricApi, bearer_of

CONTRACTS = ROOT.parent / "contracts"
FABRIC = load_changes(CONTRACTS / "fabric.changes.yaml", CONTRACTS)
AUTHORIZATION = f"Bearer {bearer_of(SEED)}"


def point(kind, asset, **more):
    return {"accessPoint": {"type": kind, asset: {"uuid": PORT}, **more}}


SIDES = {
    "a port with two tags": point("COLO", "port", linkProtocol={"type": "QINQ", "vlanSTag": 2, "vlanCTag": 4092}),
    "a port without a tag": point("COLO", "port", linkProtocol={"type": "UNTAGGED"}),
    "a provider": point("SP", "profile", authenticationKey="k", sellerRegion="eu"),
    "a router": point("CLOUD_ROUTER", "router"),
    "a network": point("NETWORK", "network"),
    "a device": point("VD", "virtualDevice"),
    "a service token": {"serviceToken": {"uuid": OTHER_PORT}},
}


def example(name, **change):
    return json.loads(json.dumps(FABRIC.change(name).example.value)) | change


def token_for(kind, asset):
    selector = {"type": kind, asset: {"uuid": PORT}}
    connection = {"type": "EPL_VC", "allowRemoteConnection": False, "bandwidthLimit": 0}
    return connection | {"zSide": {"accessPointSelectors": [selector]}}


SPECS = {
    **{name: (name, example(name)) for name in ("connection", "network", "service-token")},
    **{f"from {text}": ("connection", example("connection", aSide=side)) for text, side in SIDES.items()},
    **{f"to {text}": ("connection", example("connection", zSide=side)) for text, side in SIDES.items()},
    "ordered": ("connection", example("connection", order={"purchaseOrderNumber": "1-2"})),
    **{
        f"for {kind}": ("service-token", example("service-token", type="EPL_TOKEN", connection=token_for(kind, asset)))
        for kind, asset in (("COLO", "port"), ("VD", "virtualDevice"), ("NETWORK", "network"))
    },
}


@promise("M6", "M8")
@pytest.mark.parametrize(("name", "spec"), SPECS.values(), ids=SPECS.keys())
def test_what_the_contract_compiles_is_taken_dry_and_created_and_its_price_can_be_asked(name, spec):
    change = FABRIC.change(name)
    api = FabricApi(SEED)

    def status_of(method, target, body=b""):
        asked = Asked(method, target, body, authorization=AUTHORIZATION)
        return api.answer(asked, api.arrive(asked)).status

    assert change.checker.faults(spec) == ()
    compiled = compile_change(change, spec)
    dry, real = compiled.dry(FABRIC.dry_run), compiled.real()
    assert status_of(*dry) in change.dry_run_accepts
    assert status_of(*real) in change.create_accepts
    if (rule := change.price) is not None:
        assert status_of("POST", rule.path, json.dumps(filled(rule.body.value, spec)).encode()) in rule.accepts
