"""A journal gives back what was written, and passes over a torn tail."""

from marks import promise
from suite_world import ROOT, ran

from assisted_benchmark.suite.journal import Journal, pack, read_journals
from assisted_benchmark.suite.plan import run_keys
from assisted_benchmark.suite.result import Miss, Verdict
from assisted_benchmark.suite.runner import discover
from assisted_benchmark.suite.storage import RunDirectory


@promise("H15")
def test_what_is_written_is_read_back_and_a_torn_tail_is_passed_over(tmp_path):
    cases = discover(ROOT)[::9]
    ended = [ran(case, expect_identical=True) for case in cases]
    ended.append(ended[0].missing(Miss(what="a", expected="b", actual="c")))
    journal = Journal(tmp_path / "journal-0.jsonl", run_keys(0))
    for each in ended:
        journal.write(each, pack(each.result))
    journal.close()
    with (tmp_path / "journal-0.jsonl").open("ab") as file:
        file.write(b'{"result"')
    assert list(read_journals(RunDirectory(tmp_path), run_keys(0))) == ended
    assert ended[-1].result.verdict is Verdict.FAILED
