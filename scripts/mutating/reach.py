"""Which test reaches which lines, how long it takes, and whether it starts a process: one run of the tests."""

from __future__ import annotations

import json
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any, Final

import coverage
import pytest
from attrs import define, frozen

SLOW: Final = 0.5
# Of processor time, while it is watched: a test that takes longer is given up, and no fault is shown to it.
_MOST: Final = 4.0


@frozen
class Test:
    """A test that passes without any fault."""

    id: str
    cpu: float
    wall: float
    starts: bool

    @property
    def slow(self) -> bool:
        """Whether it is run only where no other test helps."""
        return self.starts or self.cpu > SLOW or self.wall > 4 * SLOW

    @property
    def file(self) -> str:
        """The file that it is in."""
        return self.id.partition("::")[0]


@define
class Reach:
    """All that is known of the tests: `lines` by file of the package and line; `imported` ran without any test."""

    tests: list[Test]
    lines: dict[str, dict[int, list[int]]]
    imported: dict[str, set[int]]

    @classmethod
    def read(cls, paths: list[Path]) -> Reach:
        """Put together what each file of tests was seen to reach."""
        whole = cls([], {}, {})
        for path in paths:
            record = json.loads(path.read_bytes())
            base = len(whole.tests)
            whole.tests += [Test(*each) for each in record["tests"]]
            for file, lines in record["lines"].items():
                here = whole.lines.setdefault(file, {})
                for line, tests in lines.items():
                    here.setdefault(int(line), []).extend(base + each for each in tests)
            for file, numbers in record["imported"].items():
                whole.imported.setdefault(file, set()).update(numbers)
        return whole


class Recorder:
    """A plugin of pytest that writes one record for each file of tests."""

    def __init__(self, package: Path, rooms: list[str], records: dict[str, str]) -> None:
        self._package = package
        self._records = records
        self._include = [f"{package / room}/*" for room in rooms]
        self._coverage = self._watching()
        self._starts = False
        self._left: dict[str, set[str]] = {}
        self._bad: set[str] = set()
        self._seen: dict[str, tuple[float, float, bool]] = {}
        sys.addaudithook(self._heard)
        signal.signal(signal.SIGVTALRM, _given_up)

    def _watching(self) -> coverage.Coverage:
        watching = coverage.Coverage(data_file=None, config_file=False, branch=False, include=self._include)
        watching._warn_no_data = False  # noqa: SLF001 - some files of tests reach nothing here
        watching.start()
        return watching

    def _heard(self, event: str, _: Any) -> None:
        if event in ("subprocess.Popen", "os.posix_spawn", "os.fork", "os.exec"):
            self._starts = True

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self._coverage.switch_context(item.nodeid)
        self._starts = False
        cpu, wall = time.process_time(), time.monotonic()
        signal.setitimer(signal.ITIMER_VIRTUAL, _MOST)
        try:
            return (yield)
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            self._seen[item.nodeid] = time.process_time() - cpu, time.monotonic() - wall, self._starts
            self._coverage.switch_context("")
            file = item.nodeid.partition("::")[0]
            self._left[file].discard(item.nodeid)
            if not self._left[file]:
                self._write(file)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.outcome != "passed":
            self._bad.add(report.nodeid)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        for name in self._records:
            self._left[name] = {item.nodeid for item in session.items if item.nodeid.partition("::")[0] == name}
            if not self._left[name]:
                self._write(name)

    def _write(self, name: str) -> None:
        """What a file of tests reached, as soon as its last test has ended."""
        index: dict[str, int] = {}
        record: dict[str, Any] = {"tests": [], "lines": {}, "imported": {}}
        for test, seen in self._seen.items():
            if test not in self._bad:
                index[test] = len(record["tests"])
                record["tests"].append([test, *seen])
        self._seen.clear()
        self._coverage.stop()
        data = self._coverage.get_data()
        for path in data.measured_files():
            file = str(Path(path).relative_to(self._package))
            for line, tests in data.contexts_by_lineno(path).items():
                found = [index[test] for test in tests if test in index]
                if found:
                    record["lines"].setdefault(file, {})[str(line)] = found
                if "" in tests:
                    record["imported"].setdefault(file, []).append(line)
        self._coverage = self._watching()
        Path(self._records[name]).write_text(json.dumps(record), encoding="utf-8")


def _given_up(_signal: int, _frame: FrameType | None) -> None:
    raise TimeoutError
