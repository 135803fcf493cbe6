"""A researcher drops in a file, sees what it comes to, finds out why, and mends it: no Python, no network."""

import pytest
from marks import promise
from suite_world import a_root, add

from assisted_benchmark.kernel.errors import DocumentError
from assisted_benchmark.suite.lint import lint
from assisted_benchmark.suite.result import Verdict
from assisted_benchmark.suite.runner import (
    RunPlan,
    discover,
    explain,
    failed_in,
    new_run_directory,
    run,
    scaffold,
    select,
    verify_run,
)


@promise("H1", "H15")
def test_from_an_empty_folder_to_a_scored_case_and_a_verified_run(tmp_path):
    root = a_root(tmp_path)
    path = add(root, "mine", scaffold(root, "mine", policy="ui-reading", candidate="hold").text)

    # A typing error is shown with its place and what was meant.
    path.write_text(path.read_text().replace("expect:", "expects:"))
    (problem,) = lint(root)
    assert (problem.file, problem.line, problem.hint) == (
        "fixtures/live/mine.scenario.yaml",
        7,
        "did you mean `expect`?",
    )
    with pytest.raises(DocumentError) as caught:
        discover(root)
    assert caught.value.problems == (problem,)
    text = path.read_text().replace("expects:", "expect:")
    path.write_text(text.replace("succeeded}", "succeeded, oracle: approved}"))

    # It runs, and fails for what was expected of it.
    first = new_run_directory(root)
    result = run(discover(root), RunPlan(seed=7, directory=first))
    assert [(case.id, case.verdict) for case in result.cases] == [
        ("live/mine/plain", Verdict.FAILED),
        ("live/mine/extra-argument", Verdict.PASSED),
    ]
    (miss,) = result.cases[0].misses
    assert (miss.what, miss.expected, miss.actual) == ("oracle", "approved", "held")
    assert verify_run(first) == ()

    # Why was the other one refused?
    (failed,) = select(discover(root), ids=failed_in(first))
    refused = explain(select(discover(root), k="extra-argument")[0]).proposals[-1]
    assert (refused.word, refused.told) == ("arguments_invalid", "not_authorised")
    assert refused.diff == ("/unexpected is extra",)

    # Mended, only what failed is run again.
    path.write_text(path.read_text().replace("oracle: approved", "oracle: held"))
    second = new_run_directory(root)
    again = run(select(discover(root), ids={failed.id}), RunPlan(seed=7, directory=second))
    assert [(case.verdict, case.scores.state_grounding) for case in again.cases] == [(Verdict.PASSED, 1.0)]
    assert (failed_in(second), verify_run(second)) == (frozenset(), ())
