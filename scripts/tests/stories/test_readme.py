"""The README's commands work as written, in their order; what it shows is what comes; the tests that it names exist."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
README = (ROOT / "README.md").read_text(encoding="utf-8")

# The launchers, without the set-up that they do first; they have tests of their own.
PROGRAM = [sys.executable, "-P", "-m", "assisted_benchmark"]
MADE = (
    "fixtures/live/my-first.scenario.yaml",
    "fixtures/mutation/my-change.scenario.yaml",
    "fixtures/capability/my-operation.scenario.yaml",
)
LAUNCHERS = {"scripts/assisted-benchmark": PROGRAM, "scripts/bench": [*PROGRAM, "run"]}


def blocks(language: str, text: str = README) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def commands() -> list[list[str]]:
    """Every command of the README in its order; the tests themselves are not run from within the tests."""
    lines = [shlex.split(line) for block in blocks("sh") for line in block.splitlines()]
    return [words for words in lines if words[0] != "scripts/test"]


@pytest.fixture
def checkout(tmp_path):
    for folder in ("contracts", "fixtures", "schemas"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    return tmp_path


def test_the_commands_of_the_readme_succeed_one_after_the_other(checkout):
    environment = {"PYTHONPATH": str(ROOT / "scripts"), "PATH": "/usr/bin:/bin"}
    for launcher, *arguments in commands():
        command = [*LAUNCHERS[launcher], *arguments]
        done = subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True)
        # What takes long says every now and then how far it is.
        said = re.sub(r"^\d+/\d+ cases, 0 not passed, \d+/s\n", "", done.stderr, flags=re.MULTILINE)
        assert (done.returncode, said) == (0, ""), (launcher, arguments, done.stdout)
    made = [(checkout / name).read_text(encoding="utf-8") for name in MADE]
    assert made == blocks("yaml")


def test_the_two_commands_come_first_and_may_be_run():
    assert blocks("sh")[0].split() == ["scripts/bench", "scripts/test"]
    assert all((ROOT / words[0]).stat().st_mode & 0o111 for words in [*commands(), ["scripts/test"]])


def test_every_file_that_a_document_names_is_there():
    for document in ("README.md", "CONTRIBUTING.md", "docs/architecture.md"):
        text = (ROOT / document).read_text(encoding="utf-8")
        named = set(re.findall(r"`((?:scripts|docs|contracts|fixtures|schemas|\.ci)/[\w./-]*)`", text))
        missing = {name for name in named if not (ROOT / name).exists()}
        assert (document, missing - {*MADE}) == (document, set())


def test_the_readme_says_what_is_not_guaranteed():
    part = README.partition("## What is not\n")[2].partition("\n## ")[0]
    assert re.findall(r"^- \*\*(.+?)\.\*\*", part, re.MULTILINE) == [
        "No isolation",
        "No live VM",
        "No model",
        "No attestation",
        "Nothing against a change that is not anchored yet",
    ]
    assert "`isolation: none`" in part


def test_the_exit_codes_of_the_readme_are_those_of_the_command_line():
    from assisted_benchmark.cli import exits

    said = {int(code) for code in re.findall(r"`(\d+)`", README.partition("## Exit codes")[2].partition(" Where ")[0])}
    assert said == {value for name, value in vars(exits).items() if name.isupper() and isinstance(value, int)}
