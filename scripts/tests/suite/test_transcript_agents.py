"""Transcripts as agents: their calls go through the real broker, and where they part from what was is said."""

import json

import pytest
import transcript_samples as samples
from attrs import evolve
from marks import promise
from suite_world import a_root, cases_in, ran, scenario

from assisted_benchmark.kernel.errors import DocumentError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.report.record import record
from assisted_benchmark.report.terminal import diverged_table
from assisted_benchmark.suite.journal import pack, unpack
from assisted_benchmark.suite.live.transcripts.calls import Answer, Was, parts, result_digest, text_digest
from assisted_benchmark.suite.live.transcripts.reading import MAX_BYTES
from assisted_benchmark.suite.result import Prefix, RunResult, Scores, Verdict
from assisted_benchmark.suite.runner import discover

AGENT = "run: {seed: 7}\nagent: {transcript: t.jsonl}\n"
APPROVED = "expect: {ends: succeeded, oracle: approved}\n"
CHOICES = [("click_target", {"taskId": "t-1", "targetId": target}) for target in ("approve", "hold")]
LOOK = ("get_benchmark_series", {})


def calls(*named):
    return samples.lines(*(samples.call(number, *each) for number, each in enumerate(named)))


def a_file(folder, data, name="t.jsonl"):
    path = folder / "fixtures" / "live" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def a_case(folder, data, body=AGENT + APPROVED, case="plain"):
    a_file(folder, data)
    return cases_in(a_root(folder, tried=scenario("tried", body)))[f"tried/{case}"]


def result_of(folder, data, body=AGENT + APPROVED):
    return ran(a_case(folder, data, body)).result


@promise("H6")
@pytest.mark.parametrize(
    "data",
    [
        samples.mcp(),
        samples.openai_chat(),
        samples.openai_responses(),
        samples.anthropic(),
        samples.agentdojo(),
        samples.inspect_log(),
        samples.inspect_archive(),
    ],
    ids=["mcp", "openai-chat", "openai-responses", "anthropic", "agentdojo", "inspect", "inspect-eval"],
)
def test_a_transcript_of_every_format_is_an_agent(tmp_path, data):
    result = result_of(tmp_path, data)
    assert (result.verdict, result.agent, result.calls) == (
        Verdict.PASSED,
        "transcript",
        (("lba", 1), ("synthetic-ui", 1)),
    )
    assert (result.scores.task_completion, result.scores.action_correctness) == (1.0, 1.0)


@promise("H6")
def test_the_proposals_bytes_are_the_transcripts_own(tmp_path):
    first, second = a_case(tmp_path, samples.openai_chat()).agent.shots
    assert first.raw == b'{"arguments":{ },"server":"lba","tool":"get_benchmark_series"}'
    assert b'{"targetId": "approve", "taskId": "t-1"}' in second.raw


@promise("H6")
def test_each_row_may_play_a_transcript_of_its_own(tmp_path):
    a_file(
        tmp_path, samples.inspect_log(samples.inspect_sample("a"), samples.inspect_sample("b", messages=[])), "l.json"
    )
    body = (
        "run: {seed: 7}\nagent: nop\ncases:\n  a: {agent: {transcript: l.json, sample: a}}\n"
        "  b: {agent: {transcript: l.json, sample: b}}\n"
    )
    root = a_root(tmp_path, tried=scenario("tried", body))
    assert [ran(each).result.proposed for each in discover(root)] == [2, 0]


@promise("H6")
def test_a_transcript_is_part_of_what_its_cases_were_made_from(tmp_path):
    one = a_case(tmp_path, calls(LOOK)).source
    assert a_case(tmp_path, calls(LOOK)).source == one
    assert a_case(tmp_path, calls(LOOK) + b"\n").source != one


@promise("H6", "H3")
@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("agent: {transcript: ../t.jsonl}\n", Reason.PATH_ESCAPE),
        ("agent: {transcript: /etc/passwd}\n", Reason.PATH_ESCAPE),
        ("agent: {transcript: link.jsonl}\n", Reason.PATH_ESCAPE),
        ("agent: {transcript: beside.jsonl}\n", Reason.UNREADABLE),
        ("agent: {transcript: folder}\n", Reason.UNREADABLE),
        ("agent: {transcript: out/t.jsonl}\n", Reason.PATH_ESCAPE),
        ("agent: {transcript: lost.jsonl}\n", Reason.UNREADABLE),
        ("agent: {transcript: big.jsonl}\n", Reason.TOO_LARGE),
        ("agent: {transcript: t.jsonl, sample: one}\n", Reason.UNKNOWN_REFERENCE),
        ("agent: {transcript: odd.jsonl}\n", Reason.WRONG_VALUE),
        ("agent: nop\ncases: {a: {agent: {transcript: lost.jsonl}}}\n", Reason.UNREADABLE),
    ],
)
def test_a_file_that_is_none_or_lies_elsewhere_is_refused(tmp_path, body, reason):
    here = a_file(tmp_path, calls(LOOK)).parent
    (here.parent / "t.jsonl").write_bytes(calls(LOOK))
    (here / "link.jsonl").symlink_to("/etc/passwd")
    (here / "beside.jsonl").symlink_to("t.jsonl")
    (here / "folder").mkdir()
    (here / "out").symlink_to(here.parent)
    (here / "odd.jsonl").write_bytes(b"{}")
    with (here / "big.jsonl").open("wb") as big:
        big.truncate(MAX_BYTES + 1)
    root = a_root(tmp_path, tried=scenario("tried", body))
    with pytest.raises(DocumentError) as caught:
        discover(root)
    assert caught.value.problems[0].reason is reason


@promise("H6")
def test_a_tool_that_two_servers_have_is_told_at_its_line(tmp_path):
    a_file(tmp_path, calls(("git__git_log", {}), ("git_log", {})))
    root = a_root(tmp_path, tried=scenario("tried", "agent: {transcript: t.jsonl}\n", policy="real-git"))
    with pytest.raises(DocumentError) as caught:
        discover(root)
    (problem,) = caught.value.problems
    assert (problem.reason, problem.file) == (Reason.DUPLICATE_TOOL, "fixtures/live/t.jsonl:2")


@promise("H7")
def test_a_refused_call_is_where_a_transcript_diverges_and_what_came_until_then_is_scored_apart(tmp_path):
    data = calls(LOOK, ("click_target", {"taskId": "t-2", "targetId": "approve"}), CHOICES[0])
    result = result_of(tmp_path, data)
    assert (result.verdict, result.diverged_at, result.refusals) == (Verdict.PASSED, 1, (("arguments_altered", 1),))
    # What came after is in the case's own score, and not in the prefix's.
    assert result.scores.task_completion == 1.0
    assert result.prefix == Prefix(
        proposed=2, admitted=1, sent=1, scores=Scores(action_correctness=0.0, task_completion=0.0)
    )


@promise("H7")
def test_an_answer_that_is_another_than_was_recorded_is_where_it_diverges(tmp_path):
    heard = ran(a_case(tmp_path, calls(LOOK), AGENT)).result
    assert (heard.diverged_at, heard.prefix) == (None, None)
    there, back = "client-to-server", "server-to-client"
    told = {"direction": back, "message": samples.result(0, "another series")}
    rows = [{"direction": there, "message": samples.call(0, *LOOK)}, told]
    result = result_of(tmp_path, samples.lines(*rows), AGENT)
    assert (result.diverged_at, result.prefix and result.prefix.proposed) == (0, 1)


RESULT = {"content": [{"type": "text", "text": "yes"}], "isError": False, "_meta": {"any": 1}}
SAME = Answer(result=result_digest({key: RESULT[key] for key in ("content", "isError")}))


@promise("H7")
@pytest.mark.parametrize(
    ("was", "word", "result", "parted"),
    [
        (Was(0), "admitted", RESULT, False),
        (Was(0), "expired", None, True),
        (Was(0), "failed", RESULT, True),
        (Was(0, answer=Answer(failed=True)), "failed", RESULT, False),
        (Was(0, answer=Answer(failed=True)), "admitted", RESULT, True),
        (Was(0, answer=Answer(failed=True)), "expired", None, True),
        (Was(0, answer=SAME), "admitted", RESULT, False),
        (Was(0, answer=SAME), "admitted", {"content": []}, True),
        (Was(0, answer=Answer(text=text_digest("yes"))), "admitted", RESULT, False),
        (Was(0, answer=Answer(text=text_digest("no"))), "admitted", RESULT, True),
        # Of several texts nobody knows how a client made one.
        (Was(0, answer=Answer(text=text_digest("no"))), "admitted", {"content": [{"text": "n"}, {"text": "o"}]}, False),
        (Was(0, answer=Answer()), "admitted", RESULT, False),
        (Was(0, "expired"), "expired", None, False),
        (Was(0, "expired"), "admitted", RESULT, True),
        (Was(0, "admitted", SAME), "admitted", RESULT, False),
        (Was(0, "admitted", SAME), "admitted", {"content": []}, True),
        (Was(0, "admitted", SAME), "failed", None, True),
        (Was(0, "malformed_call"), "malformed_call", None, False),
    ],
)
def test_what_an_agent_had_not_seen_is_another_word_or_another_answer(was, word, result, parted):
    assert parts(was, word, result) is parted


@promise("H7", "H18")
def test_where_a_transcript_diverged_is_in_every_report_and_in_the_journal(tmp_path):
    result = result_of(tmp_path, calls(LOOK, CHOICES[0], CHOICES[1]))
    run = RunResult(
        seed=0, durability="memory", cases=(result, evolve(result, id="x", diverged_at=None, prefix=None)), selected=2
    )
    first, second = record(run)["cases"]
    assert (first["diverged_at"], first["prefix"]["admitted"], first["prefix"]["scores"]["task_completion"]) == (
        2,
        2,
        1.0,
    )
    assert (second["diverged_at"], second["prefix"]) == (None, None)
    assert [line.split() for line in diverged_table(run).splitlines()][1:] == [["live/tried/plain", "2", "3", "2", "2"]]
    assert unpack(json.loads(pack(result))) == result


@promise("H7")
def test_a_scripted_turn_is_made_at_its_time(tmp_path):
    body = """\
run: {seed: 7}
agent:
  script:
    - {step: 1, at: 1.250s, admitted: true}
    - {step: 2, choose: approve, at: 119.999s, admitted: true}
    - {step: 2, choose: hold, refused: already_selected}
"""
    result = ran(cases_in(a_root(tmp_path, tried=scenario("tried", body)))["tried/plain"]).result
    assert result.verdict is Verdict.PASSED
    times = [each.at_ns for each in result.timeline if each.kind == "proposal"]
    assert [each - 1_000_000_000 for each in times] == [1_250_000_000, 119_999_000_000, 119_999_000_000]


@promise("H7", "L25")
def test_a_scripted_turn_that_comes_too_late_is_refused(tmp_path):
    body = "agent: {script: [{step: 1, at: 120s, refused: expired}]}\n"
    assert (
        ran(cases_in(a_root(tmp_path, tried=scenario("tried", body)))["tried/plain"]).result.verdict is Verdict.PASSED
    )


@promise("H3")
@pytest.mark.parametrize(
    ("turns", "reason"),
    [
        ("[{step: 1, at: 2s}, {step: 1, at: 1s}]", Reason.WRONG_VALUE),
        ("[{step: 1, at: soon}]", Reason.WRONG_VALUE),
        ("[{step: 1, at: 1.2345s}]", Reason.WRONG_VALUE),
        ("[{step: 1, at: 5}]", Reason.WRONG_VALUE),
    ],
)
def test_times_of_a_script_are_in_order_and_in_one_spelling(tmp_path, turns, reason):
    root = a_root(tmp_path, tried=scenario("tried", f"agent: {{script: {turns}}}\n"))
    with pytest.raises(DocumentError) as caught:
        discover(root)
    assert [each.reason for each in caught.value.problems] == [reason]
