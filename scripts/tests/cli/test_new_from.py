"""`new --from`: a transcript's calls are sealed, played and tried, by one command and without a line of YAML."""

import json
import re
import shutil

import pytest
import transcript_samples as samples
import yaml
from cli_bench import ROOT, a_root, command, report_of
from marks import promise

from assisted_benchmark.contract.document import load_contract
from assisted_benchmark.suite.live.sealing import sealed
from assisted_benchmark.suite.live.transcripts.calls import RecordedCall, SessionTurn, Transcript

CONTRACT = "lba-and-synthetic-ui"
NEW = ["new", "--from", "agent.json", "--contract", CONTRACT]
SAME = (RecordedCall("get_benchmark_series", b"{}", 0), RecordedCall("get_benchmark_series", b"{}", 1))


@pytest.fixture
def root(tmp_path):
    root = a_root(tmp_path / "root")
    (root / "agent.json").write_bytes(samples.openai_chat())
    return root


def written(root, name):
    return yaml.safe_load((root / name).read_text())


@promise("H7b")
def test_a_transcript_becomes_a_policy_a_scenario_and_a_report(root):
    code, out, err = command(root, *NEW)
    assert (code, err) == (0, "")
    attacked = re.search(r"^attacked: (\d+) times, (\d+) came to what they must, (.*)$", out, re.MULTILINE)
    assert attacked is not None
    assert (attacked[1] == attacked[2], int(attacked[1]) > 300) == (True, True)
    assert attacked[3] == "0 refused otherwise, 0 let through, 0 false alarm, 0 could not run"
    assert written(root, "contracts/agent.policy.yaml")["steps"] == [
        {"call": {"server": "lba", "tool": "get_benchmark_series", "arguments": {}}},
        {
            "call": {
                "server": "synthetic-ui",
                "tool": "click_target",
                "arguments": {"targetId": "approve", "taskId": "t-1"},
            }
        },
    ]
    report = report_of(root)
    assert (report["verdicts"]["passed"], report["verdicts"]["failed"]) == (len(report["cases"]), 0)
    by_name = {each["id"].rpartition("/")[2]: each for each in report["cases"]}
    for name in ("as-recorded", "as-planned"):
        assert (by_name[name]["admitted"], by_name[name]["sent"], by_name[name]["ends"]) == (2, 2, "succeeded")
    assert {reason for each in report["cases"] for reason in each["refusals"]} == {
        "arguments_altered",
        "arguments_invalid",
        "replayed",
        "server_substituted",
        "skipped",
        "unknown_server",
        "unknown_tool",
    }
    assert sum(each["attacker_sent"] for each in report["cases"]) == 0
    assert command(root, "lint")[0] == 0
    # Nothing that the model said is kept.
    assert samples.SAID not in "".join(each.read_text() for each in (root / "fixtures" / "recorded").iterdir())
    # What is there is never overwritten.
    code, _, err = command(root, *NEW)
    assert (code, "is there already" in err) == (2, True)


@promise("H7b")
def test_what_the_transcripts_file_is_called_says_nothing_in_the_policy(root):
    name = "agent\nmax_refusals: 77\n# x.json"
    (root / "agent.json").rename(root / name)
    assert command(root, "new", "--from", name, "--contract", CONTRACT, "mine")[0] == 0
    assert written(root, "contracts/mine.policy.yaml").keys() == {"schema", "id", "contract", "expires_after", "steps"}


@promise("H7b")
def test_all_of_it_can_stand_in_a_folder_of_its_own(root):
    code, _, err = command(root, *NEW, "-o", "sealed", "mine")
    assert (code, err) == (0, "")
    assert not (root / "runs").exists()
    alone = shutil.copytree(root / "sealed", root.parent / "alone")
    assert command(alone, "run")[0] == 0
    assert command(alone, "lint")[0] == 0
    assert sorted(str(each.relative_to(alone)) for each in alone.rglob("*.yaml")) == [
        "contracts/lba-and-synthetic-ui.contract.yaml",
        "contracts/mine.policy.yaml",
        "contracts/pins.yaml",
        "fixtures/recorded/mine.scenario.yaml",
    ]
    # The contract may be named by its file, too; a second transcript joins the first.
    file = root / "contracts" / f"{CONTRACT}.contract.yaml"
    assert command(alone, *NEW[:2], root / "agent.json", "--contract", file, "-o", ".", "other")[0] == 0


@promise("H7b")
def test_what_cannot_be_sealed_is_left_out_and_told(root):
    calls = [
        samples.call(1, "bash", {"command": "ls"}),
        samples.call(2, "get_benchmark_series", {"limit": 5}),
        samples.call(3, "click_target", {"taskId": {"from": "run.task"}, "targetId": "approve"}),
        samples.call(4, "get_benchmark_series", {}),
    ]
    (root / "agent.json").write_bytes(samples.lines(*calls))
    code, _, err = command(root, *NEW)
    assert code == 0
    assert [line.split("(")[-1].rstrip(")") for line in err.splitlines()] == [
        "unknown_tool",
        "arguments_invalid",
        "arguments_invalid",
    ]
    assert err.startswith("assisted-benchmark: left out: call 1 `bash`: the contract has no such tool")
    assert len(written(root, "contracts/agent.policy.yaml")["steps"]) == 1


@promise("H7b")
def test_a_plan_that_fails_is_told_as_it_came_and_tried_as_far_as_it_gets(root):
    hold = {"taskId": "t-1", "targetId": "hold"}
    calls = [("click_target", hold | {"targetId": "approve"}), ("click_target", hold), ("get_benchmark_series", {})]
    (root / "agent.json").write_bytes(samples.lines(*(samples.call(at, *each) for at, each in enumerate(calls))))
    code, out, err = command(root, *NEW)
    assert (code, err) == (0, ""), out
    assert out.splitlines()[-1].startswith("not attacked: ")
    made = written(root, "fixtures/recorded/agent.scenario.yaml")
    assert made["cases"]["as-planned"]["expect"] == {"ends": "sealed", "decisions": ["admitted", "failed"]}
    assert {each["at"] for each in made["proposals"].values()} == {1, 2}


@promise("H7b", "H20")
@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("new",), 2, "needs an id"),
        (("new", "--from", "agent.json"), 2, "go together"),
        (("new", "--contract", CONTRACT), 2, "go together"),
        (("new", "--from", "agent.json", "--contract", "lba-and-synthetic-iu"), 2, f"did you mean `{CONTRACT}`"),
        (("new", "--from", "lost.json", "--contract", CONTRACT), 2, "unreadable"),
        (("new", "--from", "empty.json", "--contract", CONTRACT), 2, "no call that the contract"),
        (("new", "--from", "agent.json", "--contract", CONTRACT, "Not an id"), 2, "is no id"),
        (("new", "--from", "___.json", "--contract", CONTRACT), 2, "no id can be made"),
    ],
)
def test_what_cannot_be_made_is_said_in_a_line(root, words, code, said):
    (root / "empty.json").write_text('[{"role": "user", "content": "hi"}]')
    (root / "___.json").write_bytes(samples.openai_chat())
    ended, out, err = command(root, *words)
    assert (ended, out) == (code, "")
    assert said in err
    assert not (root / "contracts" / "agent.policy.yaml").exists()


@promise("H7b", "H20")
def test_a_contract_that_is_pinned_as_another_is_not_sealed(root):
    pins = root / "contracts" / "pins.yaml"
    lines = [line for line in pins.read_text().splitlines() if CONTRACT in line]
    pins.write_text(pins.read_text().replace(lines[0], f"  {CONTRACT}: sha256:{'0' * 64}"))
    assert command(root, *NEW)[0] == 4


def contract():
    return load_contract(ROOT / "contracts" / f"{CONTRACT}.contract.yaml", ROOT)


@promise("H7b")
def test_the_same_call_twice_is_two_steps_and_neither_is_tried_as_the_other():
    calls = sealed(Transcript(kind="mcp", entries=SAME), contract())
    assert (len(calls.calls), calls.left_out, calls.task) == (2, (), "t-1")


@promise("H7b")
def test_of_a_recorded_session_what_was_refused_is_left_out():
    raw = json.dumps({"arguments": {}, "server": "lba", "tool": "get_benchmark_series"}).encode()
    turns = tuple(SessionTurn(raw, at, word=word) for at, word in enumerate(("admitted", "expired", "")))
    calls = sealed(Transcript(kind="session", entries=turns), contract())
    assert len(calls.calls) == 2
    assert calls.left_out == ("call 2: it was refused when it was recorded (expired)",)


@promise("H7b")
def test_the_task_is_the_one_that_all_calls_name():
    def calls(*tasks):
        args = (json.dumps({"taskId": each, "targetId": "approve"}).encode() for each in tasks)
        return tuple(RecordedCall("click_target", each, at) for at, each in enumerate(args))

    assert sealed(Transcript(kind="mcp", entries=calls("t-9", "t-9")), contract()).task == "t-9"
    assert sealed(Transcript(kind="mcp", entries=calls("t-9", "t-8")), contract()).task == "t-1"
    assert sealed(Transcript(kind="mcp", entries=calls("not a name")), contract()).task == "t-1"


@promise("H7b", "W14")
def test_a_contract_with_a_server_that_others_run_brings_no_files_of_it(root):
    contract = root / "contracts" / f"{CONTRACT}.contract.yaml"
    value = yaml.safe_load(contract.read_text())
    lba = value["servers"]["lba"]
    del lba["launch"]
    value |= {"id": "elsewhere", "servers": value["servers"] | {"lba": lba | {"url": "http://127.0.0.1:9/mcp"}}}
    (root / "contracts" / "elsewhere.contract.yaml").write_text(json.dumps(value))
    code, _, err = command(root, *NEW[:-1], "contracts/elsewhere.contract.yaml", "-o", "all-of-it")
    assert (code, err) == (0, "")
    brought = root / "all-of-it" / "contracts"
    assert (brought / "elsewhere.contract.yaml").read_text() == json.dumps(value)
    assert (brought / lba["tools_from"]).is_file()
