"""Servers pinned as a user pins them, in a root of the test's own, and cases made of them."""

from __future__ import annotations

import json
from pathlib import Path

from suite_world import ran

from assisted_benchmark.cli import drift, pin
from assisted_benchmark.cli.parser import parser
from assisted_benchmark.contract.contract_shape import FILL_IN
from assisted_benchmark.contract.document import load_contract
from assisted_benchmark.suite.lint import lint, write_pins
from assisted_benchmark.suite.runner import discover

SCENARIO = """\
schema: assisted-benchmark/scenario@1
id: {name}
policy: {name}
agent: plan
tags: [real]
expect: {{ends: succeeded, calls: {{{calls}}}}}
cases:
  again: {{agent: {{script: [{turns}]}}, expect: {{calls: {{{calls}}}}}}}
"""


def a_root(folder):
    """A root with nothing in it yet."""
    for name in ("contracts", "fixtures/live"):
        (folder / name).mkdir(parents=True)
    return folder


def pinned(root, name, words, *flags):
    """The exit code of `pin`."""
    argv = ["pin", name, "--root", str(root), "--yes", *map(str, flags), "--", *map(str, words)]
    return pin.command(parser().parse_args(argv))


def drifted(root, *contracts, capsys):
    """The exit code of `drift --json`, and its rows."""
    capsys.readouterr()
    code = drift.command(parser().parse_args(["drift", "--root", str(root), "--json", *map(str, contracts)]))
    return code, json.loads(capsys.readouterr().out)


def file_of(root, name) -> Path:
    return root / "contracts" / f"{name}.contract.yaml"


def fill_in(root, name, effect="observe"):
    """What a person does; how many places there were."""
    file = file_of(root, name)
    text = file.read_text()
    file.write_text(text.replace(FILL_IN, effect))
    return text.count(FILL_IN)


def the_server(root, name):
    """The pinned server."""
    (server,) = load_contract(file_of(root, name), root).servers
    return server


def the_cases(root, name, *steps):
    """A policy of these (tool, effect, arguments), and its cases: played in order, and each call made twice."""
    calls = [json.dumps({"server": name, "tool": tool, "arguments": arguments}) for tool, arguments in steps]
    policy = "\n".join(
        [
            "schema: assisted-benchmark/policy@1",
            f"id: {name}",
            f"contract: {name}.contract.yaml",
            "expires_after: 120s",
            "steps:",
            *(f"  - call: {call}" for call in calls),
        ]
    )
    (root / "contracts" / f"{name}.policy.yaml").write_text(policy + "\n")
    turns = []
    for step in range(1, len(steps) + 1):
        repeated = "replayed" if step < len(steps) else "already_selected"
        turns += [f"{{step: {step}, admitted: true}}", f"{{step: {step}, refused: {repeated}}}"]
    text = SCENARIO.format(name=name, calls=f"{name}: {len(steps)}", turns=", ".join(turns))
    (root / "fixtures" / "live" / f"{name}.scenario.yaml").write_text(text)
    write_pins(root)
    assert lint(root) == []
    return cases_of(root)


def cases_of(root):
    """The root's cases, those with real servers too, by what follows the folder."""
    return {case.id.split("/", 1)[1]: case for case in discover(root, real=True)}


def results(cases, name):
    """What each case of the name comes to."""
    return {key: ran(case).result for key, case in cases.items() if key.startswith(f"{name}/")}
