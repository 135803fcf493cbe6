"""Generated attacks: what each broker refuses, what it does not, and that a broker with a hole is found out."""

from itertools import combinations

import pytest
from attrs import evolve
from marks import promise
from suite_world import ROOT, a_root

from assisted_benchmark.kernel.errors import LedgerError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.ledger.receipts import verify
from assisted_benchmark.suite.attacks.attacking import attack_case, attack_cases, attackable, places_of
from assisted_benchmark.suite.attacks.documents import found_in, good_files, pinned, spoiled
from assisted_benchmark.suite.attacks.engine import ALL_PAIRS, Came, Finding, Player, attacks_of, benign_of
from assisted_benchmark.suite.attacks.moves import OF_BYTES, pair
from assisted_benchmark.suite.attacks.outside import attack_documents, attack_records
from assisted_benchmark.suite.attacks.report import NOT_REFUSED, Counter, joined
from assisted_benchmark.suite.attacks.threats import OK, threats
from assisted_benchmark.suite.attacks.written import scenario_of, text_of_scenario, write_failures
from assisted_benchmark.suite.bench import Bench
from assisted_benchmark.suite.live.stage import LiveStage
from assisted_benchmark.suite.matrix.judging import BROKERS, guards_of
from assisted_benchmark.suite.matrix.lacking import lacking
from assisted_benchmark.suite.plan import MEMORY, RunPlan
from assisted_benchmark.suite.result import Verdict
from assisted_benchmark.suite.runner import discover
from assisted_benchmark.suite.yaml_out import yaml_of

CASES = {case.id: case for case in discover(ROOT)}
GOOD = {
    "live": "live/read-and-decide/plain",
    "mutation": "mutation/accepted/connection-handshake",
    "capability": "capability/every-operation/parameter-gesture",
}
GUARDS = {guard.name: guard for broker in BROKERS for guard in guards_of(broker)}


def place_of(broker, number=-1):
    return list(places_of(CASES[GOOD[broker]]))[number]


def played(place, attacks):
    bench = Bench(RunPlan(durability=MEMORY))
    try:
        return list(Player(bench).play(place, attacks))
    finally:
        bench.close()


@promise("H10", "H11")
@pytest.mark.parametrize("broker", GOOD)
def test_every_single_mutation_is_refused_for_its_reason_and_nothing_benign_is(broker):
    report = attack_case(CASES[GOOD[broker]])
    assert report.failures == ()
    assert report.count(Came.RIGHT) == report.tried > 100
    benign = [each for each in report.tallies if each.reason == NOT_REFUSED]
    assert benign
    assert all(each.refused == each.tried for each in benign)


@promise("H10")
@pytest.mark.parametrize("broker", GOOD)
def test_of_two_mutations_at_once_the_first_check_in_the_brokers_order_decides(broker):
    report = attack_case(CASES[GOOD[broker]], pairs=150)
    assert report.sound
    assert report.tried > 300


@promise("H10")
def test_a_case_that_is_no_plain_road_has_no_good_call_to_attack():
    case = CASES["live/race/the-same"]
    assert not attackable(case)
    assert attack_case(case).tried == 0


@promise("H10")
def test_every_threat_is_tried_on_each_part_that_it_applies_to_with_just_these_reasons_or_is_explained():
    generated = {}
    for case in filter(attackable, CASES.values()):
        for place in places_of(case):
            for move in (*place.moves(), *place.benign()):
                word = OK if move.station is None else move.station.reason
                generated.setdefault((move.threat, place.broker), set()).add(word)
    for each in spoiled():
        generated.setdefault((each.threat, "documents"), set()).add(each.expected)
    generated["G10", "documents"] = {OK}
    said = {(each.id, part): set(words) for each in threats() for part, words in each.expected.items()}
    records = {key: words for key, words in said.items() if key[1] == "records"}
    assert {key: words for key, words in said.items() if key not in records} == generated
    report = attack_records([CASES[GOOD["live"]]])
    assert {key[0] for key in records} == report.threats
    assert {word for words in records.values() for word in words} == {each.reason for each in report.tallies}
    assert all(each.why and not each.why.endswith(".") for each in threats() if not each.applies)
    assert len({each.id for each in threats()}) == len(threats()) == 143
    assert {reason for words in said.values() for reason in words} <= {OK, *(each.value for each in Reason)}


@promise("H10", "H11")
def test_spoiled_documents_are_refused_and_restyled_ones_are_the_same():
    report = attack_documents()
    assert report.failures == ()
    assert report.tried == sum(1 for _ in spoiled()) + 4
    assert found_in(pinned(good_files()))[0] == []


@promise("H10")
@pytest.mark.parametrize("broker", GOOD)
def test_every_edit_of_a_good_cases_receipts_is_found(broker):
    report = attack_records([CASES[GOOD[broker]]])
    assert report.failures == ()
    assert {each.reason for each in report.tallies} >= {"chain_broken", "chain_truncated", "run_mismatch", "torn_tail"}


def test_an_edit_of_receipts_that_is_believed_counts_as_let_through(monkeypatch):
    def believing(lines, **said):
        return evolve(verify(lines, **said), findings=())

    monkeypatch.setattr("assisted_benchmark.suite.attacks.outside.verify", believing)
    report = attack_records([CASES[GOOD["live"]]], frozenset(("R02",)))
    assert report.count(Came.THROUGH) == report.tried == len(report.failures) == 2


def test_a_benign_document_that_is_refused_is_a_false_alarm(monkeypatch):
    restyle = [("no-style", lambda files: files.update({"contracts/ui.policy.yaml": "id: no"}))]
    monkeypatch.setattr("assisted_benchmark.suite.attacks.outside.restyled", lambda: iter(restyle))
    report = attack_documents(attacks=False)
    assert (report.tried, report.count(Came.ALARM), report.sound) == (1, 1, False)


@promise("H10")
def test_a_broker_without_a_check_lets_through_what_the_check_is_for():
    case = CASES[GOOD["live"]]
    with lacking(GUARDS["live_policy.checks:CHECKS/wrong_vm"]):
        report = attack_cases([case], only=frozenset(("C64",)))
    assert report.count(Came.THROUGH) > 0
    assert {each.finding.attack.moves[0].name for each in report.failures} == {
        f"vm-{'0' * 8}-{'0' * 8}",
    }


@promise("H10")
def test_a_failing_pair_shrinks_to_the_move_that_fails_and_its_scenario_comes_to_the_same(tmp_path):
    place = place_of("live", 1)
    moves = {move.id: move for move in place.moves()}
    vm, late = next(each for name, each in moves.items() if name.startswith("C66")), moves["G03.behind-the-marker"]
    attack = pair(place, vm, late)
    with lacking(GUARDS["live_policy.checks:CHECKS/wrong_vm"]):
        bench = Bench(RunPlan(durability=MEMORY))
        player = Player(bench)
        (found,) = player.play(place, [attack])
        least = player.shrunk(place, found)
        bench.close()
        assert (found.came, found.word) == (Came.OTHER, "expired")
        assert (least.came, least.attack.moves) == (Came.THROUGH, (vm,))
    root = a_root(tmp_path / "root")
    with lacking(GUARDS["live_policy.checks:CHECKS/wrong_vm"]):
        report = attack_cases([CASES[GOOD["live"]]], only=frozenset(("C66",)))
        files = write_failures(report.failures, root / "fixtures" / "live")
        cases = discover(root)
        bench = Bench(RunPlan(durability=MEMORY))
        results = [bench.run(case).result for case in cases]
        bench.close()
        assert len(files) == len({each.name for each in report.failures}) == len(cases)
        assert {each.verdict for each in results} == {Verdict.FAILED}
        assert all(each.attacker_sent for each in results)
    bench = Bench(RunPlan(durability=MEMORY))
    assert {bench.run(case).result.verdict for case in cases} == {Verdict.PASSED}
    bench.close()


@promise("H10")
def test_an_altered_text_shrinks_to_the_smallest_change_that_fails_alike():
    place = place_of("live", 1)
    moves = {move.id: move for move in place.moves()}
    altered = moves["C54.command/taskId" if "C54.command/taskId" in moves else "C54.command/targetId"]
    bench = Bench(RunPlan(durability=MEMORY))
    player = Player(bench)
    (found,) = player.play(place, [next(each for each in attacks_of(place, pairs=0) if each.moves == (altered,))])
    wrong = evolve(found, came=Came.RIGHT)
    least = player.shrunk(place, wrong)
    bench.close()
    shrink = least.attack.moves[0].shrink
    assert len(shrink.now) <= 1 < len(altered.shrink.now)


@promise("H10")
@pytest.mark.parametrize("broker", GOOD)
def test_every_attack_can_be_written_as_a_scenario_that_means_the_same(broker, tmp_path):
    place = place_of(broker)
    attacks = [each for each in attacks_of(place, pairs=40) if not {"C49"} & {move.threat for move in each.moves}]
    root = a_root(tmp_path)
    report = Counter()
    for each, finding in zip(attacks, played(place, attacks), strict=True):
        report.take(evolve(finding, came=Came.OTHER))
        assert finding.attack == each
    folder = root / "fixtures" / broker
    folder.mkdir(parents=True, exist_ok=True)
    for number, finding in enumerate(report.failed):
        value = {**scenario_of(place, finding), "id": f"a-{number}"}
        assert text_of_scenario(place, finding).startswith("# yaml-language-server")
        (folder / f"a-{number}.scenario.yaml").write_text(yaml_of(value))
    again = {case.id: case for case in discover(root)}
    rows = {f"case-{number}": each.row for number, each in enumerate(attacks)}
    for number, case in enumerate(place.cases(place.scenario(rows))):
        same = again[f"{broker}/a-{number}/attack"]
        assert (same.agent, same.faults, same.expect, same.run) == (case.agent, case.faults, case.expect, case.run)


@promise("H10")
def test_the_same_seed_gives_the_same_attacks_and_another_one_others():
    case = CASES[GOOD["mutation"]]

    def names(seed):
        return [attack.id for place in places_of(case, seed) for attack in attacks_of(place, pairs=20)]

    assert names(7) == names(7)
    assert names(7) != names(8)


def test_all_pairs_are_those_whose_moves_are_of_different_places():
    place = place_of("capability", 0)
    moves = place.moves()
    together = [both for one, other in combinations(moves, 2) if (both := pair(place, one, other)) is not None]
    assert [each.id for each in attacks_of(place, pairs=ALL_PAIRS)][len(moves) :] == [each.id for each in together]
    order = place.order
    for each in together:
        places = [order.index(move.station) for move in each.moves]
        assert places == sorted(places)
        assert each.expected == each.moves[0].station
        assert (each.either != "") == ({move.station.reason for move in each.moves} <= OF_BYTES)


def test_two_reports_are_one():
    one, other = attack_documents(frozenset(("Y02",))), attack_documents(frozenset(("Y04",)))
    both = joined([one, other])
    assert both.tried == one.tried + other.tried == 5
    assert both.threats == {"Y02", "Y04"}
    assert joined([]).tried == 0


def test_what_could_not_run_is_no_refusal(monkeypatch):
    def lost(*_):
        raise LedgerError(Reason.STORE_UNAVAILABLE, "the disk is gone")

    place = place_of("live")
    attack = next(attacks_of(place, pairs=0))
    monkeypatch.setattr(LiveStage, "play", lost)
    (finding,) = played(place, [attack])
    assert isinstance(finding, Finding)
    assert (finding.came, finding.word) == (Came.NO_VERDICT, Reason.STORE_UNAVAILABLE)


def test_a_benign_case_that_is_refused_is_a_false_alarm():
    place = place_of("live")
    good = next(benign_of(place))
    hostile = next(attacks_of(place, pairs=0))
    (finding,) = played(place, [evolve(good, row=hostile.row)])
    assert finding.came is Came.ALARM


def test_what_is_refused_for_another_reason_is_told_apart():
    place = place_of("live")
    one, other = [each for each in attacks_of(place, pairs=0) if each.moves[0].threat in ("C46", "C14")][:2]
    (finding,) = played(place, [evolve(one, row=other.row)])
    assert finding.came is (Came.RIGHT if one.expected == other.expected else Came.OTHER)
