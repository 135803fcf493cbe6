"""Progress while cases run: one rewritten line on a terminal, a few quiet lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TextIO

from assisted_benchmark.report.terminal import fault_line
from assisted_benchmark.suite.result import CaseResult, Verdict

_EVERY_S = 0.1
_QUIET_EVERY_S = 10.0


class Progress:
    """Told of each case as it ends. Writes to `out`; `now` gives real seconds (progress is no result)."""

    def __init__(
        self, out: TextIO, total: int, *, colour: bool, live: bool, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._out = out
        self._total = total
        self._colour = colour
        self._live = live
        self._now = now
        self._began = now()
        self._last = self._began if not live else self._began - 1
        self._done = 0
        self._bad = 0

    def case(self, result: CaseResult) -> None:
        """One case ended. A case that did not pass is shown at once."""
        self._done += 1
        if result.verdict is not Verdict.PASSED:
            self._bad += 1
            self._clear()
            self._out.write(fault_line(result, colour=self._colour) + "\n")
        now = self._now()
        if now - self._last >= (_EVERY_S if self._live else _QUIET_EVERY_S):
            self._last = now
            rate = self._done / max(now - self._began, 1e-9)
            line = f"{self._done}/{self._total} cases, {self._bad} not passed, {rate:.0f}/s"
            self._out.write(f"\r\x1b[K{line}" if self._live else line + "\n")
            self._out.flush()

    def end(self) -> None:
        """Take the live line away, so that the report starts on a clean one."""
        self._clear()
        self._out.flush()

    def _clear(self) -> None:
        if self._live:
            self._out.write("\r\x1b[K")
