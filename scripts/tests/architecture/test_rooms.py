"""The house keeps its own rules: one-way imports, short files, nothing of one machine in it."""

from __future__ import annotations

import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from importlinter.cli import lint_imports

import assisted_benchmark
import generated
from assisted_benchmark.kernel.reasons import Reason

ROOT = Path(__file__).parents[3]
PACKAGE = ROOT / "scripts" / "assisted_benchmark"


@cache
def tracked() -> tuple[Path, ...]:
    """Every file of the checkout that git knows or would take; in an export without git, every file."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        found = [path for path in ROOT.rglob("*") if not any(part.startswith(".v") for part in path.parts)]
    else:
        found = [ROOT / name for name in listed.stdout.split("\0") if name]
    return tuple(path for path in found if path.is_file())


def texts(*suffixes: str) -> dict[str, str]:
    """The text files of those suffixes (of any, if none is given), by their place."""
    chosen = [path for path in tracked() if not suffixes or path.suffix in suffixes]
    return {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in chosen}


def code() -> dict[str, str]:
    """The product's modules and the tools beside it."""
    return {name: text for name, text in texts(".py").items() if not name.startswith("scripts/tests/")}


def test_imports_run_one_way(monkeypatch):
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(sys, "path", [*sys.path])  # the linter adds to it
    assert lint_imports(no_cache=True) == 0


def test_no_file_of_code_is_longer_than_400_lines():
    assert {name: text.count("\n") for name, text in code().items() if text.count("\n") > 400} == {}


FOREIGN = {
    "a home folder": re.compile(r"/(?:home|Users|root)/\w"),
    "a folder of one machine": re.compile(r"/work/|(?<![\w/.{}-])/tmp/\w|/opt/\w"),
    "a folder of another project": re.compile(r"(?<![\w/-])shared/"),
    "a package registry": re.compile(r"pypi\.org|pythonhosted|registry\.npm|--(?:extra-)?index-url|find-links"),
    "a private key": re.compile(r"BEGIN [A-Z ]*PRIVATE KEY"),
}


@pytest.mark.parametrize("pattern", FOREIGN.values(), ids=FOREIGN.keys())
def test_nothing_of_one_machine_or_registry_is_in_the_checkout(pattern):
    found = {
        f"{name}:{number}": line.strip()[:120]
        for name, text in texts().items()
        if ROOT / name != Path(__file__)  # which has to spell them
        for number, line in enumerate(text.splitlines(), 1)
        if pattern.search(line)
    }
    assert found == {}


def test_every_yaml_file_of_ours_names_a_schema_that_is_there():
    wrong = {}
    for name, text in texts(".yaml").items():
        named = re.search(r"^# yaml-language-server: \$schema=(\S+)$", text, re.MULTILINE)
        if name.startswith(("contracts/", "fixtures/")) and not (
            named
            and ((ROOT / name).parent / named[1]).resolve().parent == ROOT / "schemas"
            and ((ROOT / name).parent / named[1]).is_file()
        ):
            wrong[name] = named and named[1]
    assert wrong == {}


def test_what_is_generated_is_what_the_code_says():
    assert [str(path.relative_to(ROOT)) for path in generated.stale()] == []


def test_a_promise_is_a_letter_and_a_number():
    odd = {}
    for name, text in texts(".py").items():
        for inside in re.findall(r"^\s*@promise\((.*)\)$|pytestmark = promise\((.*)\)", text, re.MULTILINE):
            marks = "".join(inside)
            if not re.fullmatch(r'"[LMCWHK]\d{1,2}[a-z]?"(, "[LMCWHK]\d{1,2}[a-z]?")*', marks):
                odd[name] = marks
    assert odd == {}


def test_test_files_have_names_of_their_own():
    names = [path.name for path in tracked() if path.match("scripts/tests/**/*.py") and path.name != "conftest.py"]
    assert sorted(names) == sorted(set(names))


def test_the_public_door_opens_on_every_name_that_it_declares_and_on_no_other():
    assert sorted(assisted_benchmark.__all__, key=lambda name: (name.islower(), name)) == assisted_benchmark.__all__
    for name in assisted_benchmark.__all__:
        assert getattr(assisted_benchmark, name).__name__ == name
    with pytest.raises(AttributeError):
        assisted_benchmark.no_such_name  # noqa: B018 - reading it is the test


def test_a_server_under_test_does_not_load_the_suite():
    program = "import sys, assisted_benchmark.workloads.synthetic_ui; print(*sys.modules)"
    command = [sys.executable, "-P", "-c", program]
    done = subprocess.run(command, env={"PYTHONPATH": str(PACKAGE.parent)}, capture_output=True, text=True)
    above = [name for name in done.stdout.split() if re.match(r"assisted_benchmark\.(suite|report|cli)", name)]
    assert (done.returncode, above) == (0, [])


def test_every_reason_is_provoked_by_some_test_or_fixture():
    words = "\n".join(
        text
        for name, text in texts(".py", ".yaml").items()
        if name.startswith(("scripts/tests/", "fixtures/")) and not name.endswith("test_reasons.py")
    )
    never = [
        reason.value for reason in Reason if not re.search(rf"\bReason\.{reason.name}\b|\b{reason.value}\b", words)
    ]
    assert never == []
