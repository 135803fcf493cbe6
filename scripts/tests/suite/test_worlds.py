"""The servers of a case: as models here, as processes behind the router, and both come to the same."""

import pytest
from attrs import evolve
from marks import promise
from suite_world import ROOT, a_root, cases_in, ran, scenario

from assisted_benchmark.contract.document import load_contract
from assisted_benchmark.kernel.clock import SECOND, Deadline, ManualClock
from assisted_benchmark.kernel.decision import Admitted
from assisted_benchmark.kernel.digest import digest_of
from assisted_benchmark.kernel.errors import ServerError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.ledger.protocol import Claimed
from assisted_benchmark.live_policy.ports import Observation, Unavailable
from assisted_benchmark.mcp_router.process import Launcher, Process
from assisted_benchmark.mcp_router.router import Router
from assisted_benchmark.suite.case import Servers
from assisted_benchmark.suite.live.faults import Kind
from assisted_benchmark.suite.live.in_process import InProcess, launches_in_process, model_of
from assisted_benchmark.suite.live.processes import Processes
from assisted_benchmark.suite.result import Verdict
from assisted_benchmark.suite.runner import RunPlan, discover, run, select
from assisted_benchmark.workloads.faults import Fault, FaultKind
from assisted_benchmark.workloads.oracle import Oracle

FOLDER = str(ROOT / "contracts")


@pytest.fixture
def world():
    contract = load_contract(ROOT / "contracts/lba-and-synthetic-ui.contract.yaml", ROOT)
    clock = ManualClock()
    return InProcess(contract, FOLDER, clock, launches_in_process(contract), seed=7, task="t-1")


def seen(world, server="synthetic-ui"):
    return world.observe(server, fresh=True, deadline=Deadline.after(ManualClock(), SECOND))


@promise("H5a")
def test_a_recorded_server_shows_its_recorded_list_and_a_model_its_own(world):
    contract = load_contract(ROOT / "contracts/lba-and-synthetic-ui.contract.yaml", ROOT)
    for server in contract.servers:
        observation = seen(world, server.id)
        assert (observation.tools, observation.drift) == (server.tools_digest, ())


def test_another_program_has_another_launch_and_the_same_list(world):
    before = seen(world)
    world.substitute("synthetic-ui")
    after = seen(world)
    assert (after.launch != before.launch, after.tools, after.drift) == (True, before.tools, ())


def test_a_drifted_list_says_what_changed(world):
    world.arm("synthetic-ui", Fault(FaultKind.DRIFT_TOOLS))
    assert [line.split(":")[0] for line in seen(world).drift] == ["tool `read_task` at /description"]


def test_a_dead_or_unknown_server_cannot_be_looked_at(world):
    world.kill("synthetic-ui")
    assert isinstance(seen(world), Unavailable)
    assert isinstance(seen(world, "lba"), Observation)


def test_a_server_that_is_no_workload_runs_only_as_a_process():
    contract = load_contract(ROOT / "contracts/real-time.contract.yaml", ROOT)
    with pytest.raises(ServerError) as caught:
        model_of(contract.servers[0], None, 0, "t-1")
    assert caught.value.reason is Reason.LAUNCH_FAILED


def test_servers_are_processes_where_one_has_no_model_unless_the_scenario_says_otherwise(tmp_path):
    candidates = (
        "schema: assisted-benchmark/candidates@1\npolicy: real-time\ntask: t-1\ncandidates: {tokyo: {}, paris: {}}\n"
    )
    root = a_root(
        tmp_path,
        usual=scenario("usual", "agent: {plan: tokyo}\n", policy="real-time"),
        said=scenario("said", "agent: {plan: tokyo}\nservers: in_process\n", policy="real-time"),
        modelled=scenario("modelled", "agent: {plan: hold}\n"),
        **{"zones.candidates.yaml": candidates},
    )
    cases = cases_in(root)
    assert {name: case.servers for name, case in cases.items() if not name.startswith("zones/")} == {
        "usual/plain": Servers.PROCESS,
        "said/plain": Servers.IN_PROCESS,
        "modelled/plain": Servers.IN_PROCESS,
    }
    assert {case.servers for name, case in cases.items() if name.startswith("zones/")} == {Servers.PROCESS}
    assert ran(cases["said/plain"]).result.reason == "launch_failed"
    assert ran(cases["zones/tokyo"]).result.verdict is Verdict.PASSED


BODY = """\
run: {seed: 7}
agent: {plan: approve}
servers: process
cases:
  plain: {expect: {oracle: approved}}
  drift:
    faults: [{server: {id: synthetic-ui, does: drift_tools}, at: observe}]
    expect: {refused: contract_drift, calls: {synthetic-ui: 1}}
  substituted: {faults: [{substitute: synthetic-ui}], expect: {refused: contract_drift, calls: {synthetic-ui: 1}}}
  late: {faults: [{advance: 120s, at: write}], expect: {refused: late_result, ends: unresolved, oracle: approved}}
  killed: {faults: [{kill: synthetic-ui}]}
  unheard: {faults: [{server: {id: lba, does: garbage}, at: start}]}
"""


@promise("H5", "L18")
def test_faults_strike_real_processes_and_what_cannot_be_played_gives_no_verdict(tmp_path):
    cases = cases_in(a_root(tmp_path, tried=scenario("tried", BODY, policy="ui-reading")))
    results = {name.removeprefix("tried/"): ran(case).result for name, case in cases.items()}
    assert {name: result.verdict for name, result in results.items()} == {
        "plain": Verdict.PASSED,
        "drift": Verdict.PASSED,
        "substituted": Verdict.PASSED,
        "late": Verdict.PASSED,
        "killed": Verdict.COULD_NOT_RUN,
        "unheard": Verdict.COULD_NOT_RUN,
    }


@promise("H5")
@pytest.mark.parametrize(
    ("ended", "detail"),
    [
        (
            {"left": (4242, 4243)},
            "processes of `synthetic-ui` could not be ended: 4242, 4243; end them before the next run",
        ),
        (
            {"known": False},
            "what watched the processes of `synthetic-ui` was killed or stopped, so some may be left; look for them "
            "before the next run",
        ),
    ],
    ids=["left", "unknown"],
)
def test_a_case_whose_server_leaves_somebody_behind_has_no_verdict(monkeypatch, ended, detail):
    stop = Process.stop
    monkeypatch.setattr(Process, "stop", lambda *args: evolve(stop(*args), **ended))
    case = select(discover(ROOT), k="over-stdio/plain")[0]
    result = ran(case).result
    assert (result.verdict, result.reason, result.detail) == (
        Verdict.COULD_NOT_RUN,
        "could_not_run",
        detail,
    )


@promise("L33", "H5")
def test_what_a_server_did_before_and_after_it_was_started_again_is_told_apart():
    contract = load_contract(ROOT / "contracts/lba-and-synthetic-ui.contract.yaml", ROOT)
    clock = ManualClock()
    with Launcher() as launcher:
        servers = Processes(contract, FOLDER, clock, launcher, seed=7, task="t-1")
        servers.arm("synthetic-ui", Fault(FaultKind.DIE_AFTER, nth=1))
        for _ in range(2):
            observation = servers.observe("synthetic-ui", fresh=False, deadline=Deadline.after(clock, 60 * SECOND))
            assert isinstance(observation, Observation)
            permit = Admitted(
                b"group", digest_of("candidate@1", b"1"), "synthetic-ui", "read_task", b'{"taskId":"t-1"}'
            )
            servers.send(Claimed(permit, "run-1"), gate=lambda: True, deadline=Deadline.after(clock, 60 * SECOND))
        servers.close()
    starts = servers.starts("synthetic-ui")
    assert [[event.kind for event in start] for start in starts] == [["read"], ["read"]]
    assert Oracle(7, "t-1").judge(*starts).disagreements == ()
    assert servers.calls["synthetic-ui"] == 2


@promise("W7")
@pytest.mark.parametrize(("faulty", "seconds"), [(False, 30), (True, 2)])
def test_a_real_server_has_as_long_as_the_broker_waits_and_less_where_it_is_made_to_misbehave(
    monkeypatch, faulty, seconds
):
    contract = load_contract(ROOT / "contracts/lba-and-synthetic-ui.contract.yaml", ROOT)
    clock, waits = ManualClock(), []

    def send(_router, _claimed, *, gate, deadline, relay):
        waits.append(-(-deadline.remaining_ns() // SECOND))
        return gate()

    monkeypatch.setattr(Router, "send", send)
    with Launcher() as launcher:
        servers = Processes(contract, FOLDER, clock, launcher, seed=7, task="t-1")
        if faulty:
            servers.arm("synthetic-ui", Fault(FaultKind.HANG_BEFORE))
        permit = Admitted(b"group", digest_of("candidate@1", b"1"), "synthetic-ui", "read_task", b"{}")
        deadline = Deadline.after(clock, 30 * SECOND)
        assert servers.send(Claimed(permit, "run-1"), gate=lambda: True, deadline=deadline) is True
        servers.close()
    assert waits == [seconds]


def counted(result):
    return (result.verdict, result.misses, result.refusals, result.calls, result.ends, result.scores, result.sent)


SAME = ("approve-once", "sanity-agents", "lost-answers", "another-setting", "race")


@promise("L1", "H5")
@pytest.mark.parametrize("file", SAME)
def test_processes_come_to_what_models_come_to(file):
    cases = select(discover(ROOT), k=f"live/{file}/")
    models = run(cases, RunPlan(durability="memory")).cases
    processes = run(cases, RunPlan(durability="memory", servers="process")).cases
    assert [counted(result) for result in processes] == [counted(result) for result in models]


def test_a_case_that_kills_a_model_stays_with_models_whatever_the_run_asks_for():
    killing = [case for case in discover(ROOT) if any(fault.kind is Kind.KILL for fault in case.faults)]
    assert len(killing) == 3
    assert {case.verdict for case in run(killing, RunPlan(durability="memory", servers="process")).cases} == {"passed"}


@promise("H7a")
def test_receipts_of_real_processes_are_the_same_again(tmp_path):
    cases = select(discover(ROOT), k="over-stdio")
    results = run(cases, RunPlan(repeat=2, expect_identical=True)).cases
    assert [(result.verdict, result.misses) for result in results] == [(Verdict.PASSED, ())] * 2


@promise("L14")
def test_real_servers_from_elsewhere_are_run_when_they_are_asked_for():
    real = discover(ROOT, [ROOT / "fixtures" / "real"])
    assert {case.tags for case in real} == {("real",)}
    assert {case.id.split("/")[0] for case in real} == {"real"}
    assert {case.servers for case in real} == {Servers.PROCESS}
    assert select(discover(ROOT, real=True), ids={case.id for case in real}) == real
    assert not {case.id for case in real} & {case.id for case in discover(ROOT)}
    results = run(real, RunPlan(durability="memory")).cases
    assert [(result.id, result.misses, result.detail) for result in results if result.verdict != "passed"] == []
    # Nobody watches what these servers do: a report says so, and takes no call for lost.
    assert {(result.id, result.sent, result.confirmed, result.stamps) for result in results if result.sent} == {
        ("real/same-tool-names/plain", 2, 0, ("not watched: git", "not watched: git-mirror")),
        ("real/time-zones/plain", 1, 0, ("not watched: time",)),
        ("real/time-zones/second-choice", 1, 0, ("not watched: time",)),
    }
