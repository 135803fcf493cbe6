"""Faults inside of functions: everything is imported and collected once, and each fault is made in a fork of that.

In the fork the module is compiled with the fault and the code of the one outermost function around it is exchanged in
every function object that has it, wherever it was bound or wrapped. Then the tests that reach the lines are run.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import shutil
import signal
from collections import defaultdict
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest

from mutating import child
from mutating.operators import Mutant

_Place = tuple[str, str, int]


class HotServer:
    """A plugin of pytest whose loop runs faults instead of tests."""

    def __init__(self, work: Path, package: Path, jobs: int) -> None:
        self._work = work
        self._package = package
        self._jobs = jobs
        self._items: dict[str, pytest.Item] = {}
        self._functions: dict[_Place, list[FunctionType]] = defaultdict(list)
        self._lately: dict[str, list[str]] = defaultdict(list)
        self._sound: dict[str, bool] = {}

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self._items = {item.nodeid: item for item in session.items}
        prefix = f"{self._package}/"
        for each in gc.get_objects():
            if type(each) is FunctionType and each.__code__.co_filename.startswith(prefix):
                self._functions[_place(each.__code__)].append(each)
        gc.collect()
        gc.freeze()
        orders = [json.loads(line) for line in (self._work / "hot.jsonl").read_text("utf-8").splitlines()]
        running: dict[int, dict[str, Any]] = {}
        read, write = os.pipe()
        os.set_blocking(read, False)
        said: dict[int, str] = {}
        with (self._work / "verdicts.jsonl").open("a", encoding="utf-8") as out:
            while orders or running:
                while orders and len(running) < self._jobs:
                    order = orders.pop(0)
                    first = [each for each in self._lately[order["mutant"]["file"]] if each in set(order["tests"])]
                    if "control" not in order:
                        tests = [*first, *(each for each in order["tests"] if each not in set(first))]
                        order["tests"] = [each for each in tests if self._sound.get(each, True)]
                    pid = os.fork()
                    if pid == 0:
                        self._child(session, order, write)
                    running[pid] = order
                pid, status = os.wait()
                order = running.pop(pid)
                try:
                    for line in os.read(read, 1 << 16).decode().splitlines():
                        who, _, test = line.partition(" ")
                        said[int(who)] = test
                except BlockingIOError:
                    pass
                verdict = end(pid, status, self._work)
                by = said.pop(pid, "")
                if order.get("control"):
                    # A test that fails here without any fault has noticed nothing.
                    self._sound[order["control"]] = verdict == "survived"
                    orders.insert(0, order["of"])
                    continue
                if by and by not in self._sound:
                    before = order["tests"][: order["tests"].index(by) + 1]
                    orders.insert(0, order | {"control": by, "of": order, "tests": before})
                    continue
                if by:
                    lately = self._lately[order["mutant"]["file"]]
                    self._lately[order["mutant"]["file"]] = [by, *(each for each in lately if each != by)][:12]
                out.write(json.dumps({"name": order["mutant"]["name"], "verdict": verdict, "by": by}) + "\n")
                out.flush()
        return True

    def _child(self, session: pytest.Session, order: dict[str, Any], out: int) -> None:
        """Never returns."""
        try:
            place = self._work / "tmp" / str(os.getpid())
            child.begin(place)
            # pytest has no public way to give each fault a folder of its own.
            session.config._tmp_path_factory._basetemp = place  # type: ignore[attr-defined]  # noqa: SLF001
            child.allow(5, 30)
            if "control" not in order and not self._applied(Mutant(**order["mutant"])):
                os._exit(child.STILLBORN)
            items = [self._items[each] for each in order["tests"] if each in self._items]
            for item, following in zip(items, [*items[1:], None], strict=True):
                cpu, wall = order["costs"][item.nodeid]
                child.allow(max(2, 10 * cpu), max(15, 30 * wall))
                if not child.passes(item, following):
                    os.write(out, f"{os.getpid()} {item.nodeid}\n".encode())
                    os._exit(child.KILLED)
            os._exit(child.SURVIVED)
        except BaseException:  # noqa: BLE001 - nothing may go on in the parent's place
            os._exit(child.STILLBORN)

    def _applied(self, mutant: Mutant) -> bool:
        path = self._package / mutant.file
        try:
            module = compile(mutant.applied(path.read_bytes()), str(path), "exec", dont_inherit=True)
        except SyntaxError:
            return False
        code = next((each for each in _codes(module) if _is_top(each, mutant)), None)
        if code is None:
            return False
        # What the function made before, a check or a handler that is kept somewhere, has code of its own within it.
        exchanged = [(each, new) for new in (code, *_codes(code)) for each in self._functions.get(_place(new), ())]
        if not exchanged or any(old.__code__.co_freevars != new.co_freevars for old, new in exchanged):
            return False
        for function, new in exchanged:
            function.__code__ = new
        return True


def end(pid: int, status: int, work: Path) -> str:
    """Clear away what a fault's process left, and say what it came to."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    shutil.rmtree(work / "tmp" / str(pid), ignore_errors=True)
    if os.WIFSIGNALED(status):
        return "timeout" if os.WTERMSIG(status) in (signal.SIGALRM, signal.SIGXCPU) else "killed"
    code = os.WEXITSTATUS(status)
    return {child.SURVIVED: "survived", child.STILLBORN: "stillborn"}.get(code, "killed")


def _is_top(code: CodeType, mutant: Mutant) -> bool:
    return code.co_firstlineno == mutant.top and code.co_qualname == mutant.top_name


def _place(code: CodeType) -> _Place:
    return code.co_filename, code.co_qualname, code.co_firstlineno


def _codes(code: CodeType) -> list[CodeType]:
    inner = [each for each in code.co_consts if isinstance(each, CodeType)]
    return [*inner, *(deeper for each in inner for deeper in _codes(each))]
