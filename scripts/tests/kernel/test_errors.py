"""The tree of exceptions: each carries a reason, says it readably and survives a trip between processes."""

from __future__ import annotations

import pickle

import pytest
from marks import promise

from assisted_benchmark.kernel import errors
from assisted_benchmark.kernel.errors import (
    CanonicalError,
    DocumentError,
    HarnessError,
    InputError,
    IntegrityError,
    Interrupted,
    LedgerError,
    MisuseError,
    Problem,
    ServerError,
)
from assisted_benchmark.kernel.reasons import Reason

FIRST = Problem(Reason.UNKNOWN_KEY, "unknown key `agnet`", "a.yaml", 3, 5, "did you mean `agent`?")
SECOND = Problem(Reason.MISSING_KEY, "the key `because` is missing")

EXAMPLES = [
    CanonicalError(Reason.TOO_DEEP, "nested too deep", 9),
    DocumentError([FIRST, SECOND]),
    MisuseError(Reason.MISUSE, "no such flag"),
    LedgerError(Reason.LEDGER_MISSING, "no ledger"),
    IntegrityError(Reason.CHAIN_BROKEN, "edited"),
    ServerError(Reason.LAUNCH_FAILED, "no such program"),
    Interrupted("a signal came"),
]


def test_a_message_is_the_detail_and_then_the_code():
    assert str(MisuseError(Reason.MISUSE, "no such flag")) == "no such flag (misuse)"


def test_a_problem_says_what_then_where_then_what_to_do():
    assert str(FIRST) == "unknown key `agnet` (unknown_key) at a.yaml:3:5; did you mean `agent`?"
    assert str(SECOND) == "the key `because` is missing (missing_key) at <input>"


def test_a_document_error_shows_every_problem_and_carries_the_first_reason():
    error = DocumentError([FIRST, SECOND])
    assert (error.reason, error.problems) == (Reason.UNKNOWN_KEY, (FIRST, SECOND))
    assert str(error) == f"{FIRST}\n{SECOND}"


def test_an_interruption_is_a_run_that_could_not_end():
    assert Interrupted("a signal came").reason is Reason.COULD_NOT_RUN


@promise("K6")
@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: type(error).__name__)
def test_an_error_keeps_its_reason_between_processes(error):
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), copy.reason, copy.detail) == (type(error), error.reason, error.detail)
    assert (str(copy), vars(copy)) == (str(error), vars(error))


def test_every_exception_is_in_the_tree_and_has_an_example():
    declared = {each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, Exception)}
    assert declared == {HarnessError, InputError} | {type(error) for error in EXAMPLES}
    assert all(issubclass(each, HarnessError) for each in declared)
    assert {each for each in declared if issubclass(each, InputError)} == {
        InputError,
        CanonicalError,
        DocumentError,
        MisuseError,
    }
