"""What must not get about: tokens, the endpoint's bearer, sensitive values, and what only the oracle knows."""

import orjson
import pytest
from marks import promise
from suite_world import ROOT, a_root, add

from assisted_benchmark.report.junit import junit
from assisted_benchmark.report.record import record_bytes
from assisted_benchmark.suite.bench import Bench
from assisted_benchmark.suite.plan import RunPlan
from assisted_benchmark.suite.runner import discover, explain, run, select, verify_run
from assisted_benchmark.workloads.fabric_api import bearer_of

SECRET = "key-of-the-account-4711"
SCENARIO = f"""\
schema: assisted-benchmark/mutation-scenario@1
id: secrets
changes: fabric
agent:
  script:
    - propose: connection
      change: {{/zSide/accessPoint/authenticationKey: {SECRET}}}
      admitted: true
    - {{confirm: last, human: decline, refused: declined}}
    - {{confirm: again, refused: replayed}}
    - propose: connection
      change: {{/zSide/accessPoint/authenticationKey: {SECRET}}}
      admitted: true
    - {{confirm: last, admitted: true}}
    - propose: connection
      change: {{/zSide/accessPoint/authenticationKey: {SECRET}}}
      refused: dry_run_failed
    - propose_raw: '{{"change_type":"connection","spec":{{"authenticationKey":"{SECRET}"}}}}'
      refused: arguments_invalid
"""


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """A run's case with secrets in it: the tokens, and every text that a run leaves or prints, by name."""
    root = a_root(tmp_path_factory.mktemp("root"))
    add(root, "secrets", SCENARIO)
    (case,) = discover(root)
    bench = Bench(RunPlan(durability="memory", seed=5))
    bench.run(case)
    stage = bench._stages["mutation"][0]
    tokens = [came.token for _, came in stage._last[1] if hasattr(came, "validated")]
    bench.close()
    directory = root / "run"
    result = run([case], RunPlan(seed=5, directory=directory))
    texts = {path.name: path.read_bytes() for path in directory.glob("*.json*")}
    texts |= {"report": record_bytes(result), "junit": junit(result), "explained": repr(explain(case, 5)).encode()}
    assert result.cases[0].misses == ()
    assert verify_run(directory) == ()
    return tokens, texts


def test_no_token_is_in_anything_that_a_run_leaves_or_prints(played):
    tokens, texts = played
    assert len(tokens) == 2
    assert [name for name, text in texts.items() for token in tokens if token.encode() in text] == []
    assert [name for name, text in texts.items() if b"chg-" in text] == []


def test_no_sensitive_value_and_no_bearer_is_in_anything_that_a_run_leaves_or_prints(played):
    _, texts = played
    for secret in (SECRET, bearer_of(0)):
        assert [name for name, text in texts.items() if secret.encode() in text] == []


@promise("H7a")
def test_what_only_the_oracle_knows_is_in_no_receipt(played):
    _, texts = played
    created = [
        event["text"]
        for case in orjson.loads(texts["report"])["cases"]
        for event in case["timeline"]
        if event["kind"] == "oracle"
    ]
    (uuid,) = [text.split()[-1] for text in created]
    assert len(uuid) == 36
    assert uuid.encode() not in texts["receipts.jsonl"]


@promise("H19")
def test_receipts_of_changes_are_verified_under_their_own_table(tmp_path):
    cases = select(discover(ROOT), ids={"mutation/accepted/network-handshake", "live/approve-once/plain"})
    run(cases, RunPlan(directory=tmp_path / "run"))
    assert verify_run(tmp_path / "run") == ()
    receipts = tmp_path / "run/receipts.jsonl"
    text = receipts.read_bytes()
    receipts.write_bytes(text.replace(b'"admitted"', b'"declined"', 1))
    assert {problem.reason.value for problem in verify_run(tmp_path / "run")} == {"chain_broken"}
    # Without a middle line the chain does not hold, whichever broker's it is.
    lines = text.splitlines(keepends=True)
    receipts.write_bytes(b"".join(lines[:-2] + lines[-1:]))
    assert {problem.reason.value for problem in verify_run(tmp_path / "run")} & {"chain_broken", "chain_truncated"}


@promise("H15", "H19")
def test_a_run_of_cases_of_both_brokers_is_gone_on_with_and_ends_as_one_that_was_never_interrupted(tmp_path):
    names = {"live/approve-once/plain", "mutation/accepted/network-handshake", "mutation/crash/and-then-again"}
    cases = select(discover(ROOT), ids={*names, "live/order/plain"})

    def stop(_):
        raise KeyboardInterrupt

    broken, whole = RunPlan(directory=tmp_path / "broken"), RunPlan(directory=tmp_path / "whole")
    first = run(cases, broken, on_case=stop)
    assert (first.interrupted, len(first.cases)) == (True, 1)
    again, once = run(cases, broken), run(cases, whole)
    assert (again.cases, again.interrupted) == (once.cases, False)
    for name in ("receipts.jsonl", "heads.json"):
        assert (broken.directory / name).read_bytes() == (whole.directory / name).read_bytes()
    assert verify_run(broken.directory) == ()
