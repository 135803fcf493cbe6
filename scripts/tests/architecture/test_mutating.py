"""Mutation testing is itself tested: a fault that a test notices, one that none does, and a list that goes stale."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from marks import promise

from mutating.known import read_known, stale
from mutating.operators import mutants_of

SCRIPTS = Path(__file__).parents[2]
SMALL = b'''"""A module."""

LIMIT = 3


def within(number: int, kinds: set[type]) -> bool:
    """Whether it is."""
    if type(number) not in kinds:
        raise ValueError("no number of these kinds")
    return number < LIMIT
'''
CONFIG = '[tool.pytest.ini_options]\npythonpath = ["scripts"]\nfilterwarnings = ["error"]\n'
# Says nothing of the bound itself.
TEST = """
import pytest
from assisted_benchmark.kernel.small import within

def test_a_small_number_is_within():
    assert within(2, {int})

def test_a_large_number_is_not():
    assert not within(9, {int})

def test_another_kind_is_refused():
    with pytest.raises(ValueError):
        within("2", {int})
"""
BOUND = ["kernel/small.py:: `3` -> `4`", "kernel/small.py::within `number < LIMIT` -> `number <= LIMIT`"]


def names(source: bytes) -> list[str]:
    return [each.name.partition("::")[2] for each in mutants_of("f.py", source)]


def mutants(root: Path, work: Path) -> tuple[int, list[str]]:
    """What the command says of the small project: its exit code and its lines."""
    words = ["kernel", "--list", "--root", str(root), "--work", str(work), "--jobs", "1"]
    ran = subprocess.run(
        [sys.executable, "-m", "mutating", *words],
        env=os.environ | {"PYTHONPATH": str(SCRIPTS)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert {line.split()[0] for line in ran.stderr.splitlines()} <= {"recording", "making"}
    return ran.returncode, ran.stdout.splitlines()


@promise("K19")
def test_a_fault_that_no_test_notices_fails_until_it_is_killed_or_explained(tmp_path):
    root = tmp_path / "root"
    for name, text in {
        "pyproject.toml": CONFIG,
        "scripts/assisted_benchmark/__init__.py": "",
        "scripts/assisted_benchmark/kernel/__init__.py": "",
        "scripts/assisted_benchmark/kernel/small.py": SMALL.decode(),
        "scripts/tests/kernel/test_small.py": TEST,
        "scripts/mutating/survivors.yaml": "",
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    code, said = mutants(root, tmp_path / "work")
    assert code == 1
    assert said[1].split() == ["kernel", "6", "4", "0", "0", "2", "66.7%"]
    assert said[2:4] == BOUND
    (root / "scripts/tests/kernel/test_small.py").write_text(TEST.replace("within(9,", "within(3,"))
    stale_list = f"- because: the bound is nobody's\n  mutants:\n  - '{BOUND[0]}'\n"
    (root / "scripts/mutating/survivors.yaml").write_text(stale_list)
    code, said = mutants(root, tmp_path / "work")
    assert code == 1
    assert said[1].split() == ["kernel", "6", "6", "0", "0", "0", "100.0%"]
    assert said[2] == f"stale in scripts/mutating/survivors.yaml: {BOUND[0]}  (is noticed)"
    assert (root / "scripts/assisted_benchmark/kernel/small.py").read_bytes() == SMALL


def test_faults_are_named_by_what_changes_and_never_by_their_line():
    assert names(b"def f(a, b):\n    return a < b and a\n") == names(b"\n\n\ndef f(a, b):\n    return a < b and a\n")
    assert names(b"def f(a, b):\n    return a < b and a\n") == [
        "f `a < b and a` -> `a`",
        "f `a < b and a` -> `a < b`",
        "f `a < b` -> `a <= b`",
        "f `return a < b and a` -> `return None`",
    ]


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(b"def f(x: 'int' = None) -> int: ...\n", id="types"),
        pytest.param(b"__all__ = ['a']\n", id="a list of names"),
        pytest.param(b"def f(x):\n    'says so'\n    assert x\n", id="what is said"),
        pytest.param(b"Json: TypeAlias = str | int\n", id="a union of types"),
        pytest.param(b"class A:\n    def __repr__(self):\n        return 'a' + 'b'\n", id="a form for people"),
    ],
)
def test_what_no_test_could_notice_is_no_fault(source):
    assert names(source) == []


def test_a_fault_leaves_every_other_line_where_it_was():
    source = b"def f(a):\n    g(\n        a,\n        1,\n    )\n    return [a,\n            a]\n"
    for each in mutants_of("f.py", source):
        changed = each.applied(source)
        compile(changed, "f.py", "exec")
        assert changed.count(b"\n") == source.count(b"\n")


def test_the_list_of_explained_faults_gives_a_reason_for_each_and_names_none_twice(tmp_path):
    path = tmp_path / "list.yaml"
    path.write_text("- because: it is\n  mutants: [a/x, a/y]\n")
    assert read_known(path) == {"a/x": "it is", "a/y": "it is"}
    for wrong in ("- because: ' '\n  mutants: [a]\n", "- mutants: [a]\n", "- because: b\n  mutants: [a, a]\n"):
        path.write_text(wrong)
        with pytest.raises(ValueError, match=r"names a fault twice|is not `because` and `mutants`"):
            read_known(path)
    assert stale(["a/x", "a/y", "b/z"], {"a/x"}, {"a/x"}, ("a",)) == [
        "a/x  (is noticed)",
        "a/y  (is no fault of the code as it is)",
    ]


def test_the_list_of_the_checkout_names_only_faults_of_the_code_as_it_is():
    package = SCRIPTS / "assisted_benchmark"
    known = read_known(SCRIPTS / "mutating" / "survivors.yaml")
    files = {name.partition("::")[0] for name in known}
    existing = {each.name for file in files for each in mutants_of(file, (package / file).read_bytes())}
    assert set(known) - existing == set()
