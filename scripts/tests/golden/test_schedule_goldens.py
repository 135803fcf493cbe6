"""Schedules that once went wrong, of ours or of a wrong design: each is followed again over every ledger."""

import json
from pathlib import Path

import pytest
from marks import promise

from assisted_benchmark.capability.operations import Operations
from proofs.capability_world import CapabilityWorld
from proofs.live_world import LiveWorld
from proofs.mutation_world import MutationWorld
from proofs.scheduler import follow
from proofs.stores import KINDS

GOLDEN = json.loads((Path(__file__).parent / "schedules.json").read_text(encoding="utf-8"))
WORLDS = {"live": LiveWorld, "mutation": MutationWorld, "capability": CapabilityWorld}
# Over which ledger, or without what, it goes wrong today.
WRONG = {"live": "read_then_update", "mutation": "recover_to_start"}


@promise("K18", "K17")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("golden", GOLDEN, ids=lambda golden: golden["because"])
def test_a_schedule_that_went_wrong_goes_right(golden, kind):
    assert follow(WORLDS[golden["broker"]](kind, tuple(golden["who"])), golden["order"]) == ""


@promise("K18", "K17")
@pytest.mark.parametrize("golden", GOLDEN, ids=lambda golden: golden["because"])
def test_the_schedule_still_leads_to_where_it_went_wrong(golden, monkeypatch):
    kind = WRONG.get(golden["broker"], "memory")
    if kind == "memory":
        monkeypatch.setattr(Operations, "_met_under_another_grant", lambda *_: None)
    assert follow(WORLDS[golden["broker"]](kind, tuple(golden["who"])), golden["order"]) == golden["was"]
