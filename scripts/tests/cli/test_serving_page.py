"""The page on serving says what the command has, and what an acceptance does not prove."""

import re

from cli_bench import ROOT
from marks import promise

from assisted_benchmark.cli.parser import parser
from assisted_benchmark.cli.serve_changes import BEARER
from assisted_benchmark.mutation.broker import ALLOW_UNCONFIRMED

PAGE = (ROOT / "docs" / "serving.md").read_text(encoding="utf-8")


def test_the_page_explains_every_flag_and_no_other():
    (verbs,) = (action.choices for action in parser()._actions if action.dest == "verb")
    flags = {option for action in verbs["serve"]._actions for option in action.option_strings} - {"-h", "--help"}
    assert set(re.findall(r"^\| `(--[a-z-]+)", PAGE, re.MULTILINE)) == flags
    assert {BEARER, f"{ALLOW_UNCONFIRMED}=true"} <= set(re.findall(r"`([A-Z_]+(?:=true)?)`", PAGE))


@promise("M19")
def test_the_page_says_that_an_acceptance_proves_no_reading():
    assert "An acceptance proves that the client said so, not that a person read the question." in PAGE
