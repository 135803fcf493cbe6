"""Tries the tests that `fixtures/guards.yaml` names: each has to pass, and to fail without its guard.

Guards are taken away in a process of its own:

python scripts/tests/lacking_tests.py [GUARD…]
"""

import contextlib
import io
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "scripts" / "tests")]


def main(chosen):
    """Say a line for each test that does not do what is said of it."""
    from assisted_benchmark.suite.matrix.explained import explained_in
    from assisted_benchmark.suite.matrix.judging import BROKERS, guards_of
    from assisted_benchmark.suite.matrix.lacking import lacking

    guards = {guard.name: guard for broker in BROKERS for guard in guards_of(broker)}
    named = [each for each in explained_in(ROOT) if each.test and (not chosen or each.guard in chosen)]
    tests = sorted({each.test for each in named})
    wrong = [] if not tests or ran(*tests) == 0 else [f"not all of them pass: {tests}"]
    for each in named:
        with lacking(guards[each.guard]):
            if ran("-x", each.test) != 1:
                wrong.append(f"{each.guard}: {each.test} does not fail without it")
    sys.stdout.write("".join(f"{each}\n" for each in wrong))
    return int(bool(wrong))


def ran(*arguments):
    told = io.StringIO()
    with contextlib.redirect_stdout(told), contextlib.redirect_stderr(told):
        quiet = (
            "-q",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:xdist",
            "-p",
            "no:cov",
            "-W",
            "ignore",
            "--tb=no",
            "--rootdir",
            str(ROOT),
        )
        return pytest.main([*quiet, *(f"{ROOT}/{each}" if "::" in each else each for each in arguments)])


if __name__ == "__main__":
    sys.exit(main(set(sys.argv[1:])))
