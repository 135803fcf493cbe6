"""The reason matrix: mutants made of the broker itself, tried by what ships, and put back as if nothing had been."""

import importlib
import json
from contextlib import closing

import pytest
from marks import promise
from suite_world import ROOT, a_root, add, scenario

from assisted_benchmark.cli.main import main
from assisted_benchmark.kernel.errors import DocumentError
from assisted_benchmark.kernel.names import name_fault
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.live_policy.broker import LiveBroker
from assisted_benchmark.live_policy.checks import CHECKS
from assisted_benchmark.report.matrix import matrix_lines, matrix_page, matrix_value
from assisted_benchmark.suite.bench import Bench
from assisted_benchmark.suite.matrix import judging
from assisted_benchmark.suite.matrix.explained import Explained, explained_in
from assisted_benchmark.suite.matrix.guards import How, spots
from assisted_benchmark.suite.matrix.judging import BROKERS, Came, Judge, exams_of, guards_of, matrix
from assisted_benchmark.suite.matrix.lacking import lacking
from assisted_benchmark.suite.matrix.oracle import oracle_score
from assisted_benchmark.suite.matrix.spoiled import Lie
from assisted_benchmark.suite.plan import RunPlan
from assisted_benchmark.suite.runner import discover, select
from assisted_benchmark.suite.vectors.vector import vectors_of

CASES = discover(ROOT)
GUARDS = {guard.name: guard for broker in BROKERS for guard in guards_of(broker)}
INVISIBLE, CONFUSABLE, MALFORMED = (
    GUARDS[f"kernel.names:name_fault/{word}"] for word in ("invisible_character", "confusable_name", "malformed_name")
)
WRONG_VM = GUARDS["live_policy.checks:CHECKS/wrong_vm"]


def exams(*ids):
    return exams_of(select(CASES, ids={f"live/{each}" for each in ids}))


@promise("H12", "K8")
def test_every_check_of_every_list_and_every_place_that_answers_with_a_reason_is_a_guard():
    assert {guard.reason for guard in guards_of("live") if guard.how is How.CHECK} >= {each.reason for each in CHECKS}
    assert {each.how for each in GUARDS.values()} == set(How) - {How.CASE}
    assert len(GUARDS) == sum(len(guards_of(broker)) for broker in BROKERS) >= 290


@promise("H12")
def test_a_function_lacks_its_guard_for_as_long_as_that_lasts_and_no_longer():
    whole = name_fault.__code__
    with lacking(INVISIBLE):
        assert name_fault("a\u200bb") is Reason.MALFORMED_NAME
    with lacking(INVISIBLE, MALFORMED):
        assert name_fault("a\u200bb") is None
    with lacking(CONFUSABLE):
        assert name_fault("\u0430pprove") is Reason.MALFORMED_NAME
    assert name_fault.__code__ is whole
    assert name_fault("a\u200bb") is Reason.INVISIBLE_CHARACTER


@promise("H12")
def test_a_broker_is_made_without_a_check_for_as_long_as_that_lasts():
    with lacking(WRONG_VM):
        assert WRONG_VM.reason not in {each.reason for each in LiveBroker.__init__.__kwdefaults__["checks"]}
    assert LiveBroker.__init__.__kwdefaults__["checks"] is CHECKS


@pytest.mark.parametrize(
    ("text", "how", "with_guard", "without"),
    [
        ("if x:\n  return Reason.FAILED\n return None", How.IF, Reason.FAILED, None),
        ("if not x:\n  return None\n else:\n  return Reason.FAILED", How.ELSE, Reason.FAILED, None),
        ("return Reason.FAILED if x else None", How.IF, Reason.FAILED, None),
        ("return None if not x else Reason.FAILED", How.ELSE, Reason.FAILED, None),
        ("match x:\n  case True:\n   return Reason.FAILED\n return None", How.CASE, Reason.FAILED, None),
        ("if not x:\n  return None\n return Reason.FAILED", How.PLACE, Reason.FAILED, None),
        (
            "pairs = [(Reason.FAILED, not x)]\n return next((r for r, ok in pairs if not ok), None)",
            How.PAIR,
            Reason.FAILED,
            None,
        ),
    ],
)
def test_each_way_of_answering_with_a_reason_can_be_lacked(text, how, with_guard, without, tmp_path, monkeypatch):
    name = f"sample_{how.value}_{abs(hash(text))}"
    source = f"from assisted_benchmark.kernel.reasons import Reason\n\n\ndef asked(x):\n {text}\n"
    (tmp_path / f"{name}.py").write_text(source)
    monkeypatch.setattr("assisted_benchmark.kernel.__path__", [str(tmp_path)])
    module = importlib.import_module(f"assisted_benchmark.kernel.{name}")
    (spot,) = spots(f"kernel.{name}")
    assert (spot.guard.how, module.asked(True)) == (how, with_guard)
    with lacking(spot.guard):
        assert module.asked(True) == without
    assert module.asked(True) == with_guard


def test_a_lacking_handler_lets_the_error_go_on(tmp_path, monkeypatch):
    source = "from assisted_benchmark.kernel.reasons import Reason\n\n\ndef asked(x):\n try:\n  return 1 / x\n"
    source += " except ZeroDivisionError:\n  return Reason.FAILED\n"
    (tmp_path / "sample_handler.py").write_text(source)
    monkeypatch.setattr("assisted_benchmark.kernel.__path__", [str(tmp_path)])
    module = importlib.import_module("assisted_benchmark.kernel.sample_handler")
    (spot,) = spots("kernel.sample_handler")
    assert module.asked(0) is Reason.FAILED
    with lacking(spot.guard), pytest.raises(ZeroDivisionError):
        module.asked(0)


@promise("H12")
def test_what_a_mutant_lets_through_is_told_from_what_it_only_words_otherwise():
    judge = Judge(exams("another-setting/other-vm", "wrong-target/other-case", "approve-once/plain"))
    through = judge.kills("live", WRONG_VM)
    assert (through.killed_by, through.caught, through.let_through, through.otherwise) == (
        "live/another-setting/other-vm",
        1,
        1,
        0,
    )
    worded = judge.kills("live", GUARDS["live_policy.checks:CHECKS/wrong_target"])
    assert (worded.killed_by, worded.caught, worded.let_through, worded.otherwise) == (
        "live/wrong-target/other-case",
        1,
        0,
        1,
    )


def a_matrix(monkeypatch, guards, explained=(), cases=("another-setting/other-vm", "approve-once/plain")):
    monkeypatch.setattr(judging, "guards_of", lambda broker: guards if broker == "live" else ())
    return matrix(exams(*cases), explained)


@promise("H12")
def test_a_matrix_is_sound_only_if_every_mutant_is_killed_or_explained(monkeypatch):
    both = (WRONG_VM, GUARDS["live_policy.checks:CHECKS/wrong_host"])
    assert not a_matrix(monkeypatch, both).sound
    assert a_matrix(monkeypatch, both[:1]).sound
    said = Explained(both[1].name, "nobody moves here", test="scripts/tests/x.py::test_x")
    found = a_matrix(monkeypatch, both, [said])
    assert (found.sound, found.stale) == (True, ())
    value = matrix_value(found, ())
    assert (value["killed"], value["tested"], value["shadowed"], value["total"]) == (1, 1, 0, 2)
    assert "`wrong_vm` | 1 of 1 (1)" in matrix_page(found, ())
    assert "nobody moves here; `scripts/tests/x.py::test_x` fails" in matrix_page(found, ())
    json.dumps(value)


@promise("H12")
@pytest.mark.parametrize(
    ("said", "told"),
    [
        (Explained("no.such:guard/failed", "", test="t"), "there is no such guard"),
        (Explained(WRONG_VM.name, "", test="t"), "the mutant that lacks it is killed by live/another-setting/other-vm"),
        (
            Explained("live_policy.checks:CHECKS/wrong_host", "", ("no.such:guard",)),
            "there is no guard `no.such:guard`",
        ),
        (
            Explained("live_policy.checks:CHECKS/wrong_host", "", ("live_policy.checks:CHECKS/expired",)),
            "the mutant that lacks those behind it as well lives",
        ),
    ],
)
def test_an_explanation_that_is_not_so_is_stale_and_the_matrix_unsound(said, told, monkeypatch):
    names = ("wrong_vm", "wrong_host", "expired")
    guards = tuple(GUARDS[f"live_policy.checks:CHECKS/{name}"] for name in names)
    found = a_matrix(monkeypatch, guards, [said])
    assert found.stale == (f"{said.guard}: {told}",)
    assert not found.sound
    assert f"STALE: {said.guard}: {told}" in list(matrix_lines(found, ()))


def test_guards_behind_one_are_lacked_with_it(monkeypatch):
    names = ("live_policy.checks:CHECKS/policy_drift", "live_policy.opening:OPENING/policy_drift")
    said = Explained(names[0], "nothing is opened then", names[1:])
    found = a_matrix(
        monkeypatch, tuple(map(GUARDS.get, names)), [said], ("policy-drift/changed-after-sealing", "approve-once/plain")
    )
    assert (found.sound, found.stale) == (True, ())


def test_a_case_that_fails_without_any_mutant_kills_none(monkeypatch):
    class Failing:
        id, broker = "failing", "live"

        def sit(self):
            return Came(False, 0, frozenset())

    monkeypatch.setattr(judging, "guards_of", lambda broker: (WRONG_VM,) if broker == "live" else ())
    found = matrix([Failing(), *exams("another-setting/other-vm")], ())
    assert (found.failing, found.sound) == (("failing",), False)
    assert "FAILS: failing without any mutant" in list(matrix_lines(found, ()))


def test_a_list_of_explanations_is_held_to_its_form(tmp_path):
    assert explained_in(tmp_path) == ()
    (tmp_path / "fixtures").mkdir()
    (tmp_path / "fixtures" / "guards.yaml").write_text(
        "schema: assisted-benchmark/guards@1\nguards:\n  - {guard: a, because: b}\n"
    )
    with pytest.raises(DocumentError) as refused:
        explained_in(tmp_path)
    assert [problem.reason for problem in refused.value.problems] == [Reason.MISSING_KEY]


@promise("H12")
def test_the_shipped_list_names_guards_and_tests_that_there_are():
    listed = explained_in(ROOT)
    assert {each.guard for each in listed} <= GUARDS.keys()
    for each in listed:
        assert set(each.behind) <= GUARDS.keys()
        if each.test:
            file, name = each.test.split("::")
            assert f"def {name.partition('[')[0]}(" in (ROOT / file).read_text()


@promise("H12")
def test_vectors_are_exams_too():
    (vector,) = [each for each in vectors_of(ROOT) if (each.kind, each.id) == ("admission", "duplicate-key")]
    judge = Judge(exams_of((), [vector]))
    found = judge.kills("shared", GUARDS["kernel.strict_json:_object/duplicate_key"])
    assert found.killed_by == "vectors/admission/duplicate-key"


# --- the oracles


@promise("H7a")
def test_every_lie_about_a_state_changing_call_is_noticed_in_cases_of_all_brokers():
    ids = {
        "live/approve-once/other-key-order",
        "live/generated/model-3-lost",
        "mutation/accepted/network-handshake",
        "mutation/two-at-once/at-the-marker",
        "capability/every-operation/parameter-gesture",
        "capability/idempotency/at-the-same-time-and-first",
    }
    found = oracle_score(select(CASES, ids=ids))
    assert {(each.broker, each.lie) for each in found} == {
        (b, lie) for b in ("live", "mutation", "capability") for lie in Lie
    }
    assert [(each.calls > 0, each.missed) for each in found] == [(True, ())] * 6


@promise("H7a")
def test_a_lie_that_nothing_is_said_about_is_reported(monkeypatch):
    monkeypatch.setattr("assisted_benchmark.suite.live.scoring._effects", lambda *_: ())
    found = oracle_score(select(CASES, ids={"live/inbox-triage/hold"}))
    assert [(each.lie, each.missed) for each in found] == [(lie, ("live/inbox-triage/hold, call 1",)) for lie in Lie]
    assert "UNNOTICED: dropped, live/inbox-triage/hold, call 1" in list(matrix_lines(matrix((), ()), found))


# --- the command


@promise("H12", "H20")
def test_a_root_whose_cases_notice_little_fails_and_its_page_is_written_and_checked(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(judging, "guards_of", lambda broker: (WRONG_VM,) if broker == "live" else ())
    root = a_root(tmp_path, tried=scenario("tried", "run: {seed: 7}\nagent: {plan: approve}\n"))
    page = tmp_path / "page.md"
    assert main(["matrix", "--root", str(root), "--write", str(page)]) == 1
    capsys.readouterr()
    assert main(["matrix", "--root", str(root), "--check", str(page), "--json"]) == 1
    value = json.loads(capsys.readouterr().out)
    assert (value["killed"], value["total"], value["oracle"][0]["total"]) == (0, 1, 1)
    moved = "faults: [{setting: {vm: 00000000-0000-4000-8000-000000000000}}]\nexpect: {refused: wrong_vm}\n"
    add(root, "moved", scenario("moved", f"run: {{seed: 7}}\nagent: {{plan: approve}}\n{moved}"))
    assert main(["matrix", "--root", str(root), "--check", str(page)]) == 1
    assert "is stale" in capsys.readouterr().err
    assert main(["matrix", "--root", str(root), "--write", str(page)]) == 0
    assert main(["matrix", "--root", str(root), "--check", str(page)]) == 0


def test_nothing_of_a_mutant_is_left_behind():
    with closing(Bench(RunPlan(durability="memory"))) as bench:
        (case,) = select(CASES, ids={"live/another-setting/other-vm"})
        with lacking(WRONG_VM):
            assert bench.run(case).result.verdict == "failed"
    with closing(Bench(RunPlan(durability="memory"))) as bench:
        assert bench.run(case).result.verdict == "passed"
