"""The models of the brokers: all of a model holds, each wrong one is caught, and the real ledgers answer as they do."""

import json
from functools import cache

import pytest
from marks import promise

from assisted_benchmark.ledger.memory import MemoryLedger
from assisted_benchmark.ledger.protocol import Claimed
from assisted_benchmark.ledger.sqlite import SqliteLedger
from assisted_benchmark.live_policy.states import LIVE_TABLE
from proofs import __main__ as command
from proofs.catalogue import LIMITS, MODELS, REACHES, UNTOLD, variants
from proofs.explorer import explore
from proofs.findings import AT_MOST_ONCE, caught, limit, proof, prove, untaken
from proofs.live import Live
from proofs.replay import replay, whole_table
from proofs.rows import CLAIMS_WHAT_IT_READ, RECOVERS_TO_READY, Row, claim
from proofs.stores import KINDS

pytestmark = pytest.mark.no_cover  # long loops over little code, which other tests cover

VARIANTS = variants()
# One of each broker. The others, and every wrong one, are explored by `scripts/models`: they take most of its time.
QUICK = (4, 8, 11)
FEW = VARIANTS[1::3]


@cache
def proved(number):
    return proof(MODELS[number]())


def name_of(variant):
    return f"{type(variant.model).__name__.lower()}-{variant.breaks}-{'-'.join(sorted(variant.flaws))}"


@promise("K16", "K10", "K12a")
@pytest.mark.parametrize("number", QUICK, ids=lambda number: MODELS[number]().name)
def test_a_model_holds_at_every_step_and_the_real_ledgers_answer_as_it_does(number):
    found = proved(number)
    assert (found.broken, found.differing) == ({}, ())
    assert found.states > 600
    assert set(found.replayed) == set(KINDS)
    assert min(found.replayed.values()) > 2000


@promise("K16")
@pytest.mark.parametrize("variant", FEW, ids=name_of)
def test_a_wrong_model_breaks_what_it_must_by_the_shortest_way(variant):
    found = caught(variant)
    assert found.sound
    # The same without what is wrong does not break.
    assert explore(variant.right, only=variant.breaks).broken == {}


@promise("K16")
def test_every_invariant_of_every_broker_is_broken_by_some_wrong_model():
    broken = {(type(each.model), each.breaks) for each in VARIANTS}
    models = [make() for make in MODELS]
    every = {(type(each), name) for each in models for name in (*each.guards, *each.invariants, REACHES)}
    assert broken == every


@promise("K16", "K11")
@pytest.mark.parametrize("number", range(len(LIMITS)))
def test_where_a_power_loss_takes_the_commits_and_the_anchor_there_is_a_way_to_two_sends(number):
    found = limit(number)
    assert "power is lost, and the last commits with it" in found.way
    assert sum(step.endswith(" writes") for step in found.way) == 2


@promise("K16")
def test_the_models_take_every_edge_of_every_table():
    proofs = tuple(proved(number) for number in QUICK)
    assert untaken(proofs) == ()
    assert untaken(proofs[1:]) == tuple(sorted(f"live: {before} -> {after}" for before, after in LIVE_TABLE.edges))


@promise("K16")
def test_a_model_without_the_power_losses_it_names_has_none():
    untold = explore(Live("untold", threads=(0,), power=UNTOLD), only=AT_MOST_ONCE)
    assert untold.broken
    assert not explore(Live("no power loss", threads=(0,)), only=AT_MOST_ONCE).broken


SEALED = (Row("sealed"),)


def differing(kind, asked=None):
    return replay(LIVE_TABLE, SEALED, asked or whole_table(LIVE_TABLE, "sealed"), kind, later=False).differing


@promise("K16")
@pytest.mark.parametrize("kind", KINDS)
def test_a_real_ledger_that_recovers_to_sealed_does_not_pass_for_the_model(kind, monkeypatch):
    assert differing(kind) == ()
    owner = MemoryLedger if kind == "memory" else SqliteLedger
    monkeypatch.setattr(owner, "recover", lambda self, run, at: ())
    assert len(differing(kind)) >= 1


@promise("K16")
@pytest.mark.parametrize("kind", KINDS)
def test_a_real_ledger_that_claims_what_is_claimed_does_not_pass_for_the_model(kind, monkeypatch):
    owner = MemoryLedger if kind == "memory" else SqliteLedger
    real = owner.claim

    def claims(self, permit, run, receipt):
        real(self, permit, run, receipt)
        return Claimed(permit, run)

    monkeypatch.setattr(owner, "claim", claims)
    assert len(differing(kind)) >= 1


@promise("K16")
@pytest.mark.parametrize("flaw", [CLAIMS_WHAT_IT_READ, RECOVERS_TO_READY])
def test_what_a_wrong_model_says_of_its_rows_no_real_ledger_answers(flaw):
    asked = explore(Live("wrong", threads=(0, 0), flaws=frozenset({flaw}))).asked
    assert len(differing("memory", asked)) >= 1


def test_rows_that_nothing_leads_to_are_told():
    asked = {((Row("failed", "a"),), claim(0, 0, "a")._replace(answer="failed"))}
    assert differing("memory", asked) == ("rows that no question leads to",)


def some(monkeypatch, *jobs):
    monkeypatch.setattr(command, "jobs", lambda: list(jobs))


def test_the_command_says_what_it_found_and_fails_where_an_edge_is_left(monkeypatch, capsys):
    some(monkeypatch, ("model", 8), ("limit", 1), ("variant", 0))
    assert command.main(["--json", "--jobs", "1"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert [len(found[part]) for part in ("models", "limits", "variants")] == [1, 1, 1]
    assert found["models"][0]["broken"] == {}
    assert len(found["untaken"]) == len(LIVE_TABLE.edges) + 7
    assert command.main(["--jobs", "1"]) == 1
    assert "1 of 1 wrong ones caught; every edge of the tables is not taken" in capsys.readouterr().out


def test_the_command_succeeds_where_all_holds(monkeypatch, capsys):
    some(monkeypatch, ("model", 4), ("model", 8), ("model", 11))
    assert command.main(["--jobs", "2"]) == 0
    out = capsys.readouterr().out
    assert out.count("\nok  ") + out.startswith("ok  ") == 3
    assert "FAIL" not in out


def test_every_job_can_be_proved_by_its_number():
    assert prove(("variant", 0)) == caught(VARIANTS[0])
    assert prove(("limit", 1)) == limit(1)
