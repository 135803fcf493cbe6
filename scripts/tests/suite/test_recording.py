"""A session becomes a scenario, and the scenario replays it: the same receipts, to the byte."""

import shutil

import pytest
from attrs import evolve
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from marks import promise
from served_bench import APPROVE, CHOOSE, LOOK, proposal
from suite_world import a_root, cases_in, ran, scenario

from assisted_benchmark.kernel.clock import SECOND, ManualClock
from assisted_benchmark.kernel.errors import MisuseError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.suite.case import Servers
from assisted_benchmark.suite.live.agents import Outside
from assisted_benchmark.suite.live.recording import named_as, receipts_of, scenario_text, session_bytes, session_file
from assisted_benchmark.suite.live.served import for_client
from assisted_benchmark.suite.replay import first_difference, played_again
from assisted_benchmark.suite.result import Verdict
from assisted_benchmark.suite.runner import discover

BODY = "run: {seed: 7}\nagent: {plan: approve}\n"
HOLD = proposal("synthetic-ui", "click_target", **APPROVE | {"targetId": "hold"})
WRONG = proposal("synthetic-ui", "click_target", **APPROVE | {"taskId": "t-2"})


def recorded(folder, body, acts, *, policy="ui-decision", name="mine", **plan):
    """What a session with this case comes to, and the case that was recorded of it; `acts` are its turns."""
    root = a_root(folder, tried=scenario("tried", body, policy=policy))
    path = root / "fixtures" / "recorded" / f"{name}.scenario.yaml"
    case = named_as(cases_in(root)["tried/plain"], path, root)
    clock = ManualClock()
    kept = []

    def drive(served):
        for after_ns, act in acts:
            clock.advance(after_ns)
            act(served)
        served.is_called("me 1")
        kept.extend(served.turns)

    ended = ran(for_client(case, Outside(drive=drive, clock=clock)), expect_identical=True, **plan)
    path.parent.mkdir(exist_ok=True)
    session_file(path).write_bytes(session_bytes(ended.result.agent, kept, ended.receipts))
    path.write_text(scenario_text(case, ended.result, kept, "live/tried/plain", "../../schemas"))
    (again,) = discover(root, [path])
    return ended, again, path, root


def proposes(raw, principal=""):
    return lambda served: served.propose(raw, principal=principal)


def sends_nonsense(served):
    served.refuse_malformed(Reason.MALFORMED_CALL, "not JSON at byte 1")


def same(ended, case):
    """Replay it: everything that the session came to comes again."""
    now = played_again(case, 0)
    assert first_difference(ended.receipts, now.receipts) == ()
    assert (now.receipts, now.result.receipts) == (ended.receipts, ended.result.receipts)
    assert case.expect.receipts == ended.result.receipts
    assert (now.result.verdict, now.result.misses) == (Verdict.PASSED, ())
    assert now.result.calls == ended.result.calls
    return now.result


@promise("H7", "H7a")
@pytest.mark.parametrize("durability", ["memory", "process", "power"])
def test_a_session_replays_to_the_same_receipts_wherever_it_was_kept(tmp_path, durability):
    acts = [
        (SECOND // 4, proposes(LOOK)),
        (1_234_567, proposes(WRONG)),
        (SECOND, proposes(CHOOSE)),
        (0, proposes(HOLD)),
    ]
    ended, case, path, root = recorded(tmp_path, BODY, acts, durability=durability)
    result = same(ended, case)
    assert case.id == "recorded/mine/plain"
    assert result.diverged_at is None  # what was refused then was seen then
    assert [each.expected for each in case.agent.shots] == [
        "admitted",
        "arguments_altered",
        "admitted",
        "already_selected",
    ]
    assert [each.at_ns for each in case.agent.shots] == [250_000_000, 251_000_000, 1_251_000_000, 1_251_000_000]
    assert receipts_of(path, root) == ended.receipts


@promise("H7")
def test_what_was_recorded_is_told_in_the_scenario(tmp_path):
    _, _, path, _ = recorded(tmp_path, BODY, [(0, proposes(LOOK)), (0, proposes(CHOOSE))])
    text = path.read_text()
    digest = text.rpartition("receipts: ")[2].removesuffix("}\n")
    assert text == (
        "# yaml-language-server: $schema=../../schemas/scenario.schema.json\n"
        "schema: assisted-benchmark/scenario@1\n"
        "id: mine\n"
        'because: "a session of client (me 1) with live/tried/plain, as it was recorded"\n'
        "policy: ui-decision\n"
        "run: {seed: 7}\n"
        "agent: {transcript: mine.session.jsonl}\n"
        f"expect: {{ends: succeeded, calls: {{lba: 1, synthetic-ui: 1}}, oracle: approved, receipts: {digest}}}\n"
    )


@promise("H7")
@pytest.mark.parametrize(
    "body",
    [
        "run: {task: t-9, session: someone, vm: 2f8f9e0c-6c1d-4b1e-9a51-000000000125}\nagent: nop\n",
        "run: {host: elsewhere, clock: '2031-02-03T04:05:06Z'}\nagent: nop\n",
        "agent: nop\nreveal: reason\ntags: [some, 'on']\n",
        "agent: nop\nrun: {run: of-its-own}\n",
        "agent: {plan: approve}\nfaults: [{advance: 90s, turn: 1}, {advance: 1500ms, turn: 2}]\n",
        "agent: {plan: approve}\nfaults: [{crash: broker, turn: 2}]\n",
        "agent: {plan: approve}\nfaults: [{server: {id: synthetic-ui, does: drop_answer, tool: click_target}}]\n",
        # Without a turn it strikes at the last that the scenario counts on, which is not the session's last.
        "agent: {plan: approve}\nfaults: [{race: hold}]\n",
        "agent: {plan: approve}\nfaults: [{revoke: grant, at: after, turn: 1}]\n",
        "agent: {script: [{step: 1}, {step: 1}, {step: 1}, {step: 1}, {step: 1}]}\nfaults: [{cancel: run}]\n",
    ],
)
def test_a_session_under_any_run_and_any_faults_replays(tmp_path, body):
    acts = [(SECOND, proposes(LOOK)), (SECOND, proposes(CHOOSE)), (SECOND, proposes(HOLD))]
    ended, case, *_ = recorded(tmp_path, body, acts)
    now = played_again(case, 0)
    assert (now.receipts, now.result.misses) == (ended.receipts, ())


@promise("H7")
def test_lines_that_are_no_message_and_other_sessions_calls_replay(tmp_path):
    acts = [
        (SECOND, sends_nonsense),
        (SECOND, proposes(LOOK, "another")),
        (SECOND, proposes(LOOK)),
        (0, sends_nonsense),
        (117 * SECOND, proposes(CHOOSE)),
    ]
    ended, case, *_ = recorded(tmp_path, BODY, acts)
    same(ended, case)
    assert [each.malformed is None for each in case.agent.shots] == [False, True, True, False, True]
    assert case.agent.shots[-1].expected == "expired"


@promise("H7")
def test_a_session_in_which_nothing_was_proposed_replays(tmp_path):
    ended, case, *_ = recorded(tmp_path, BODY, [])
    assert same(ended, case).ends == "sealed"


MOVES = [LOOK, CHOOSE, HOLD, WRONG, b"{", b'{"arguments":{},"server":"lba","tool":"\xc3\xa9"}', b'{"a":"\\ud800"}']


@promise("H7")
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.integers(0, 40 * SECOND), st.sampled_from(MOVES)), max_size=8))
def test_whatever_is_proposed_and_whenever_it_replays(tmp_path, moves):
    shutil.rmtree(tmp_path / "fixtures" / "recorded", ignore_errors=True)
    ended, case, *_ = recorded(tmp_path, BODY, [(after, proposes(raw)) for after, raw in moves])
    now = played_again(case, 0)
    assert (now.receipts, now.result.misses) == (ended.receipts, ())


@promise("H7")
def test_receipts_that_differ_fail_the_case_and_are_held_only_as_they_were_recorded(tmp_path):
    _, case, *_ = recorded(tmp_path, BODY, [(0, proposes(LOOK)), (0, proposes(CHOOSE))])
    other = evolve(case, expect=evolve(case.expect, receipts=case.source))
    (miss,) = ran(other).result.misses
    assert (miss.what, miss.expected, miss.actual) == ("receipts", case.source, case.expect.receipts)
    assert ran(other, seed=1).result.verdict is Verdict.PASSED
    assert ran(other, servers="process").result.verdict is Verdict.PASSED


@promise("H7")
def test_the_first_difference_is_told_field_by_field(tmp_path):
    ended, case, *_ = recorded(tmp_path, BODY, [(0, proposes(LOOK)), (0, proposes(CHOOSE))])
    lines = ended.receipts
    later = lines[1].replace(b'"reason":"succeeded"', b'"reason":"failed"')
    assert first_difference(lines, (lines[0], later, *lines[2:])) == (
        "receipt 2 of 4 is another:",
        "  reason: `succeeded` then, `failed` now",
    )
    assert first_difference(lines, lines[:3]) == (
        "receipt 4 is recorded, and does not come any more: kind `outcome`, reason `succeeded`, "
        "server `synthetic-ui`, tool `click_target`",
    )
    assert first_difference(lines[:1], lines)[0].startswith("receipt 2 is new: kind `outcome`")
    moved = lines[0].replace(b'"prev":"sha256:', b'"prev":"sha256:0')
    assert [each.split()[0] for each in first_difference(lines, (moved, *lines[1:]))] == ["receipt", "prev:"]
    assert case.id


@promise("H7")
def test_a_scenario_says_where_its_servers_lived_if_that_is_not_usual(tmp_path):
    ended, case, path, root = recorded(tmp_path, BODY, [])
    text = scenario_text(evolve(case, servers=Servers.PROCESS), ended.result, (), "live/tried/plain", "schemas")
    assert "servers: process" in text.splitlines()
    # A scenario that plays no session has recorded no receipts.
    assert receipts_of(root / "fixtures" / "live" / "tried.scenario.yaml", root) == ()
    assert receipts_of(path, root) == ()


@promise("H20")
@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("fixtures/recorded/mine.yaml", Reason.MISUSE),
        ("fixtures/recorded/.scenario.yaml", Reason.MISUSE),
        ("fixtures/recorded/a b.scenario.yaml", Reason.MISUSE),
        ("fixtures/live/tried.scenario.yaml", Reason.DUPLICATE_ID),
        ("fixtures/live/kept.scenario.yaml", Reason.DUPLICATE_ID),
        ("../elsewhere.scenario.yaml", Reason.PATH_ESCAPE),
    ],
)
def test_a_place_that_is_none_for_a_scenario_is_refused(tmp_path, name, reason):
    root = a_root(tmp_path / "root", tried=scenario("tried", BODY))
    (root / "fixtures" / "live" / "kept.session.jsonl").write_bytes(b"")
    with pytest.raises(MisuseError) as caught:
        named_as(cases_in(root)["tried/plain"], root / name, root)
    assert caught.value.reason is reason
