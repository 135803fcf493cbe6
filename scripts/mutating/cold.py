"""Faults in what is run at import, and in what only other processes run: written into a copy, everything imported anew.

The server has imported what the package and the tests need from elsewhere, and nothing of them.
"""

from __future__ import annotations

import importlib
import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from mutating import child
from mutating.hot import end
from mutating.operators import Mutant
from mutating.tree import PACKAGE

_ELSEWHERE = ("hypothesis", "attrs", "orjson", "rfc8785", "yaml", "apsw", "jsonschema_rs", "asyncio", "http.client")


class FirstFailure:
    """A plugin of pytest that remembers the test that noticed."""

    def __init__(self) -> None:
        self.test = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self.test:
            self.test = report.nodeid


def serve(work: Path, jobs: int) -> None:
    """Run every order of `cold.jsonl`, each in a copy of the tree that no other has at that time."""
    for name in _ELSEWHERE:
        try:
            importlib.import_module(name)
        except ImportError:
            continue
    trees = [work / f"tree-{number}" for number in range(jobs)]
    for tree in trees:
        shutil.rmtree(tree, ignore_errors=True)
        shutil.copytree(work / "tree", tree, symlinks=True)
    orders = [json.loads(line) for line in (work / "cold.jsonl").read_text("utf-8").splitlines()]
    running: dict[int, tuple[dict[str, Any], Path]] = {}
    sound: dict[str, bool] = {}
    with (work / "verdicts.jsonl").open("a", encoding="utf-8") as out:
        while orders or running:
            while orders and trees:
                order, tree = orders.pop(0), trees.pop()
                order["tests"] = [each for each in order["tests"] if sound.get(each, True)]
                if "control" not in order:
                    _make(Mutant(**order["mutant"]), work / "tree", tree)
                pid = os.fork()
                if pid == 0:
                    _child(work, order, tree)
                running[pid] = order, tree
            pid, status = os.wait()
            order, tree = running.pop(pid)
            verdict = end(pid, status, work)
            said = work / f"said-{pid}"
            by = said.read_text("utf-8") if said.exists() else ""
            said.unlink(missing_ok=True)
            file = f"{PACKAGE}/{order['mutant']['file']}"
            shutil.copy2(work / "tree" / file, tree / file)
            trees.append(tree)
            if "control" in order:
                sound[order["control"]] = verdict == "survived"
                orders.insert(0, order["of"])
                continue
            if verdict == "killed" and by not in sound:
                # What fails without any fault has noticed nothing. Where nothing can be imported no test is named.
                tests = [by] if by in order["costs"] else order["tests"]
                orders.insert(0, order | {"control": by, "of": order, "tests": tests})
                continue
            if verdict == "killed" and not sound[by] and by not in order["costs"]:
                raise SystemExit(f"without any fault pytest ends with {by} on {order['tests'][:3]} ...")
            if verdict == "survived" and order.get("more"):
                orders.insert(0, order | {"tests": order["more"], "more": []})
                continue
            out.write(json.dumps({"name": order["mutant"]["name"], "verdict": verdict, "by": by}) + "\n")
            out.flush()


def _make(mutant: Mutant, whole: Path, tree: Path) -> None:
    path = tree / PACKAGE / mutant.file
    path.write_bytes(mutant.applied((whole / PACKAGE / mutant.file).read_bytes()))
    # Python takes what it compiled before for the same, if size and second are.
    for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
        compiled.unlink()


def _child(work: Path, order: dict[str, Any], tree: Path) -> None:
    """Never returns."""
    try:
        place = work / "tmp" / str(os.getpid())
        child.begin(place)
        os.chdir(tree)
        sys.dont_write_bytecode = True
        os.environ |= {"PYTHONPATH": str(tree / "scripts"), "PYTHONDONTWRITEBYTECODE": "1"}
        sys.path[:] = [str(tree / "scripts"), *(each for each in sys.path if not each.startswith(str(work)))]
        costs = order["costs"].values()
        child.allow(30 + 10 * sum(cpu for cpu, _ in costs), 120 + 10 * sum(wall for _, wall in costs))
        first = FirstFailure()
        code = pytest.main(
            [*order["tests"], "-x", "-q", "--tb=no", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:cov",
             "-W", "ignore::pytest.PytestAssertRewriteWarning", f"--basetemp={place}/t"], plugins=[first],
        )  # fmt: skip
        (work / f"said-{os.getpid()}").write_text(first.test or str(code), encoding="utf-8")
        os._exit(child.SURVIVED if code == 0 else child.KILLED)
    except BaseException:  # noqa: BLE001 - nothing may go on in the parent's place
        os._exit(child.KILLED)
