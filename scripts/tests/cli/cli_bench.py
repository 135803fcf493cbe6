"""A small root to run commands in: the real contracts, and only the fixtures that a test wants."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
SCRIPTS = ROOT / "scripts"

PASSING = """\
schema: assisted-benchmark/scenario@1
id: {id}
because: the plain road
policy: ui-decision
run: {{task: t-1, seed: 7}}
agent: {{plan: approve}}
"""
FAILING = PASSING + "expect: {{ends: failed}}\n"


def a_root(folder, **scenarios):
    """contracts/ and recorded servers as they are, and the given scenarios in fixtures/live."""
    shutil.copytree(ROOT / "contracts", folder / "contracts")
    for each in (ROOT / "fixtures").iterdir():
        if each.is_dir() and each.name not in ("live", "mutation", "capability", "recorded"):
            shutil.copytree(each, folder / "fixtures" / each.name)
    live = folder / "fixtures" / "live"
    live.mkdir(parents=True)
    for name, text in scenarios.items():
        (live / f"{name}.scenario.yaml").write_text(text.format(id=name))
    return folder


def command(root, *words, **environment):
    """Run the command as a user does: its exit code, standard output and standard error."""
    kept = {key: value for key, value in os.environ.items() if key.startswith("COVERAGE") or key == "PATH"}
    done = subprocess.run(
        [sys.executable, "-m", "assisted_benchmark", *map(str, words)],
        cwd=root,
        env=kept | {"PYTHONPATH": str(SCRIPTS), "HOME": str(root)} | environment,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=120,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, done.stdout, done.stderr


def report_of(root, number="0001"):
    return json.loads((root / "runs" / number / "report.json").read_text())
