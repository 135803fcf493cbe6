"""Small roots for suite tests: the repository's contracts and policies, and the scenarios that a test writes."""

import shutil
from pathlib import Path

from assisted_benchmark.suite.bench import Bench
from assisted_benchmark.suite.plan import RunPlan
from assisted_benchmark.suite.runner import discover

ROOT = Path(__file__).resolve().parents[2]

LEAST = """\
schema: assisted-benchmark/scenario@1
id: least
policy: ui-decision
agent: {plan: approve}
"""


def a_root(folder, /, **files):
    """A root with the real contracts and the scenarios given by id (or whole file names, `__` for a dot)."""
    for name in ("contracts", "fixtures/lba", "fixtures/git", "fixtures/time"):
        shutil.copytree(ROOT / name, folder / name, dirs_exist_ok=True)
    for name, text in files.items():
        add(folder, name, text)
    return folder


def add(root, name, text):
    """One more scenario (or, with its suffix, another file) below fixtures/live."""
    path = root / "fixtures" / "live" / (name if name.endswith(".yaml") else f"{name}.scenario.yaml")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def scenario(name, body, *, policy="ui-decision"):
    """The text of a scenario."""
    return f"schema: assisted-benchmark/scenario@1\nid: {name}\npolicy: {policy}\n{body}"


def cases_in(root):
    """The root's cases by what follows the file's id."""
    return {case.id.split("/", 1)[1]: case for case in discover(root)}


def ran(case, **plan):
    """What the case comes to, on a fresh ledger in memory."""
    bench = Bench(RunPlan(**{"durability": "memory", **plan}))
    try:
        return bench.run(case)
    finally:
        bench.close()


def result_of(folder, body, *, policy="ui-decision", case="plain", **plan):
    """The result of one case of a scenario with this body."""
    root = a_root(folder, tried=scenario("tried", body, policy=policy))
    return ran(cases_in(root)[f"tried/{case}"], **plan).result
